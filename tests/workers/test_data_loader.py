"""Batches of any data set: the same for any number of workers, loader processes and restarts."""

import json
import os
import random
import signal
import sys
import time

import gluon_dist as gd
from gluon_dist.workers.batch import Batch

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from load_batches import CASES, DIFFERING, Drawn, load
from mxnet import gluon
from mxnet.gluon.contrib.estimator import Estimator

from launching import launch

TIME_BUDGET_S = 40
DEVICES = [mx.cpu(number) for number in range(4)]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Three workers have loaded all cases; what each got is in `loaded`."""
    folder = tmp_path_factory.mktemp("loaded")
    program = sys.executable, "tests/programs/load_batches.py", folder
    job = launch(folder, "-n", 3, "-s", 1, *program, timeout=100)
    assert job.status == 0, job.text()
    job.loaded = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]
    return job


def drawn(length=23, batch_size=6, **options):
    return gd.DataLoader(Drawn(length), batch_size, **options)


def values(batches):
    return [[array.asnumpy().tolist() for array in batch] for batch in batches]


@pytest.mark.parametrize("case", CASES)
def test_parts_of_three_workers_are_what_one_worker_loads(case, job):
    alone = load(*CASES[case][:2])  # in this process, without loader processes
    is_repeatable = case != "threads"
    steps = list(zip(alone, *(loaded[case] for loaded in job.loaded)))
    assert len(alone) == len(steps) == len(job.loaded[0][case])
    for (data, label, size), *parts in steps:
        assert [n for _, part, _ in parts for n in part] == label
        assert {size} == {part[2] for part in parts} == {len(label)}
        assert not is_repeatable or [row for part, _, _ in parts for row in part] == data


def test_a_worker_may_have_no_example_in_a_step(job):
    assert all(not label for _, label, _ in job.loaded[2]["fewer examples than workers"])


@pytest.mark.parametrize("name", DIFFERING)
def test_workers_with_different_arguments_are_all_told(name, job):
    first, other = DIFFERING[name]
    what = "dataset: its length" if name == "dataset" else name
    line = f"{what}: {first} on worker 0, {other} on worker 1; all workers must have the same"
    assert job.stdout.count(line) == 3, job.text()


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 50), st.booleans(), st.integers(0, 2**32 - 1))
def test_every_example_comes_once_an_epoch(length, batch_size, shuffle, seed):
    loader = gd.DataLoader(list(range(length)), batch_size, shuffle, seed)
    batches = list(loader)
    assert len(batches) == len(loader) == loader.facts()["steps"]
    assert all(batch.size == batch.global_size == len(batch[0]) for batch in batches)
    assert {batch.size for batch in batches[:-1]} <= {batch_size}
    numbers = [int(number) for batch in batches for number in batch[0].asnumpy()]
    assert (sorted(numbers) if shuffle else numbers) == list(range(length))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_restart_within_an_epoch_loads_what_was_left(num_workers):
    whole = values(drawn().epoch(5))
    again = drawn(num_workers=num_workers)
    assert values(again.epoch(5, 2)) == whole[2:]
    assert values(again.epoch(5, 4)) == []
    next(again.epoch(1))  # left before its end
    assert values(again.epoch(5)) == whole


def test_a_loop_goes_on_with_the_epoch_after_the_last_begun():
    loader = drawn()
    epochs = [values(loader) for _ in range(2)]
    assert epochs == [values(drawn().epoch(number)) for number in range(2)]
    list(loader.epoch(6, 3))
    assert values(loader) == values(drawn().epoch(7))


def test_epochs_that_are_read_by_turns_do_not_mix():
    loader = drawn(num_workers=2)
    both = zip(loader.epoch(0), loader.epoch(1))
    assert list(map(values, zip(*both))) == [values(loader.epoch(0)), values(loader.epoch(1))]


def test_draws_differ_between_examples_epochs_and_seeds():
    data = [b[0].asnumpy() for s in (0, 1) for e in (0, 1) for b in drawn(seed=s).epoch(e)]
    assert len(np.unique(np.concatenate(data))) == 23 * 4 * 2


def test_the_draws_of_the_program_are_its_own():
    random.seed(1), np.random.seed(1)
    wanted = [random.random(), random.random(), np.random.rand(), np.random.rand()]
    random.seed(1), np.random.seed(1)
    first = random.random(), np.random.rand()
    list(drawn())
    assert [first[0], random.random(), first[1], np.random.rand()] == wanted


class DrawnByMxnet(Drawn):
    """What MXNet draws for an example."""

    def __getitem__(self, index):
        return mx.nd.random.uniform(shape=(2,))


def test_processes_draw_with_mxnet_by_seed_epoch_and_step():
    loader = gd.DataLoader(DrawnByMxnet(23), 6, num_workers=2)
    whole = values(loader.epoch(1))
    assert len(np.unique(np.concatenate([batch[0] for batch in whole]))) == 23 * 2
    assert values(loader.epoch(1, 2)) == whole[2:]


class Slow(Drawn):
    """So slow that there is always an example on its way."""

    def __getitem__(self, index):
        time.sleep(0.1)
        return index


@pytest.mark.timeout(60)  # else it waits for ever
def test_processes_end_with_their_loader_where_the_program_handles_signals():
    reader, writer = os.pipe2(os.O_NONBLOCK)
    before = signal.signal(signal.SIGTERM, print), signal.set_wakeup_fd(writer)
    try:
        next(iter(gd.DataLoader(Slow(23), 1, num_workers=2)))
        with pytest.raises(BlockingIOError):  # nothing has told this process to stop
            os.read(reader, 1)
    finally:
        signal.set_wakeup_fd(before[1])
        signal.signal(signal.SIGTERM, before[0])


@pytest.mark.parametrize("size, count", [(7, 4), (4, 4), (2, 2)])
def test_a_batch_is_split_over_the_devices_that_get_examples(size, count):
    (batch,) = drawn(size, 10)
    parts = batch.split(DEVICES)
    assert [part[0].context for part in parts] == DEVICES[:count]
    for item, array in enumerate(batch):
        joined = np.concatenate([part[item].asnumpy() for part in parts])
        np.testing.assert_array_equal(joined, array.asnumpy())


def test_parts_have_as_many_items_as_the_data_set():
    single = next(iter(gd.DataLoader(mx.nd.arange(3), 3, shuffle=False)))
    assert len(single) == 1 and single[0].shape == (3, 1)  # MXNet has no arrays without an axis
    assert [part.asscalar() for part in single.split(DEVICES)] == [0, 1, 2]
    threes = gluon.data.ArrayDataset(*[mx.nd.arange(3)] * 3)
    assert [len(p) for p in next(iter(gd.DataLoader(threes, 3))).split(mx.cpu())] == [3]


def test_an_empty_part_is_split_into_nothing():
    empty = Batch([], 0, 3)
    assert empty.split(DEVICES) == [] == list(empty) and empty.size == 0


def test_gluons_estimator_trains_with_it():
    data = gluon.data.ArrayDataset(mx.nd.ones((10, 3)), mx.nd.ones(10))
    net = gluon.nn.Dense(2)
    net.initialize()
    before = net(mx.nd.ones((1, 3))).asnumpy()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    estimator = Estimator(net, loss, trainer=trainer, context=[mx.cpu()])
    estimator.logger.disabled = True
    estimator.fit(gd.DataLoader(data, 4), epochs=1)
    assert (net(mx.nd.ones((1, 3))).asnumpy() != before).all()


@pytest.mark.parametrize(
    "options, line",
    [
        ({"dataset": iter([1])}, "dataset: a list_iterator has no len(), and an order needs one"),
        ({"dataset": []}, "dataset: it has no examples"),
        ({"batch_size": 2.5}, "batch_size 2.5: a whole number is needed"),
        ({"batch_size": 0}, "batch_size 0: a number from 1 on is needed"),
        ({"seed": -1}, "seed -1: a number in [0, 4294967296) is needed"),
        ({"seed": None}, "seed None: a whole number is needed"),
        ({"shuffle": "no"}, "shuffle 'no': True or False is needed"),
        ({"num_workers": -1}, "num_workers -1: a number from 0 on is needed"),
        ({"prefetch": -1}, "prefetch -1: a number from 0 on is needed"),
        ({"timeout": 0}, "timeout 0: a number of seconds above 0 is needed"),
    ],
)
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_what_it_cannot_take_is_refused_in_one_line(options, line):
    with pytest.raises((TypeError, ValueError)) as caught:
        gd.DataLoader(**{"dataset": [1, 2, 3], "batch_size": 2, **options})
    assert str(caught.value) == line


def test_a_step_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match=r"first_step 5: a number in \[0, 5\) is needed"):
        drawn().epoch(0, 5)
    with pytest.raises(ValueError, match="epoch -1: a number in"):
        drawn().epoch(-1)


@pytest.mark.parametrize(
    "batchify, line",
    [
        (lambda rows: {"data": rows}, "batchify_fn made a dict: split takes arrays"),
        (lambda rows: mx.nd.zeros((9, len(rows))), r"of shape \(9, 6\): split cuts the first axis"),
    ],
)
def test_what_cannot_be_split_is_refused(batchify, line):
    batch = next(iter(drawn(batchify_fn=batchify)))
    with pytest.raises((TypeError, ValueError), match=line):
        batch.split(DEVICES)

"""Memory that workers share: sums to the last bit, no worker ahead of another, nothing left."""

import itertools
import os
import sys
from types import SimpleNamespace

from gluon_dist.exchange import choice
from gluon_dist.exchange.buckets import Buckets
from gluon_dist.exchange.shared_memory import BLOCK, SharedBuckets
from gluon_dist.workers.collectives import OneWorker

import mxnet as mx
import numpy as np
import pytest

from launching import PROGRAM, TRAIN, accuracies, commands, launch

TIME_BUDGET_S = 90
SHORT = "--data synthetic --network resnet --num-layers 8 --num-examples 640 --batch-size 64"
LINE = "gradients are added up in shared memory"
pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="this system has no memfd_create"
)


def test_sums_are_those_of_the_ranks_in_order_on_every_worker(tmp_path):
    words = (sys.executable, "tests/programs/share_arrays.py", str(tmp_path))
    job = launch(tmp_path, "-n", 3, *words)
    assert job.status == 0, job.stdout + job.stderr
    for size, turn in itertools.product((1, 7, BLOCK - 1, 5 * BLOCK + 3), range(20)):
        rows = [np.random.RandomState([size, turn, rank]).rand(size) for rank in range(3)]
        first, second, third = (row.astype(np.float32) for row in rows)
        for rank in range(3):
            found = np.load(tmp_path / f"{rank}-{size}-{turn}.npy")
            np.testing.assert_array_equal(found, (first + second) + third)


@pytest.mark.parametrize(
    "may_share, memory, way",
    [(True, "some", SharedBuckets), (True, None, Buckets), (False, "some", Buckets)],
)
def test_shared_memory_is_chosen_only_where_all_workers_have_it(
    may_share, memory, way, monkeypatch
):
    several = SimpleNamespace(store_type="dist_sync", count=2, collectives=OneWorker())
    monkeypatch.setattr(choice, "share_memory", lambda *_: memory)
    found = choice.choose_exchange(several, [mx.cpu()], [], may_share=may_share)
    assert type(found) is way


def test_what_was_asked_of_a_gradient_before_the_sums_is_of_the_gradient():
    memory = SimpleNamespace(rank=0, add_up=lambda rows: rows.fill(9), barrier=lambda: None)
    memory.array = lambda size, dtype: np.zeros((1, size), dtype)
    param, shared = mx.gluon.Parameter("w", shape=(4,)), SharedBuckets(memory)
    param.initialize()
    shared.move_gradients([param])
    param.grad()[:] = 1
    mx.nd.waitall()
    late = mx.nd.dot(*[mx.nd.ones((3000, 3000))] * 2)[0, :4] * 0
    asked = param.grad() + late  # is read once that is there
    shared.add_up()
    assert asked.asnumpy().tolist() == [1] * 4 and param.grad().asnumpy().tolist() == [9] * 4


@pytest.mark.long
def test_both_ways_train_alike_and_say_which_it_is(tmp_path):
    words = ("-n", 2, *TRAIN, *SHORT.split(), "--num-epochs", "1")
    shared, sent = launch(tmp_path, *words), launch(tmp_path, *words, "--allreduce", "servers")
    assert shared.status == sent.status == 0, shared.stderr + sent.stderr
    assert LINE in shared.stdout and LINE not in sent.stdout
    assert accuracies(shared.stdout) == accuracies(sent.stdout)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_worker_in_a_process_table_of_its_own_takes_the_servers(tmp_path):
    apart = "unshare --pid --fork --mount-proc"
    command = f"case $DMLC_ROLE$LAUNCH_WORKER_ID in worker1) exec {apart} $0 $1;; esac; exec $0 $1"
    program = [sys.executable, "tests/programs/share_arrays.py"]
    job = launch(tmp_path, "-n", 2, "sh", "-c", command, *program)
    assert job.stdout.count("no memory in common") == 2, job.stdout + job.stderr


@pytest.mark.long
def test_a_limit_on_files_leaves_the_servers(tmp_path):
    """As a batch system sets it: it holds for memory that is shared, too."""
    limited = f"ulimit -f 2000; exec {sys.executable} {PROGRAM} {SHORT} --num-epochs 1"
    job = launch(tmp_path, "-n", 2, f"{limited} --network resnet --num-layers 20")
    assert job.status == 0, job.stderr
    assert LINE not in job.stdout
    assert len(set(accuracies(job.stdout)[0])) == 1


@pytest.mark.long
def test_a_killed_job_leaves_no_memory(tmp_path):
    def shared_kb():
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("Shmem:"))

    before = shared_kb()
    words = [sys.executable, "tests/programs/share_arrays.py", str(tmp_path), "killed"]
    job = launch(tmp_path, "-n", 2, *words)
    assert job.status == 137, job.stdout + job.stderr
    assert "of 400 MB" in job.stdout
    assert shared_kb() - before < 200_000
    assert str(tmp_path) not in commands()

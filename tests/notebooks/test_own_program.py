"""Notebook 04's program where the notebook does not go: odd sizes, no launcher, other mistakes.

What its cells show (three workers, each mistake, a kill) is proved in ``proofs/04.py``.
"""

import re
import sys
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mxnet as mx
import numpy as np
import pytest

from launching import ROOT, launch
from programs.own.mistakes import CHANGES, changed

TIME_BUDGET_S = 100
pytestmark = pytest.mark.long
FOLDER = ROOT / "notebooks" / "programs" / "own"
RIGHT = FOLDER / "step4_right.py"
RESTARTABLE = FOLDER / "step5_restartable.py"
BY_THE_DOOR = FOLDER / "step6_by_the_door.py"
SHORT = ("--num-epochs", 2)
EPOCH = re.compile(
    r"(?:\[worker (\d)\] )?Epoch (\d): (\d+) examples, accuracy ([\d.]+), weights ([\d.]+|nan)"
)


def run(folder, program, *options, workers=3, launcher=(), status=0):
    """Run a program to its end, without a launcher if ``workers`` is 0."""
    if workers:
        options = ("--no-prepare", *launcher, sys.executable, program, *options)  # plain MXNet
        job = launch(folder, "-n", workers, "-s", 1, *options)
    else:
        job = launch(folder, *options, program=program)
    assert job.status == status, job.text()
    return job


def run_mistake(folder, name, *options, **settings):
    """Run a step with a mistake put in."""
    program = folder / "changed.py"
    program.write_text(changed(name))
    return run(folder, program, *options, **settings)


def epochs(job):
    """What the workers printed: ``(examples, accuracy, weights)`` by epoch and rank."""
    found = {}
    for rank, epoch, examples, *numbers in EPOCH.findall(job.stdout):
        found.setdefault(int(epoch), {})[int(rank or 0)] = int(examples), *numbers
    assert found, job.text()
    return [found[epoch] for epoch in sorted(found)]


def seen(epoch):
    return sum(examples for examples, _, _ in epoch.values())


def accuracies(epoch):
    return {accuracy for _, accuracy, _ in epoch.values()}


def weights(epoch):
    return {weight for _, _, weight in epoch.values()}


def parameters(path):
    return {name: array.asnumpy() for name, array in mx.nd.load(str(path)).items()}


@lru_cache(None)
def of_one_worker(*options):
    """The parameters that the program ends with if nobody launches it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "one.params")
        run(Path(folder), RIGHT, *options, "--save", path, workers=0)
        return parameters(path)


def assert_equal(got, wanted, tolerance=1e-4):
    assert got.keys() == wanted.keys()
    for name in got:
        assert np.allclose(got[name], wanted[name], atol=tolerance), name


@pytest.mark.parametrize(
    "workers, options",
    [
        (3, ("--num-examples", 61, "--num-devices", 1)),  # a last batch of one
        (3, ("--num-examples", 7, "--batch-size", 2)),  # never enough for all
        (2, ("--num-examples", 100, "--batch-size", 99, "--num-devices", 3)),
    ],
)
def test_workers_end_with_the_parameters_of_one(tmp_path, workers, options):
    options = *SHORT, *options
    job = run(tmp_path, RIGHT, *options, "--save", tmp_path / "net", workers=workers)
    for epoch in epochs(job):
        assert len(epoch) == workers and len(accuracies(epoch)) == len(weights(epoch)) == 1
    assert seen(epoch) == dict(zip(options[::2], options[1::2])).get("--num-examples", 1202)
    assert_equal(parameters(tmp_path / "net"), of_one_worker(*options))


@pytest.mark.parametrize(
    "workers, options",
    [(0, ()), (3, ("--num-examples", 7, "--batch-size", 2))],
)
def test_by_the_door_it_ends_with_the_same_parameters(tmp_path, workers, options):
    options = *SHORT, *options
    files = "--checkpoint", tmp_path / "own", "--save", tmp_path / "net"
    job = run(tmp_path, BY_THE_DOOR, *options, *files, workers=workers)
    for epoch in epochs(job):
        assert len(accuracies(epoch)) == len(weights(epoch)) == 1
    assert_equal(parameters(tmp_path / "net"), of_one_worker(*options), 1e-5)


def test_steps_1_to_5_import_nothing_of_this_project():
    steps = sorted(FOLDER.glob("step[1-5]*.py"))
    assert len(steps) == 5
    assert not [step.name for step in steps if "gluon_dist" in step.read_text()]


def test_a_killed_job_with_batch_norm_goes_on_as_if_it_had_not_been_killed(tmp_path):
    options = "--batch-norm", "--num-devices", 1, "--num-examples", 182
    files = "--checkpoint", tmp_path / "checkpoint", "--save", tmp_path / "killed"
    restart = "--max-restarts", 1, "--min-uptime", 0
    job = run_mistake(tmp_path, "killed", *files, *options, launcher=restart)
    assert "was killed by SIGKILL: restarting" in job.text()
    files = "--checkpoint", tmp_path / "other", "--save", tmp_path / "whole"
    run(tmp_path, RESTARTABLE, *files, *options)
    assert [len(epoch) for epoch in epochs(job)] == [3, 3, 3]
    assert_equal(parameters(tmp_path / "killed"), parameters(tmp_path / "whole"), 1e-3)


def test_a_job_goes_on_with_another_number_of_workers(tmp_path):
    for workers, num_epochs in (3, 1), (0, 2):
        files = "--checkpoint", tmp_path / "checkpoint", "--save", tmp_path / "net"
        run(tmp_path, RESTARTABLE, *files, "--num-epochs", num_epochs, workers=workers)
    assert_equal(parameters(tmp_path / "net"), of_one_worker(*SHORT))


def test_a_store_that_updates_refuses_a_short_last_batch(tmp_path):
    job = run_mistake(tmp_path, "refused", *SHORT, status=1)
    assert "Possible change in the `batch_size`" in job.last_words()


def test_a_worker_that_raises_and_waits_in_its_exit_ends_the_job(tmp_path):
    words = run_mistake(tmp_path, "raises and waits", *SHORT, status=1).last_words()
    assert "worker 1 on localhost: printed a traceback, and has hung in its exit" in words
    assert "ValueError: a broken image" in words


def test_each_mistake_changes_a_step():
    assert len(CHANGES) == 11
    for name in CHANGES:
        compile(changed(name), name, "exec")

"""Notebook 04's program: right for any number of workers, and what each of its mistakes does."""

import re
import sys
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import mxnet as mx
import numpy as np
import pytest

from checks.own_program import check_distributed
from launching import ROOT, launch
from programs.own.mistakes import CHANGES, changed

TIME_BUDGET_S = 300
pytestmark = pytest.mark.long  # over fifty jobs
FOLDER = ROOT / "notebooks" / "programs" / "own"
ONE_DEVICE = FOLDER / "step1_one_device.py"
SEVERAL_DEVICES = FOLDER / "step2_several_devices.py"
AS_PUBLISHED = FOLDER / "step3_as_published.py"
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


def test_several_devices_learn_what_one_does(tmp_path):
    for program, name in (ONE_DEVICE, "one"), (SEVERAL_DEVICES, "two"):
        run(tmp_path, program, *SHORT, "--save", tmp_path / name, workers=0)
    assert_equal(parameters(tmp_path / "one"), parameters(tmp_path / "two"))


@pytest.mark.parametrize(
    "workers, options",
    [
        (1, ()),
        (2, ("--num-examples", 1201)),
        (3, ()),  # a last batch of two
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
    [(0, ()), (1, ()), (2, ()), (3, ()), (3, ("--num-examples", 7, "--batch-size", 2))],
)
def test_by_the_door_it_ends_with_the_same_parameters(tmp_path, workers, options):
    options = *SHORT, *options
    files = "--checkpoint", tmp_path / "own", "--save", tmp_path / "net"
    job = run(tmp_path, BY_THE_DOOR, *options, *files, workers=workers)
    for epoch in epochs(job):
        assert len(accuracies(epoch)) == len(weights(epoch)) == 1
    assert_equal(parameters(tmp_path / "net"), of_one_worker(*options), 1e-5)


def test_by_the_door_a_killed_job_goes_on_as_if_it_had_not_been_killed(tmp_path):
    files = "--checkpoint", tmp_path / "own", "--save", tmp_path / "net"
    restart = "--max-restarts", 1, "--min-uptime", 0
    job = run_mistake(tmp_path, "killed within", *files, launcher=restart)
    assert "was killed by SIGKILL: restarting" in job.text()
    assert_equal(parameters(tmp_path / "net"), of_one_worker(), 1e-5)


def test_steps_1_to_5_import_nothing_of_this_project():
    steps = sorted(FOLDER.glob("step[1-5]*.py"))
    assert len(steps) == 5
    assert not [step.name for step in steps if "gluon_dist" in step.read_text()]


@pytest.mark.parametrize("workers", [2, 3])
def test_with_batch_norm_workers_agree_with_each_other(tmp_path, workers):
    options = *SHORT, "--batch-norm", "--num-examples", 602
    for epoch in epochs(run(tmp_path, RIGHT, *options, workers=workers)):
        assert len(epoch) == workers and len(accuracies(epoch)) == len(weights(epoch)) == 1


@pytest.mark.parametrize("options", [(), ("--batch-norm", "--num-devices", 1)])
def test_a_killed_job_goes_on_as_if_it_had_not_been_killed(tmp_path, options):
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


def test_as_published_examples_are_never_seen_and_accuracies_differ(tmp_path):
    options = "--num-examples", 1082, "--batch-norm", *SHORT
    for epoch in epochs(run(tmp_path, AS_PUBLISHED, *options)):
        assert seen(epoch) == 1080
        assert len(weights(epoch)) == 1 < len(accuracies(epoch))


def test_as_published_a_short_last_batch_is_refused(tmp_path):
    job = run(tmp_path, AS_PUBLISHED, *SHORT, status=1)
    assert "Possible change in the `batch_size`" in job.last_words()
    job = run_mistake(tmp_path, "refused", *SHORT, status=1)
    assert "Possible change in the `batch_size`" in job.last_words()


def test_as_published_a_new_rate_does_nothing(tmp_path):
    job = run_mistake(tmp_path, "rate", "--num-examples", 180, *SHORT)
    first, second = epochs(job)
    assert weights(first) == weights(second)


def test_uneven_numbers_of_batches_hang(tmp_path):
    stall = "--stall-timeout", 20  # the start is silent, too
    job = run_mistake(tmp_path, "uneven", "--batch-size", 50, launcher=stall, status=124)
    assert "Epoch 0" not in job.stdout and job.text().count("in evaluate") == 3, job.text()


@pytest.mark.parametrize("name", ["usual size", "mean of means"])
def test_a_wrong_divisor_is_equal_on_all_workers_and_not_what_one_learns(tmp_path, name):
    job = run_mistake(tmp_path, name, *SHORT, "--save", tmp_path / "net")
    assert len(weights(epochs(job)[-1])) == 1
    one = of_one_worker(*SHORT)
    assert max(abs(parameters(tmp_path / "net")[name] - one[name]).max() for name in one) > 1e-2


def test_ignored_stale_gradients_give_equal_accuracies_and_different_weights(tmp_path):
    for epoch in epochs(run_mistake(tmp_path, "stale", *SHORT)):
        assert len(accuracies(epoch)) == 1 < len(weights(epoch))


def test_gradients_that_overtake_the_first_weights_take_their_place(tmp_path):
    (epoch,) = epochs(run_mistake(tmp_path, "overtaken", "--num-epochs", 1))
    assert epoch[0][2] == epoch[1][2] != epoch[2][2]


@pytest.mark.parametrize(
    "name, end", [("raises and waits", "has hung in its exit"), ("raises and ends", "ended with")]
)
def test_a_worker_that_raises_ends_the_job(tmp_path, name, end):
    words = run_mistake(tmp_path, name, *SHORT, status=1).last_words()
    assert f"worker 1 on localhost: {'printed a traceback, and ' * ('waits' in name)}{end}" in words
    assert "ValueError: a broken image" in words


def test_each_mistake_changes_a_step():
    assert len(CHANGES) == 11
    for name in CHANGES:
        compile(changed(name), name, "exec")


@pytest.mark.parametrize("name, passes", [("exercise_sines", False), ("exercise_solved", True)])
def test_the_exercise_is_checked(name, passes, capsys):
    check_distributed(FOLDER / f"{name}.py")
    assert capsys.readouterr().out.startswith("Correct" if passes else "Not yet: 3 workers")

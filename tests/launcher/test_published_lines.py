"""Lines for MXNet's own launcher, which joined the words of a command to a line for the shell."""

import pytest

from launching import ROOT, SUM_RANKS, launch

TIME_BUDGET_S = 40
SET = ("--env", "OMP_NUM_THREADS:1", "--env-worker", "X:2")
SHOW = "echo $DMLC_ROLE has $FOO and $BAR"


@pytest.mark.parametrize("check", [[], ["--no-check"]])
def test_variables_in_front_of_separate_words_are_set(tmp_path, check):
    command = ("FOO=1", "BAR=a b", "sh", "-c", SHOW)
    job = launch(tmp_path, "-n", 1, *check, *command)
    assert job.status == 0, job.text()
    assert "[worker 0] worker has 1 and a b" in job.text()
    assert "[server 0] server has 1 and a b" in job.text()


def test_a_program_that_is_not_there_is_told_behind_variables_too(tmp_path):
    job = launch(tmp_path, "-n", 1, "FOO=1", "no_such_program", "x")
    assert job.status == 2
    assert "no_such_program: command not found" in job.last_words()


@pytest.mark.parametrize("line", ["PATH={}:$PATH tool x", "export PATH={}:$PATH; tool x"])
def test_a_line_that_sets_the_path_is_not_refused(tmp_path, line):
    (tmp_path / "tool").write_text("#!/bin/sh\necho found $*\n")
    (tmp_path / "tool").chmod(0o755)
    job = launch(tmp_path, "-n", 1, line.format(tmp_path))
    assert job.status == 0, job.text()
    assert "[worker 0] found x" in job.text()


def test_a_line_with_the_shells_source_gets_a_hint(tmp_path):
    job = launch(tmp_path, "-n", 1, "--no-check", "source ./activate && python train.py")
    assert job.status == 127
    assert "hint: `sh` runs the line, and `source` is bash's" in job.last_words()


@pytest.mark.parametrize(
    "arguments",
    [
        ("-n", 2, "--p3", "--launcher", "local", "python", SUM_RANKS),
        ("-n", 2, "-s", 1, "--launcher=local", *SET, f"cd /; python {SUM_RANKS}"),
        ("-n", 2, f"export PYTHONPATH={ROOT}; python {SUM_RANKS}"),
    ],
)
def test_a_published_line_runs(tmp_path, arguments):
    job = launch(tmp_path, *arguments, timeout=60)
    assert job.status == 0, job.text()
    for rank in range(2):
        assert f"worker {rank} is rank {rank} of 2, sum 3" in job.text()


@pytest.mark.long
def test_the_line_of_mxnets_image_classification_trains(tmp_path):
    """Of its README, with the program of here, no GPU, and a smaller network."""
    options = "--network resnet --num-layers 8 --batch-size 128 --kv-store dist_device_sync"
    small = "--gpus= --data synthetic --num-examples 256 --num-epochs 1"
    program = ROOT / "cifar10_dist" / "cifar10_dist.py"
    command = ("python", program, *options.split(), *small.split())
    job = launch(tmp_path, "-n", 2, "--launcher", "local", *command)
    assert job.status == 0, job.text()
    assert job.text().count("Epoch 0: Test_acc ") == 2

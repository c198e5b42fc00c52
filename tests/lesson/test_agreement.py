"""Workers that were started differently stop before the first batch, with one message."""

import shutil
import sys

import pytest

from launching import PROGRAM, ROOT, launch

TIME_BUDGET_S = 50
SHORT = "--data synthetic --network resnet --num-layers 8 --num-examples 1000 --batch-size 50"


def start(folder, options="", program=PROGRAM):
    """Start three workers; in the command ``$W`` is the number of the worker."""
    words = f"W=$LAUNCH_WORKER_ID; {sys.executable} {program} {SHORT} --num-epochs 1 {options}"
    return launch(folder, "-n", 3, "-s", 1, words, timeout=120)


@pytest.mark.parametrize(
    "options, message",
    [
        ("--lr 0.00$((W / 2 + 1))", "--lr: 0.001 on worker 0, 1, 0.002 on worker 2"),
        pytest.param(
            "--kv-store dist_$([ $W = 1 ] && echo async || echo sync)",
            "--kv-store: dist_sync on worker 0, 2, dist_async on worker 1",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "$([ $W = 1 ] && echo --gc-type 2bit)",
            "--gc-type: None on worker 0, 2, 2bit on worker 1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_different_options_end_the_job_with_one_message(options, message, tmp_path):
    job = start(tmp_path, options)
    assert_stopped(job, message)


@pytest.mark.long
def test_an_older_copy_of_the_program_on_one_host_is_found_out(tmp_path):
    for worker in range(3):
        shutil.copytree(ROOT / "cifar10_dist", tmp_path / str(worker))
    with open(tmp_path / "2" / "sources" / "records.py", "a") as file:
        file.write("# a change\n")
    job = start(tmp_path, program=f"{tmp_path}/${{W:-0}}/cifar10_dist.py")
    assert_stopped(job, "program: ")
    message = next(line for line in job.stderr.splitlines() if "the workers differ" in line)
    assert " on worker 0, 1, " in message and " on worker 2;" in message


def assert_stopped(job, message):
    assert job.status == 2, job.stdout + job.stderr
    said = [line for line in job.stderr.splitlines() if "error: the workers differ in" in line]
    assert f"the workers differ in {message}" in said[0]
    assert len([line for line in said if line.startswith("[worker")]) == 1, job.stderr
    assert "Epoch" not in job.stdout

"""One job at a time saves under a prefix; the lock of a killed job blocks no later job."""

import os
import re
import signal
import subprocess
import sys
import time

from gluon_dist.checkpoint import lock
from gluon_dist.checkpoint.files import find
from gluon_dist.common.errors import UsageError

import pytest

from launching import ROOT
from restarting import SLOW, finished, training

TIME_BUDGET_S = 60
HOLD = (
    "import sys, time; from gluon_dist.checkpoint.lock import hold\n"
    "with hold(sys.argv[1]): print('held', flush=True), time.sleep(float(sys.argv[2]))"
)


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds the lock for some seconds; it is killed in the end."""
    started = []

    def start(seconds=100, job=""):
        env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist"), "LAUNCH_JOB": job}
        command = [sys.executable, "-c", HOLD, str(tmp_path / "model"), str(seconds)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, env=env))
        assert started[0].stdout.readline() == b"held\n"
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.long
@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_job_is_refused_and_told_of_the_first(tmp_path, workers):
    first = training(tmp_path, tmp_path / "model", workers=workers, env={"TINY_PAUSE": "3"})
    first.wait_for("Epoch[0] Batch [1]")
    (tmp_path / "second").mkdir()
    second = training(tmp_path / "second", tmp_path / "model", "--keep", "1", workers=workers)
    finished(second, status=2)
    (line,) = {t.partition("error: ")[2] for t in second.text().splitlines() if "error: " in t}
    pid = first.pid if not workers else next(iter(first.role("worker-0")))
    assert re.search(rf"--model-prefix .*/model: .*process {pid} on \S+, since \S+ \S+, is", line)
    os.kill(first.pid, signal.SIGUSR1)
    finished(first, status=75)
    assert "could not be saved" not in first.text() and len(find(str(tmp_path / "model"))) == 1
    assert not list(tmp_path.glob(".model*"))


@pytest.mark.long
def test_the_lock_of_a_killed_job_blocks_nobody(tmp_path):
    job = training(tmp_path, tmp_path / "model", env=SLOW)
    job.wait_for("Epoch[1] Batch [1]")
    while not find(str(tmp_path / "model")):  # a thread writes it, and a disk may be slow
        time.sleep(0.05)
    os.kill(job.pid, signal.SIGKILL)
    finished(job, -signal.SIGKILL)
    assert (tmp_path / ".model.lock").exists()
    again = finished(training(tmp_path, tmp_path / "model", "--resume", "auto"))
    assert "Resumed from" in again.text() and not list(tmp_path.glob(".model*"))


def test_a_restart_waits_for_the_try_before(tmp_path, holder, monkeypatch):
    monkeypatch.setenv("LAUNCH_JOB", "j1")
    other = holder(2, job="j1")
    with lock.hold(tmp_path / "model"):
        assert other.wait(10) == 0 and (tmp_path / ".model.lock").exists()


def test_a_restart_goes_on_if_the_try_before_is_never_heard_of_again(
    tmp_path, holder, monkeypatch, capsys
):
    monkeypatch.setenv("LAUNCH_JOB", "j1")
    monkeypatch.setattr(lock, "LOST_S", 1)
    holder(job="j1")
    with lock.hold(tmp_path / "model"):
        assert "still locked by an earlier try of this job" in capsys.readouterr().err


def test_another_job_of_the_launcher_is_named(tmp_path, holder, monkeypatch):
    holder(job="j1")
    for own in ("j2", ""):
        monkeypatch.setenv("LAUNCH_JOB", own)
        with pytest.raises(UsageError, match="job j1, process"), lock.hold(tmp_path / "model"):
            pass


CROWD = """
import os, sys
from gluon_dist.common.errors import UsageError
from gluon_dist.checkpoint.lock import hold
print("ready", flush=True)
sys.stdin.readline()
turns = 0
while turns < 300:
    try:
        with hold(sys.argv[1]):
            os.mkdir(sys.argv[1] + "-inside")
            turns += 1
            os.rmdir(sys.argv[1] + "-inside")
    except UsageError:
        pass
"""


def test_a_lock_that_was_removed_while_somebody_came_is_not_taken_for_held(tmp_path):
    """Many processes, one after the other in the lock, each for a moment: never two at once."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    pipes, command = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE), [sys.executable, "-c"]
    command += [CROWD, str(tmp_path / "model")]
    crowd = [subprocess.Popen(command, env=env, text=True, **pipes) for _ in range(4)]
    assert [process.stdout.readline() for process in crowd] == ["ready\n"] * 4
    for process in crowd:
        process.stdin.close()
    assert [process.wait(100) for process in crowd] == [0] * 4

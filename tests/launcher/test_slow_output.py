"""A screen or a disk that takes no output: the watch goes on, and the job ends as it should."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from launching import ROOT, Job, shell

TIME_BUDGET_S = 130
pytestmark = pytest.mark.long
LAUNCH = [sys.executable, str(ROOT / "tools" / "launch.py"), "-n", "1", "-s", "1", "--no-check"]
SAVE = "trap 'echo going on; touch saved; exit 75' TERM; echo up; "
SAVE += "while :; do echo a line about as long as one of training is; done"


@contextlib.contextmanager
def unread(folder, *arguments, env=None):
    """A launcher whose standard output is a pipe that nobody reads."""
    arguments = [*LAUNCH, *map(str, arguments)]
    with open(folder / "err", "wb") as err:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=err, cwd=folder, env=env
        )
    try:
        yield process
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def wait_until_full(pipe, timeout=20):
    """Wait until a pipe takes no more."""
    import fcntl
    import termios

    size, full, end = 0, -1, time.monotonic() + timeout
    while size != full or not size:
        assert time.monotonic() < end
        full = size
        time.sleep(0.05)
        size = int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize("blocked_s", [0, 2])  # after 2 s the worker waits to write
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_workers_save_when_asked_while_the_screen_blocks(tmp_path, number, blocked_s):
    with unread(tmp_path, "--grace", 30, shell(worker0=SAVE)) as process:
        wait_until_full(process.stdout)
        time.sleep(blocked_s)
        process.send_signal(number)
        assert process.wait(60) == 75
    assert (tmp_path / "saved").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_stop_does_not_wait_for_the_screen(tmp_path, number):
    with unread(tmp_path, "yes $(seq 20)") as process:
        wait_until_full(process.stdout)
        process.send_signal(number)
        assert process.wait(15) == 128 + number
        assert process.stdout.read(1)  # until here nobody has
    assert f"stopped by {number.name}" in (tmp_path / "err").read_text()


def test_a_time_limit_holds_while_the_screen_blocks(tmp_path):
    with unread(tmp_path, "--timeout", 4, "yes $(seq 20)") as process:
        assert process.wait(35) == 124
    assert "--timeout: not done after 4 s" in (tmp_path / "err").read_text()


def test_a_failure_is_noticed_while_the_screen_blocks(tmp_path):
    """The others are stopped at once; the last words are offered for some seconds more."""
    command = shell(
        worker0="seq 6000; sleep 2; exit 3", other="trap 'touch told' TERM; sleep 60 & wait"
    )
    with unread(tmp_path, command) as process:
        wait_until_full(process.stdout)
        end = time.monotonic() + 40
        while not (tmp_path / "told").exists():
            assert time.monotonic() < end, (tmp_path / "err").read_text()
            time.sleep(0.1)
        assert process.wait(30) == 3
    assert "worker 0 on localhost: ended with status 3" in (tmp_path / "err").read_text()


def test_a_lost_supervisor_is_noticed_while_the_screen_blocks(tmp_path):
    job = Job(tmp_path, "-n", 1, "--no-check", "true")  # for its search of processes only
    job.wait()
    name, value = job.mark.split("=")
    with unread(tmp_path, "yes $(seq 20)", env={**os.environ, name: value}) as process:
        wait_until_full(process.stdout)
        (supervisor, *_) = [pid for pid in job.processes() if parent(pid) == process.pid]
        os.kill(supervisor, signal.SIGSTOP)
        assert process.wait(40) == 255
    assert "not heard of for 10 s" in (tmp_path / "err").read_text()
    assert not job.left(20)


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_memory_stays_small_while_the_screen_blocks(tmp_path):
    with unread(tmp_path, "yes $(seq 20)") as process:
        wait_until_full(process.stdout)
        time.sleep(4)
        with open(f"/proc/{process.pid}/status") as file:
            (kilobytes,) = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
        process.terminate()
        assert process.wait(40) == 143
    assert kilobytes < 100_000


def test_a_log_on_a_disk_that_hangs_does_not_hold_up_the_watch(tmp_path):
    os.mkfifo(tmp_path / "worker-0.log")  # to open it for writing blocks until somebody reads
    options = ("--no-check", "--job-dir", tmp_path)
    job = Job(tmp_path, "-n", 1, *options, shell(worker0="echo up; exec sleep 60"))
    job.wait_for("[worker 0] up", 15)
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait(15) == 143
    assert "stopped by SIGTERM" in job.last_words()
    assert not job.left()


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_standard_stream_stops_nothing(tmp_path, closed):
    """The worker writes to both, is asked to stop, and saves."""
    worker = "echo out; echo err >&2; trap 'echo saving; sleep 1; touch saved; exit 75' TERM; "
    worker += "kill -TERM $PPID_OF_LAUNCHER; while :; do sleep 0.1; done"
    line = f'PPID_OF_LAUNCHER=$$ exec "$@" {closed}'
    arguments = [*LAUNCH, "--job-dir", "logs", shell(worker0=worker)]
    done = subprocess.run(["sh", "-c", line, "sh", *arguments], cwd=tmp_path, timeout=30)
    assert done.returncode == 75
    assert (tmp_path / "saved").exists()
    kept = json.loads((tmp_path / "logs" / "job.json").read_text())
    assert kept["status"] == 75 and "stopped by SIGTERM" in kept["cause"]


def test_a_closed_standard_stream_brings_no_traceback(tmp_path):
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *LAUNCH, shell(worker0="echo hi; exit 3", other="exit 0")],
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "worker 0 on localhost: ended with status 3" in done.stderr

"""Nothing is left, whoever is killed."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from gluon_launch.remote.bootstrap import LOADER, REMOTE_PYTHON
from gluon_launch.remote.host import interfaces
from gluon_launch.remote.protocol import SILENCE_S
from launching import ROOT, Job, children, commands, shell

TIME_BUDGET_S = 110
pytestmark = pytest.mark.long
WAIT = "echo up; exec sleep 60"
STALL_S = 3


@pytest.fixture(autouse=True)
def no_folder_is_left(tmp_path, monkeypatch):
    """What the supervisor has brought for the programs goes with them, whoever is killed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    end = time.monotonic() + 20
    while list(tmp_path.glob("gluon-dist-*")) and time.monotonic() < end:
        time.sleep(0.1)
    assert not list(tmp_path.glob("gluon-dist-*"))


def start(tmp_path, *options):
    """A job with two workers that wait."""
    job = Job(tmp_path, "-n", 2, "-s", 1, "--no-check", *options, WAIT)
    for i in range(2):
        job.wait_for(f"[worker {i}] up")
    return job


def supervisor_and_guard(job):
    (supervisor,) = children(job.pid)
    (guard,) = [pid for pid in children(supervisor) if b"-c\0import" in cmdline(pid)]
    return supervisor, guard


def cmdline(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def test_a_killed_launcher_leaves_nothing(tmp_path):
    job = start(tmp_path)
    job.popen.kill()
    assert job.wait() == -9
    assert not job.left(5)


def test_a_killed_supervisor_leaves_nothing(tmp_path):
    job = start(tmp_path)
    os.kill(supervisor_and_guard(job)[0], signal.SIGKILL)
    assert job.wait(10) == 255  # as for any host that is lost
    assert not job.left()


def test_a_killed_guard_ends_the_job(tmp_path):
    job = start(tmp_path)
    os.kill(supervisor_and_guard(job)[1], signal.SIGKILL)
    assert job.wait(10) == 1
    assert "its guard was killed" in job.last_words()
    assert not job.left()


def test_launcher_and_supervisor_killed_together_leave_nothing(tmp_path):
    job = start(tmp_path)
    supervisor, _ = supervisor_and_guard(job)
    job.popen.kill()
    os.kill(supervisor, signal.SIGKILL)
    job.wait()
    assert not job.left()


def test_a_stopped_launcher_counts_as_silent(tmp_path):
    job = start(tmp_path)
    job.popen.send_signal(signal.SIGSTOP)
    time.sleep(SILENCE_S / 2)
    assert job.role("worker-0")
    end = time.monotonic() + 40
    while set(job.processes()) - {job.pid, *children(job.pid)}:
        assert time.monotonic() < end, job.processes()
        time.sleep(0.1)
    job.popen.send_signal(signal.SIGCONT)
    assert job.wait(10) == 1
    assert "nothing was heard from the launcher" in job.last_words()


def test_a_stopped_supervisor_counts_as_lost(tmp_path):
    job = start(tmp_path)
    os.kill(supervisor_and_guard(job)[0], signal.SIGSTOP)
    assert job.wait(20) == 255
    assert f"not heard of for {SILENCE_S} s" in job.last_words()
    assert not job.left()


@pytest.mark.parametrize("is_launcher_first", [False, True])
def test_a_machine_that_stood_still_loses_no_job(tmp_path, is_launcher_first):
    """All stop for longer than a silence may last, as when a virtual machine is moved."""
    job = Job(tmp_path, "-n", 1, "-s", 1, "--no-check", f"echo up; exec sleep {SILENCE_S + 8}")
    job.wait_for("[worker 0] up")
    processes = [*supervisor_and_guard(job), job.pid]
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(SILENCE_S + 6)
    for pid in reversed(processes) if is_launcher_first else processes:
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
    assert job.wait(40) == 0, job.text()
    assert not job.left(5)


def test_what_a_login_shell_had_started_is_none_of_the_jobs(tmp_path):
    """A shell becomes the supervisor: so its children are, also one that has ended."""
    name = tmp_path / "agent"
    name.symlink_to(shutil.which("sleep"))
    words = f"{name} 60 > /dev/null & true & exec {sys.executable} -c '{REMOTE_PYTHON}'"
    with subprocess.Popen(["sh", "-c", words], stdin=-1, stdout=-1) as process:
        hold = b'{"order": "hold", "mark": "m"}\n'
        process.stdin.write(LOADER.encode() + hold)
        process.stdin.flush()
        while b"beat" not in process.stdout.readline():
            pass
        of_agent = [pid for pid in children(process.pid) if str(name).encode() in cmdline(pid)]
        zombies = [pid for pid in children(process.pid) if not cmdline(pid)]
        process.stdin.close()
        process.stdout.read()
        process.wait(20)
    os.kill(of_agent[0], signal.SIGKILL)
    assert not zombies and process.returncode == 0


@pytest.mark.parametrize(
    "escape",
    ["setsid sleep 77 &", "(setsid sleep 77 &) &", "sleep 77 &", "(setsid env -i sleep 78.5 &);"],
)
def test_what_a_worker_forked_goes_when_its_supervisor_is_killed(tmp_path, escape):
    command = shell(worker0=f"{escape} sleep 3; echo up; exec sleep 60")
    job = Job(tmp_path, "-n", 1, "-s", 1, "--no-check", command)
    job.wait_for("[worker 0] up")
    os.kill(supervisor_and_guard(job)[0], signal.SIGKILL)
    job.wait(10)
    assert not job.left() and "sleep 78.5" not in commands()


def test_the_end_of_a_lost_try_does_not_reach_the_next(tmp_path):
    """The guard of a stopped supervisor waits longer than the launcher, and then ends its own."""
    longer = SILENCE_S - 1  # than the guard waits after the launcher
    command = f"case $LAUNCH_ATTEMPT in 1) echo up; exec sleep 60;; *) exec sleep {longer};; esac"
    options = ("--max-restarts", 1, "--min-uptime", 1)
    job = Job(tmp_path, "-n", 1, "-s", 1, "--no-check", *options, command)
    job.wait_for("[worker 0] up")
    os.kill(supervisor_and_guard(job)[0], signal.SIGSTOP)
    assert job.wait(60) == 0, job.text()
    assert "restarting (try 2" in job.last_words()
    assert not job.left(8)


@pytest.mark.parametrize("number", [36_000, 40_000])
def test_what_was_written_last_waits_for_a_slow_screen_too(number):
    """The process has ended, and its last lines fill the pipe that the supervisor will read."""
    command = [sys.executable, str(ROOT / "tools" / "launch.py"), "-n", "1", "--no-check"]
    options = ["--stall-timeout", str(STALL_S)]  # a slow screen is not a silent process
    counts = shell(worker0=f"seq {number}", other="exit 0")
    with subprocess.Popen([*command, *options, counts], stdout=subprocess.PIPE) as process:
        time.sleep(STALL_S + 5)
        lines = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert lines == [f"[worker 0] {i}".encode() for i in range(1, number + 1)]


def test_a_slow_screen_stops_nothing(tmp_path):
    """A pipe that nobody reads for longer than the silence allowed blocks output, not the job."""
    command = [sys.executable, str(ROOT / "tools" / "launch.py"), "-n", "1", "--no-check"]
    chatty = shell(worker0="yes ' a long line' | head -n 100000; echo end", other="exit 0")
    with subprocess.Popen([*command, chatty], stdout=subprocess.PIPE) as process:
        time.sleep(SILENCE_S + 3)
        lines = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert len(lines) == 100001
    assert lines[-1] == b"[worker 0] end"


def run_supervisor(python, orders):
    """Run a bare supervisor: what it reports, its exit status."""
    command = [python, "-c", REMOTE_PYTHON]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        process.stdin.write(LOADER.encode())
        process.stdin.flush()
        ready = process.stdout.readline()
        process.stdin.write(orders)
        process.stdin.close()
        reports = [json.loads(line) for line in [ready, *process.stdout] if line.strip()]
    return reports, process.returncode


@pytest.mark.parametrize("number", [1, 30, 600])
def test_orders_that_wait_behind_its_text_reach_it(number):
    """A container may come late, and each second of the wait has brought an order."""
    orders = b'{"order": "beat"}\n' * number + b'{"order": "leave"}\n'
    done = subprocess.run(
        [sys.executable, "-c", REMOTE_PYTHON],
        input=LOADER.encode() + orders,
        capture_output=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    assert b'"why": "it was told to"' in done.stdout


def test_a_host_without_a_route_says_which_network_to_name():
    order = b'{"order": "address", "toward": "255.255.255.255"}\n{"order": "leave"}\n'
    reports, _ = run_supervisor(sys.executable, order)
    (answer,) = [report for report in reports if report["report"] == "address"]
    networks = [name for name, own in interfaces().items() if not own.startswith("127.")]
    assert all(f"--interface {name}" in answer["why"] for name in networks), answer


def test_a_process_finds_the_package_in_a_folder_of_its_user(tmp_path):
    """At the front of PYTHONPATH, which never gets an empty element: that is the current folder."""
    told = "echo $PYTHONPATH; stat -c %a ${LAUNCH_PREPARED%/*}; ls ${PYTHONPATH%%:*} | grep site"
    for before in ("", "/own"):
        job = Job(tmp_path, "-n", 1, "--no-check", shell(worker0=told), env={"PYTHONPATH": before})
        job.finish(timeout=20)
        startup, mode, file = (line.split("] ")[1] for line in job.stdout.splitlines())
        assert startup.startswith(f"{tmp_path}/gluon-dist-") and mode == "700"
        assert startup.endswith("startup:/own" if before else "startup")
        assert file == "sitecustomize.py"
    asked = Job(tmp_path, "-n", 1, "--no-check", "--no-prepare", shell(worker0="env"))
    asked.finish(timeout=20)
    assert asked.status == 0 and "LAUNCH_PREPARED" not in asked.stdout


def test_the_folder_of_a_job_that_a_batch_system_killed_whole_goes_with_the_next_one(tmp_path):
    abandoned, half, other = (tmp_path / f"gluon-dist-{which}" for which in "abc")
    for folder in (abandoned, half, other):
        folder.mkdir()
        if folder != half:  # whose supervisor was killed while it removed it
            (folder / "lock").touch()
        os.utime(folder, (0, 0))
    with open(other / "lock") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Job(tmp_path, "-n", 1, "--no-check", "true").finish(timeout=20)
    assert [path.name for path in tmp_path.glob("gluon-dist-*")] == [other.name]
    shutil.rmtree(other)


def test_without_a_place_for_the_package_nothing_starts_and_a_line_says_so(tmp_path):
    limited = ("bash", "-c", 'ulimit -f 8; exec "$@"', "bash")  # kilobytes of a file
    job = Job(tmp_path, "-n", 1, "--no-check", "echo up", before=limited)
    job.finish(timeout=20)
    assert job.status == 1 and "[worker 0] up" not in job.stdout
    assert "no place for gluon_dist: " in job.text() and "--no-prepare" in job.text()


@pytest.mark.parametrize("garbage", [b"no json\n", b'{"order": "nonsense"}\n', b"\xff\0\n", b"\n"])
def test_garbage_in_place_of_orders_ends_the_supervisor(garbage):
    reports, status = run_supervisor(sys.executable, b'{"order": "hold", "mark": "m"}\n' + garbage)
    assert (reports[0]["report"], status) == ("ready", 1)


def pythons(*versions):
    """Where Pythons of these versions are: on PATH, or under pyenv."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for version in versions:
        found = sorted(pyenv.glob(f"{version}.*/bin/python")) or [shutil.which(f"python{version}")]
        yield str(found[0]) if found[0] else None


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.13"])
def test_a_host_may_have_an_older_or_newer_python(version):
    (python,) = pythons(version)
    if python is None:
        pytest.skip(f"no Python {version} here, on PATH or under pyenv")
    start = {"order": "start", "name": "a", "command": ["sh", "-c", "echo hi; exit 3"], "env": {}}
    orders = b'{"order": "hold", "mark": "m"}\n' + json.dumps(start).encode() + b"\n"
    reports, status = run_supervisor(python, orders)
    assert reports[0]["python"].startswith(version)
    assert "started" in [report["report"] for report in reports]
    assert status == 0

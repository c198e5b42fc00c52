"""Kill anything, anywhere, at any moment: the job ends, says so, and leaves nothing.

Ten kills by default, `LAUNCH_CHAOS_RUNS=100` for more (`make chaos RUNS=100`).
"""

import json
import os
import pathlib
import random
import re
import signal
import time

import pytest

from launching import CLUSTER, PROGRAMS, Job, cluster, on_hosts, why_no_cluster

RUNS = int(os.environ.get("LAUNCH_CHAOS_RUNS", "10"))
TIME_BUDGET_S = 4 * RUNS
SHARES = "cluster"
pytestmark = pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or "")
SYNC = ("--sync-dst-dir", "/home/ubuntu/job")
WAIT = "echo up; sleep 100 & python -c 'import time; time.sleep(99)'"
TRAIN = "python /home/ubuntu/job/sum_ranks.py --sleep 99"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2")
    yield
    cluster("down")


def on_hosts_now():
    """The processes of the hosts, by pid, but for what holds the hosts."""
    holders = json.loads((CLUSTER / "state.json").read_text())["holders"]
    spaces = {os.readlink(f"/proc/{pid}/ns/pid_for_children") for pid, _ in holders.values()}
    spaces.discard(os.readlink("/proc/self/ns/pid"))
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if command and os.readlink(folder / "ns/pid") in spaces:
                found[int(folder.name)] = command
        except OSError:
            continue
    return {
        pid: command
        for pid, command in found.items()
        if "cluster_host" not in command and "[listener]" not in command
    }


def victims(job):
    """Whoever works for the job, here or there.

    What lives for a moment only is no loss, and what a program forked is that program's business.
    """
    found = {pid: command.decode() for pid, (_, command) in job.processes().items()}
    found.update(on_hosts_now())
    passing = r".* -G |sh -c command -v|(sh -c )?mkdir|rsync|sleep 100 $"
    found = {pid: command for pid, command in found.items() if not re.match(passing, command)}
    return {**found, job.pid: "launch.py"}


@pytest.mark.parametrize("seed", range(RUNS))
def test_any_kill_ends_the_job_and_leaves_nothing(tmp_path, seed):
    dice = random.Random(seed)
    command, moment = dice.choice([(WAIT, 3), (WAIT, 3), (TRAIN, 12)])
    options = (*on_hosts(), *SYNC, *(["--no-check"] if dice.random() < 0.7 else []))
    job = Job(tmp_path, "-n", 2, *options, command, cwd=PROGRAMS)
    time.sleep(dice.uniform(0, moment))
    number = dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
    pid, victim = dice.choice(sorted(victims(job).items()))
    if "stdin.buffer" in victim:
        number = signal.SIGKILL  # the guard of a supervisor takes no TERM
    os.kill(pid, number)
    told = f"{signal.Signals(number).name} to {victim}: {job.text()}"
    try:
        status = job.wait(90)
    except AssertionError as error:
        raise AssertionError(f"{told}\n{error}") from None
    finally:
        job.popen.kill()  # not to disturb the next one
    assert status != 0, told
    end = time.monotonic() + 20
    while (on_hosts_now() or job.processes()) and time.monotonic() < end:
        time.sleep(0.1)
    assert not on_hosts_now(), told
    assert not job.processes(), told
    assert status == -number or "[launch]" in job.last_words(), told

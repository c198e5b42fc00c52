"""Kill anything, anywhere, at any moment: the job ends, says so, and leaves nothing.

Ten kills by default, by ssh; `LAUNCH_CHAOS_RUNS=100` for a hundred by ssh and by each batch system
(`make chaos RUNS=100`). The daemons of a batch system are spared.
"""

import contextlib
import glob
import os
import random
import re
import signal
import sys
import time

import pytest

from launching import PROGRAMS, ROOT, SUM_RANKS, Job, cluster, on_hosts, why_no_cluster
from on_cluster import about, jobs, on_d1, ports, processes_of_hosts

RUNS = {"ssh": 10}
if "LAUNCH_CHAOS_RUNS" in os.environ:
    RUNS = dict.fromkeys(
        ("ssh", "mpi", "slurm", "sge", "yarn"), int(os.environ["LAUNCH_CHAOS_RUNS"])
    )
TIME_BUDGET_S = sum(runs * (4 if launcher == "ssh" else 15) for launcher, runs in RUNS.items())
pytestmark = pytest.mark.long
BATCH = ("mpi", "slurm", "sge")
LEAST_SQUARES = ROOT / "tests" / "users" / "programs" / "least_squares.py"  # a user's, unchanged
SYNC = ("--sync-dst-dir", "/home/ubuntu/job")
WAIT = "echo up; sleep 100 & python -c 'import time; time.sleep(99)'"
# What only waits is no loss, and what a program forked is that program's business.
UNIMPORTANT = re.compile(
    r"rsync|sleep 100 $|nsenter|env -C|\S+/qrsh_starter|sh -c \( test ! -r ./.profile|"
    r"/bin/bash -c exec python3 -I launch_container|"  # becomes that Python
    r".* org\.apache\.hadoop\.\S+\.Client "  # of YARN: it only looks on
)
CANCEL = {"slurm": "scancel --user=root", "sge": "qdel -f -u ubuntu"}  # `ubuntu` has uid 0 there
SLOW = {"yarn": 15}  # seconds until its processes start


@pytest.fixture(scope="module")
def on_hosts_of():
    """A function that starts the hosts for a launcher, and returns the ports in use there."""

    def up(launcher):
        systems = BATCH if launcher in BATCH else {"yarn": ("yarn",)}.get(launcher, ())
        reason = why_no_cluster(*systems)
        if reason:
            pytest.skip(reason)
        cluster("up", "--hosts", "2", *(["--with", ",".join(systems)] if systems else []))
        return ports()

    yield up
    if why_no_cluster() is None:
        cluster("down")


def workers_for(job):
    """Whoever works for the job now, here or there."""
    found = {pid: command.decode(errors="replace") for pid, (_, command) in job.processes().items()}
    found.update(processes_of_hosts())
    return {
        pid: command
        for pid, command in found.items()
        if not UNIMPORTANT.match(command) and not is_second_srun(pid, command, found)
    }


def victims(job):
    """Whoever works for the job for longer than a moment."""
    before = workers_for(job).items()
    time.sleep(0.5)
    return sorted(before & workers_for(job).items())


def is_second_srun(pid, command, found):
    """Srun has a child that only ends the step if srun is killed: without it all goes on."""
    parent = re.search(r"PPid:\s*(\d+)", about(pid, "status"))
    return bool(command.startswith("srun ") and parent and found.get(int(parent[1])) == command)


def hold(pid):
    """Stop a process, so that it does not end by itself just before it is killed."""
    os.kill(pid, signal.SIGSTOP)
    while not re.search(r"State:\s*[Tt]", about(pid, "status")):
        if not re.search(r"State:\s*[^ZX]", about(pid, "status")):
            raise ProcessLookupError
        time.sleep(0.01)


def kill_one(job, launcher, dice):
    """Kill somebody: which process, its command, its role, is it the launcher that submitted?"""
    there = victims(job)
    assert there, "nobody works for the job"
    job.locks = locks_of(processes_of_hosts())
    pid, victim = dice.choice(there)
    number = dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
    hold(pid)  # before it is looked at: a shell may become a program that ignores TERM
    number = signal.SIGKILL if ignores_term(pid, launcher, victim) else number
    environ = about(pid, "environ")
    role = re.search(r"\0LAUNCH_MARK_\w+=(scheduler|server|worker)", environ)
    is_inside = launcher not in CANCEL or "\0LAUNCH_SUBMITTED=" in environ
    os.kill(pid, number)
    for held in pid, job.pid:  # nsenter has stopped, too, if its child is the victim
        with contextlib.suppress(ProcessLookupError):
            os.kill(held, signal.SIGCONT)
        time.sleep(0.2)
    return number, victim, role and role[1], "launch.py" in victim and not is_inside


def cancel_orphan(job, launcher):
    """A submitted job goes on without the launcher that submitted it; then end it."""
    job.wait(10)
    number = re.search(r" job (\d+), its output", job.text())
    if number:
        time.sleep(3)
        assert number[1] in " ".join(jobs())
    on_d1(CANCEL[launcher])


def cancel_requeued(job):
    """Grid Engine queues a job again whose first shepherd was killed; then end it."""
    while job.popen.poll() is None and not re.search(r" R[qrt] ", on_d1("qstat")):
        time.sleep(0.2)  # job.wait() has a limit, pytest too
    on_d1(CANCEL["sge"])


def end_replaced(job, has_begun):
    """YARN replaces an ApplicationMaster that has no containers yet: the job goes on; then end it.

    With its containers lost, the job ends by itself.
    """
    while job.popen.poll() is None and not has_begun:  # pytest has a limit
        has_begun = tells_of_worker(job.text(), 1)
        if has_begun:
            job.interrupt()
        time.sleep(0.2)


def tells_of_worker(text, rank):
    """Has a worker begun: has it printed a line, or does the launcher say on which host it is?

    A user's program may print nothing; MXNet registers it, and then the launcher says where.
    """
    said = rf"^\[worker {rank} |^\[launch\] \S+: (.*, )?worker {rank}(,|$)"
    return re.search(said, text, re.MULTILINE) is not None


@pytest.mark.parametrize(
    "text, has_begun",
    [
        ("[worker 1 d2] up\n", True),
        ("[launch] d1: scheduler, server 0, worker 0\n[launch] d2: server 1, worker 1\n", True),
        ("[launch] d1: scheduler, worker 0\n", False),
        ("[launch] YARN: application_1_1, 2 containers of 2048 MB and 2 cores\n", False),
    ],
)
def test_a_worker_that_prints_nothing_is_known_to_have_begun(text, has_begun):
    assert tells_of_worker(text, 1) == has_begun


def locks_of(processes):
    """The locks that these hold of the folders that they bring MXNet's preparation in."""
    found = set()
    for link in [link for pid in processes for link in glob.glob(f"/proc/{pid}/fd/*")]:
        with contextlib.suppress(OSError):
            found.update(re.findall(r".*/gluon-dist-\w+/lock$", os.readlink(link)))
    return found


def left(launcher, job, before):
    """What is there that should not be: processes, jobs in a queue, ports."""
    found = [*processes_of_hosts().items(), *job.processes().items(), *(ports() - before)]
    if launcher in ("ssh", "mpi"):  # a batch system kills all at once: the next job removes it
        found += filter(os.path.exists, job.locks)
    if not found and launcher in (*CANCEL, "yarn"):
        found = jobs()
    return found


def start(folder, launcher, dice):
    """A job on both hosts, and for how long to let it be."""
    check = [] if dice.random() < 0.3 else ["--no-check"]
    kind, moment = dice.choice([("wait", 3), ("train", 12), ("own", 8)])
    own = f"{sys.executable} {LEAST_SQUARES} --steps 1000000"
    if launcher == "ssh":
        trains = "python /home/ubuntu/job/sum_ranks.py --sleep 99"
        command = {"wait": WAIT, "own": own, "train": trains}[kind]
        return Job(folder, "-n", 2, *on_hosts(), *SYNC, *check, command, cwd=PROGRAMS), moment
    trains = f"{sys.executable} {SUM_RANKS} --sleep 99"
    command = {"wait": WAIT, "own": own, "train": trains}[kind]
    hosts = ("-H", "d1,d2", "--launcher-option=--allow-run-as-root") if launcher == "mpi" else ()
    words = ("-n", 2, "--launcher", launcher, *hosts, *check, command)
    return Job(folder, *words, cwd=folder, inside="d1"), moment + SLOW.get(launcher, 4)


def ignores_term(pid, launcher, victim):
    """Would TERM not end this process? Under Slurm a worker's shell is told to wait.

    And qrsh forgets a TERM for the CONT that comes after it.
    """
    masks = re.findall(r"Sig(?:Blk|Ign):\s*(\w+)", about(pid, "status"))
    ignored = any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)
    return (
        ignored or "/qrsh " in victim or (launcher == "slurm" and victim.startswith("sh -c trap"))
    )


def clear(job):
    """Not to disturb the next one."""
    job.popen.kill()
    for pid in [*processes_of_hosts(), *job.processes()]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def strike(job, launcher, dice, moment):
    """Kill somebody after a while, and end what such a kill lets go on; returns what was done."""
    time.sleep(dice.uniform(0, moment))
    has_begun = tells_of_worker(job.text(), r"\d")
    try:
        number, victim, role, is_outside = kill_one(job, launcher, dice)
    except ProcessLookupError:  # it has just ended
        number, victim, role, is_outside = kill_one(job, launcher, dice)
    if is_outside and number == signal.SIGKILL:
        cancel_orphan(job, launcher)
    if "sge_shepherd" in victim:
        cancel_requeued(job)
    if re.search(r"ApplicationMaster|_000001/", victim):  # in the first container
        end_replaced(job, has_begun)
    return number, victim, role


def assert_ended(job, number, role):
    """It ended with a status that tells of the kill, and with a word."""
    status = job.wait(90)
    assert status != 0
    assert not role or status == 128 + number
    assert status == -number or "[launch]" in job.last_words()


def assert_nothing_left(launcher, job, before):
    end = time.monotonic() + 30
    while left(launcher, job, before):
        assert time.monotonic() < end, left(launcher, job, before)
        time.sleep(0.2)


@pytest.mark.parametrize(
    "launcher, seed", [(launcher, seed) for launcher in RUNS for seed in range(RUNS[launcher])]
)
def test_any_kill_ends_the_job_and_leaves_nothing(tmp_path, on_hosts_of, launcher, seed):
    before, dice = on_hosts_of(launcher), random.Random(seed)
    job, moment = start(tmp_path, launcher, dice)
    told = "nobody was killed"
    try:
        number, victim, role = strike(job, launcher, dice, moment)
        told = f"{number.name} to {victim}({role})"
        assert_ended(job, number, role)
        assert_nothing_left(launcher, job, before)
    except AssertionError as error:
        on_d1("; ".join(CANCEL.values()))
        raise AssertionError(f"{told}\n{error}\n{job.text()}") from None
    finally:
        clear(job)

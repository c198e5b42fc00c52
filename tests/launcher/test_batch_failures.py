"""Whoever is killed in a batch system: the job ends there and here, and nothing is left."""

import os
import re
import signal
import time

import pytest

from launching import Job, children, cluster, shell, why_no_cluster
from on_cluster import about, jobs, on_d1, processes_of_hosts

TIME_BUDGET_S = 120
SHARES = "batch systems"
WHY_NOT = why_no_cluster("slurm", "sge", "mpi")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
UP = shell(other="echo up; exec sleep 300")
INSIDE = "python .*launch.py"  # the launcher in the job


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2", "--with", "mpi,slurm,sge")
    yield
    cluster("down")


def start(folder, system, *words, **more):
    """A job that is submitted on d1."""
    return Job(folder, "--launcher", system, *words, cwd=folder, inside="d1", **more)


def running(folder, system, command=UP):
    """A job with two workers that wait, on d1 and d2."""
    job = start(folder, system, "-n", 2, command)
    for i in range(2):
        job.wait_for(f"[worker {i} d{i + 1}] up")
    return job


def kill(pattern, which=min):
    """Kill what works for the job: the first process with such a command, or the last."""
    found = [pid for pid, command in processes_of_hosts().items() if re.search(pattern, command)]
    if pattern == INSIDE:
        found = [pid for pid in found if "\0LAUNCH_SUBMITTED=" in about(pid, "environ")]
    os.kill(which(found), signal.SIGKILL)


def nothing_is_left(job, seconds=5):
    """No process of it on any host, no job in a queue."""
    assert not job.left(seconds), job.left()
    end = time.monotonic() + 20
    while processes_of_hosts() or jobs():
        assert time.monotonic() < end, (processes_of_hosts(), jobs())
        time.sleep(0.2)


def wrapped(folder, program, act):
    """A PATH on which a program of the batch system is late, or fails."""
    folder.mkdir()
    (folder / program).write_text(f"#!/bin/sh\n{act}\n")
    (folder / program).chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@pytest.mark.parametrize("system, program", [("slurm", "sbatch"), ("sge", "qsub")])
def test_a_submission_that_is_killed_is_one_line(tmp_path, system, program):
    path = wrapped(tmp_path / "bin", program, "kill -9 $$")
    job = Job(tmp_path, "-n", 1, "--launcher", system, "true", cwd=tmp_path, env=path)
    job.finish(20)
    assert (job.status, len(job.stderr.splitlines())) == (2, 1), job.stderr
    assert f"does not take the job: {program} ended with -9" in job.stderr


@pytest.mark.parametrize("system, program", [("slurm", "sbatch"), ("sge", "qsub")])
def test_ctrl_c_during_the_submission_cancels_the_job(tmp_path, system, program):
    path = wrapped(tmp_path / "bin", program, f'touch now; sleep 1; exec /usr/bin/{program} "$@"')
    job = start(tmp_path, system, "-n", 2, UP, env=path, before=("setsid",))
    while not (tmp_path / "now").exists():
        time.sleep(0.05)
    os.killpg(children(job.pid)[0], signal.SIGINT)
    job.finish(60)
    assert job.status == 130, job.text()
    assert "is cancelled" in job.last_words()
    nothing_is_left(job)


@pytest.mark.parametrize(
    "system, who, status",
    [
        ("slurm", INSIDE, 137),
        ("slurm", r"slurm_script $", 137),
        ("slurm", r"slurmstepd: \[\d+\.batch\]", 1),
        ("slurm", r"slurmstepd: \[\d+\.1\]", 255),
        ("slurm", r"srun .*nodelist=d2", 255),
        ("sge", INSIDE, 137),
        ("sge", r"/job_scripts/", 137),
        ("sge", r"qrsh -inherit", 255),
    ],
)
def test_whoever_is_killed_the_job_ends(tmp_path, system, who, status):
    job = running(tmp_path, system)
    kill(who)
    job.finish(60)
    assert job.status == status, job.text()
    assert "[launch]" in job.last_words()
    nothing_is_left(job)


def test_grid_engine_queues_a_job_again_whose_shepherd_was_killed(tmp_path):
    """Grid Engine may kill all of the job first: it waits until our launcher has seen it."""
    job = running(tmp_path, "sge", f"[ $LAUNCH_ATTEMPT = 1 ] || exit 7; {UP}")
    on_d1("pkill -STOP -x sge_execd")
    try:
        kill(r"sge_shepherd -bg")
        job.wait_for("who waits for it, was killed", 30)
    finally:
        on_d1("pkill -CONT -x sge_execd")
    job.finish(60)
    assert job.status == 7, job.text()
    nothing_is_left(job)


@pytest.mark.parametrize("system", ["slurm", "sge"])
def test_nothing_goes_on_without_the_batch_script(tmp_path, system):
    """Even where there is one host, which the batch system need not reach again."""
    words = ("-n", 1, "--max-restarts", 3, "--min-uptime", 0)
    job = start(tmp_path, system, *words, UP)
    job.wait_for("[worker 0 d1] up")
    kill(r"slurm_script $|/job_scripts/")
    job.finish(60)
    assert job.status == 137, job.text()
    nothing_is_left(job)


@pytest.mark.parametrize("system, who", [("slurm", "^srun .*d2"), ("sge", "qrsh_starter")])
def test_what_only_waits_is_not_missed(tmp_path, system, who):
    """Srun's child, which ends the step if srun is killed, and what qrsh started on the host."""
    act = "echo up; while [ ! -e end ]; do sleep 0.1; done; exit 3"
    job = running(tmp_path, system, act)
    kill(who, which=max)
    time.sleep(3)
    assert job.popen.poll() is None, job.text()
    (tmp_path / "end").touch()
    job.finish(60)
    assert job.status == 3, job.text()
    nothing_is_left(job)


def test_a_job_that_grid_engine_cannot_start_is_cancelled_with_the_reason(tmp_path):
    job = start(tmp_path, "sge", "-n", 2, "--launcher-option=-wd /nowhere", "true")
    job.finish(60)
    assert job.status == 1, job.text()
    assert re.search(r"job \d+: cancelled: .*/nowhere", job.last_words())
    nothing_is_left(job)


def test_a_job_that_saves_at_once_is_not_queued_again_for_ever(tmp_path):
    job = start(tmp_path, "sge", "-n", 2, shell(other="exit 75"))
    job.finish(90)
    assert job.status == 75, job.text()
    assert "less than 30 s after a second start: not queued again" in job.text()
    nothing_is_left(job)


def test_a_host_outside_of_the_allocation_is_out_of_reach(tmp_path):
    before = ("salloc", "--quiet", "--nodes=1", "--nodelist=d1")
    job = start(tmp_path, "slurm", "-n", 2, "-H", "d1,d2", "true", before=before)
    job.finish(60)
    assert job.status == 255, job.text()
    assert "d2: no connection: srun: error:" in job.last_words()


def test_a_job_that_cannot_be_cancelled_is_left_with_a_word(tmp_path):
    path = wrapped(tmp_path / "bin", "scancel", "echo no controller >&2; exit 1")
    job = start(tmp_path, "slurm", "-n", 2, UP, env=path)
    job.wait_for("[worker 1 d2] up")
    for _ in range(3):
        job.interrupt()
        time.sleep(1)
    job.wait(30)
    assert job.status == 130, job.text()
    assert "scancel: no controller" in job.last_words()
    assert re.search(r"job \d+ may still run", job.last_words())
    on_d1("scancel --user=root")
    nothing_is_left(job)

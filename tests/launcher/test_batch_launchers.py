"""Jobs that MPI, Slurm and Grid Engine start: the real systems, on the cluster."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from launching import (
    SUM_RANKS,
    TRAIN,
    Job,
    accuracies,
    cluster,
    launch,
    on_hosts,
    shell,
    why_no_cluster,
)
from restarting import GLOBAL_BATCH, OPTIONS, PROGRAM, assert_same, finished, training

TIME_BUDGET_S = 320
SHARES = "batch systems"
WHY_NOT = why_no_cluster("slurm", "sge", "mpi")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
SYSTEMS = ("mpi", "slurm", "sge")
SUM = (sys.executable, SUM_RANKS)
SMALL = "--data synthetic --num-examples 512 --network resnet --num-layers 8 --batch-size 64 "
SMALL += "--num-epochs 1"
UNTIL_TOLD = "trap 'echo saved; exit 75' TERM; echo up; while :; do sleep 0.1; done"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2", "--with", ",".join(SYSTEMS))
    yield
    cluster("down")


@pytest.fixture(autouse=True)
def queues():
    """A job that a failed test has left is no concern of the next."""
    yield
    on_d1("scancel $(squeue --noheader --format=%i); qdel -f -u '*'", check=False)


def on_d1(command, check=True):
    return cluster("ssh", "d1", command, check=check).stdout.strip()


def arguments(system):
    """Two workers, by this system; mpirun outside of an allocation needs the hosts."""
    hosts = ("-H", "d1,d2", "--launcher-option=--allow-run-as-root") if system == "mpi" else ()
    return ("-n", 2, "-s", 2, "--launcher", system, *hosts)


def start(folder, system, *options, cwd=None, **more):
    """A job that is started on d1, where people log in."""
    return Job(folder, *arguments(system), *options, cwd=cwd or folder, inside="d1", **more)


def nothing_is_left(job):
    """No job in a queue, no process of it on any host."""
    assert not job.left(5), job.left()
    end = time.monotonic() + 60
    while on_d1("squeue --noheader; qstat"):
        assert time.monotonic() < end, on_d1("squeue; qstat")
        time.sleep(0.2)


@pytest.fixture(scope="module")
def by_ssh(tmp_path_factory):
    """The accuracies of the main job, started by ssh."""
    folder = tmp_path_factory.mktemp("ssh")
    words = ("-n", 2, "-s", 2, *on_hosts(), "--no-check", *TRAIN, *SMALL.split())
    job = launch(folder, *words, cwd=folder)
    assert job.status == 0, job.text()
    return accuracies(job.stdout)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_main_job_trains_on_two_hosts_as_it_does_by_ssh(tmp_path, by_ssh, system):
    job = start(tmp_path, system, *TRAIN, *SMALL.split())
    job.finish(120)
    assert job.status == 0, job.text()
    assert len(by_ssh) == 1 and accuracies(job.stdout) == by_ssh
    assert sorted(set(re.findall(r"\[worker \d (d\d)\] Epoch 0", job.stdout))) == ["d1", "d2"]
    assert "d1: scheduler, server 0, worker 0\n" in job.stderr
    nothing_is_left(job)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_killed_worker_ends_the_job_with_its_status(tmp_path, system):
    job = start(tmp_path, system, shell(other="echo up; exec sleep 60"))
    job.wait_for("[worker 1 d2] up")
    os.kill(job.top("worker-1"), signal.SIGKILL)
    job.finish(60)
    assert job.status == 137, job.text()
    assert "worker 1 on d2: was killed by SIGKILL" in job.last_words()
    nothing_is_left(job)


@pytest.mark.parametrize("system", SYSTEMS)
def test_ctrl_c_lets_the_workers_save_and_leaves_no_job(tmp_path, system):
    job = start(tmp_path, system, shell(worker0=UNTIL_TOLD, worker1=UNTIL_TOLD))
    job.wait_for("[worker 0 d1] up")
    job.wait_for("[worker 1 d2] up")
    job.interrupt()
    job.finish(60)
    assert job.status == 75, job.text()
    assert "[worker 0 d1] saved" in job.text() and "[worker 1 d2] saved" in job.text()
    nothing_is_left(job)


@pytest.mark.parametrize("system, wait", [("slurm", "--begin=now+3600"), ("sge", "-h")])
def test_ctrl_c_takes_a_job_that_waits_out_of_the_queue(tmp_path, system, wait):
    job = start(tmp_path, system, f"--launcher-option={wait}", "true")
    job.wait_for("PENDING")
    job.interrupt()
    job.finish(60)
    assert job.status == 130, job.text()
    nothing_is_left(job)


@pytest.mark.parametrize("system", SYSTEMS)
def test_two_jobs_of_one_system_run_side_by_side(tmp_path, system):
    (tmp_path / "other").mkdir()
    both = f"[ -e {tmp_path}/one -a -e {tmp_path}/two ]"
    act = f"touch {tmp_path}/$JOB; until {both}; do sleep 0.1; done; echo of $JOB"
    act = shell(worker0=act, other="true")
    folders = {"one": tmp_path, "two": tmp_path / "other"}
    jobs = {name: start(folders[name], system, "--env", f"JOB={name}", act) for name in folders}
    for name, job in jobs.items():
        job.finish(90)
        assert job.status == 0, job.text()
        assert re.findall(r"of \w+", job.stdout) == [f"of {name}"]


def resumed(folder, *, by, system="slurm"):
    """Train with checkpoints, let `by(id)` queue the job again; the folder is left."""
    words = (*OPTIONS, "--batch-size", GLOBAL_BATCH // 2, "--model-prefix", folder / "model")
    pause = ("--env", "TINY_PAUSE=0.5", "--env", "OMP_NUM_THREADS=1", "--env", "PYTHONPATH")
    command = (sys.executable, PROGRAM, *words, "--resume", "auto")
    job = start(folder, system, *pause, *command)
    job.wait_for("Epoch[1] Batch [2]")
    by(re.search(r"job (\d+), its output", job.text())[1])
    finished(job)
    assert re.search(r"Resumed from .*", job.text()), job.text()
    nothing_is_left(job)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    finished(training(folder, folder / "model", workers=2))
    return folder / "model"


def by_requeue(number):
    on_d1(f"scontrol requeue {number}")


def by_urgent_job(_):
    on_d1("srun --partition=urgent --nodes=2 --exclusive true")


def by_request_to_a_worker(number):
    on_d1("pkill -USR1 -of train_tiny.py")


@pytest.mark.parametrize("by", [by_requeue, by_urgent_job, by_request_to_a_worker])
def test_a_job_that_slurm_queues_again_ends_like_one_that_was_not(tmp_path, undisturbed, by):
    resumed(tmp_path, by=by)
    assert_same(tmp_path / "model", undisturbed)


def test_a_job_that_grid_engine_queues_again_ends_like_one_that_was_not(tmp_path, undisturbed):
    resumed(tmp_path, by=by_request_to_a_worker, system="sge")
    assert_same(tmp_path / "model", undisturbed)


def test_a_job_saves_before_its_time_limit_and_is_queued_again(tmp_path):
    """Its limit is an hour until both workers are up; then it is so near that Slurm warns it."""
    limit = ("--launcher-option=--time=60", "--launcher-option=--signal=B:USR1@300")
    act = "[ $LAUNCH_ATTEMPT = 1 ] || exit 0; " + UNTIL_TOLD
    job = start(tmp_path, "slurm", *limit, shell(worker0=act, worker1=act))
    job.wait_for("[worker 0 d1] up")
    job.wait_for("[worker 1 d2] up")
    number = re.search(r"job (\d+), its output", job.text())[1]
    on_d1(f"scontrol update JobId={number} TimeLimit=4")
    job.finish(120)
    assert job.status == 0, job.text()
    assert "[worker 0 d1] saved" in job.text() and "PENDING (BeginTime)" in job.text()
    nothing_is_left(job)


@pytest.mark.parametrize("system", ["slurm", "ssh", "mpi"])
def test_in_an_allocation_the_hosts_need_not_be_named(tmp_path, system):
    root = ("--launcher-option=--allow-run-as-root",) if system == "mpi" else ()
    shown = ("--show", "server:*,worker:*")
    words = ("-n", 3, "--launcher", system, *root, *shown, "echo here")
    before = ("salloc", "--quiet", "--nodes=2")
    job = Job(tmp_path, *words, cwd=tmp_path, inside="d1", before=before)
    job.finish(60)
    assert job.status == 0, job.text()
    on_d2 = sorted(re.findall(r"\[(.*) d2\] here\n", job.stdout))
    assert on_d2 == ["server 1", "worker 0", "worker 2"] and job.stdout.count("d1] here") == 3
    nothing_is_left(job)


def test_mpich_starts_the_same_job(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpirun").write_text('#!/bin/sh\nexec /usr/bin/mpirun.mpich "$@"\n')
    (tmp_path / "bin" / "mpirun").chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    words = ("-n", 2, "--launcher", "mpi", "-H", "d1,d2", *SUM)
    job = Job(tmp_path, *words, cwd=tmp_path, inside="d1", env={"PATH": path})
    job.finish(60)
    assert job.status == 0, job.text()
    assert "[worker 1 d2] worker 1 is rank 1 of 2, sum 3\n" in job.stdout


def test_open_mpi_as_root_is_one_line_and_the_way_out(tmp_path):
    job = launch(tmp_path, "-n", 2, "--launcher", "mpi", "true", timeout=60)
    assert job.status != 0
    assert "no connection: mpirun has detected an attempt to run as root" in job.last_words()
    assert "--launcher-option=--allow-run-as-root" in job.last_words()


def test_a_host_that_mpirun_cannot_find_is_named(tmp_path):
    root = "--launcher-option=--allow-run-as-root"
    job = Job(tmp_path, "-n", 2, "--launcher", "mpi", root, "-H", "d1,d7", "true", inside="d1")
    job.finish(60)
    assert job.status == 255, job.text()
    assert "d7: no connection: ssh: Could not resolve hostname d7" in job.last_words()
    assert "hint: no such name: the hosts file" in job.last_words()


@pytest.mark.parametrize(
    "system, try_it", [("slurm", "sbatch --test-only"), ("sge", "qsub -verify")]
)
def test_the_script_of_a_dry_run_is_accepted_by_the_system(tmp_path, system, try_it):
    job = start(tmp_path, system, "--dry-run", *SUM)
    job.finish(20)
    assert job.status == 0 and "--dry-run" not in job.stdout
    (tmp_path / "script").write_text(job.stdout)
    subprocess.run(["bash", "-n", tmp_path / "script"], check=True)
    assert cluster("ssh", "d1", f"{try_it} {tmp_path}/script", check=False).returncode == 0
    on_d1(f"cd {tmp_path} && TEST_MARK=1 {try_it.split()[0]} script")
    end = time.monotonic() + 100
    while "rank 1 of 2, sum 3" not in "".join(p.read_text() for p in tmp_path.glob("launch-*")):
        assert time.monotonic() < end, [p.read_text() for p in tmp_path.glob("launch-*")]
        time.sleep(0.2)


@pytest.mark.parametrize("system", ["mpi", "slurm"])
def test_the_script_of_a_dry_run_inside_an_allocation_runs_the_same_job(tmp_path, system):
    root = ("--launcher-option=--allow-run-as-root",) if system == "mpi" else ()
    words = ("-n", 2, "--launcher", system, *root, "--dry-run", *SUM)
    before = ("salloc", "--quiet", "--nodes=2")
    job = Job(tmp_path, *words, cwd=tmp_path, inside="d1", before=before)
    job.finish(20)
    (tmp_path / "script").write_text(job.stdout)
    script = "salloc --quiet --nodes=2 timeout 100 bash script"
    said = on_d1(f"cd {tmp_path} && TEST_MARK=1 {script}")
    assert "worker 0 is rank 0 of 2, sum 3" in said and "worker 1 is rank 1 of 2, sum 3" in said


def test_slurm_keeps_a_secret_out_of_the_script(tmp_path):
    secret = ("--env", "API_TOKEN=vf8s2kwq", "--launcher-option=--hold")
    job = start(tmp_path, "slurm", *secret, "true")
    job.wait_for("PENDING")
    number = re.search(r"job (\d+), its output", job.text())[1]
    assert "--env API_TOKEN --" in on_d1(f"scontrol write batch_script {number} -")
    assert "vf8s2kwq" not in on_d1(f"scontrol write batch_script {number} -")
    on_d1(f"scontrol release {number}")
    job.finish(60)
    assert job.status == 0, job.text()


def test_grid_engine_takes_no_secret(tmp_path):
    job = start(tmp_path, "sge", "--env", "API_TOKEN=vf8s2kwq", "true")
    job.finish(20)
    assert job.status == 2
    assert "--env API_TOKEN: Grid Engine shows it to everybody" in job.stderr


@pytest.mark.parametrize(
    "system, option, why",
    [
        ("slurm", "--partition=none", "invalid partition"),
        ("slurm", "--nonsense", "unrecognized option '--nonsense'"),
        ("slurm", "partition=normal", "those of sbatch and srun begin with a dash"),
        ("sge", "-q none", "unknown queue"),
    ],
)
def test_what_the_system_does_not_take_is_one_line_and_status_2(tmp_path, system, option, why):
    job = start(tmp_path, system, f"--launcher-option={option}", "true")
    job.finish(20)
    assert job.status == 2 and len(job.stderr.splitlines()) == 1
    assert why in job.stderr.lower()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP])
def test_a_launcher_that_was_killed_leaves_the_job_to_the_system(tmp_path, number):
    """HUP comes when the login is lost."""
    job = start(tmp_path, "slurm", shell(other=f"echo up; sleep 4; touch {tmp_path}/done"))
    job.wait_for("up")
    job.interrupt(number)
    job.wait()
    nothing_is_left(job)
    assert (tmp_path / "done").exists()


def test_an_option_of_slurm_may_have_spaces_and_quotes(tmp_path):
    job = start(tmp_path, "slurm", "--launcher-option=--comment=it's a b", "true")
    job.wait_for("its output")
    number = re.search(r"job (\d+), its output", job.text())[1]
    assert "Comment=it's a b" in on_d1(f"scontrol show job {number}")
    job.finish(60)
    assert job.status == 0, job.text()


def test_grid_engine_takes_no_quotes_in_a_folder(tmp_path):
    folder = tmp_path / "it's"
    folder.mkdir()
    job = start(folder, "sge", "true")
    job.finish(20)
    assert (job.status, len(job.stderr.splitlines())) == (2, 1), job.stderr
    assert "takes no quotes in the name of a folder" in job.stderr


@pytest.mark.parametrize("system", ["slurm", "sge"])
def test_a_check_in_a_folder_with_a_strange_name(tmp_path, system):
    folder = tmp_path / "50% off"
    folder.mkdir()
    job = start(folder, system, "--check")
    job.finish(60)
    assert job.status == 0, job.text()
    assert re.search(r"^\[launch\] d2 +ok ", job.text(), re.MULTILINE)


def test_what_an_earlier_job_of_this_number_wrote_is_not_shown(tmp_path):
    """After the numbers have begun at 1 again."""
    number = int(on_d1("sbatch --parsable --output=/dev/null --wrap true")) + 1
    (tmp_path / f"launch-{number}.out").write_text("of another job\n")
    job = start(tmp_path, "slurm", shell(other="echo of this one"))
    job.finish(60)
    assert f"Slurm job {number}, its output" in job.text()
    assert "of this one" in job.stdout and "of another job" not in job.stdout

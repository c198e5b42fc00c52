"""Jobs that YARN starts: its real daemons, on the cluster."""

import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import time

import pytest

from cluster_batch import PROGRAMS
from launching import (
    CLUSTER,
    ROOT,
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
from on_cluster import about, jobs, on_d1, processes_of_hosts
from restarting import GLOBAL_BATCH, OPTIONS, PROGRAM, assert_same, finished, training

TIME_BUDGET_S = 225
SHARES = "batch systems"
WHY_NOT = why_no_cluster("yarn")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
SMALL = "--data synthetic --num-examples 512 --network resnet --num-layers 8 --batch-size 64"
UP = shell(other="echo up; exec sleep 300")
UNTIL_TOLD = "trap 'echo saved; exit 75' TERM; echo up; while :; do sleep 0.1; done"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2", "--with", "yarn")
    yield
    cluster("down")


@pytest.fixture(autouse=True)
def room():
    """A job that a failed test has left is no concern of the next."""
    yield
    for line in jobs():
        on_d1(f"{PROGRAMS}/yarn application -kill {line.split()[0]}")
    for pid in processes_of_hosts():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def start(folder, *options, **more):
    """A job with two workers, started on d1; a host has room for one of them."""
    words = ("-n", 2, "-s", 2, "--launcher", "yarn", *options)
    return Job(folder, *words, cwd=folder, inside="d1", **more)


def running(folder, *options, command=UP, **more):
    """A job whose workers are up; on which host is each?"""
    job = start(folder, *options, command, **more)
    for i in range(2):
        job.wait_for(f"[worker {i} ")
    found = dict(re.findall(r"\[worker (\d) (d\d)\] up", job.text()))
    assert sorted(found.values()) == ["d1", "d2"]
    return job, found


def nothing_is_left(job):
    """No process of it on any host, no application."""
    assert not job.left(5), job.left()
    end = time.monotonic() + 20
    while processes_of_hosts() or jobs():
        assert time.monotonic() < end, (processes_of_hosts(), jobs())
        time.sleep(0.2)


def test_the_main_job_trains_on_two_hosts_as_it_does_by_ssh(tmp_path):
    job = start(tmp_path, *TRAIN, *SMALL.split(), "--num-epochs", 2)
    job.finish(120)
    assert job.status == 0, job.text()
    words = ("-n", 2, "-s", 2, *on_hosts(), "--no-check", *TRAIN, *SMALL.split())
    by_ssh = launch(tmp_path, *words, "--num-epochs", 2, cwd=tmp_path)
    assert len(accuracies(job.stdout)) == 2
    assert accuracies(job.stdout) == accuracies(by_ssh.stdout)
    assert sorted(set(re.findall(r"\[worker \d (d\d)\] Epoch 0", job.stdout))) == ["d1", "d2"]
    nothing_is_left(job)


def test_a_killed_worker_ends_the_job_with_its_status(tmp_path):
    job, host = running(tmp_path)
    os.kill(job.top("worker-1"), signal.SIGKILL)
    job.finish(60)
    assert job.status == 137, job.text()
    assert f"worker 1 on {host['1']}: was killed by SIGKILL" in job.last_words()
    nothing_is_left(job)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_container_ends_the_job(tmp_path, number):
    job, _ = running(tmp_path)
    found = processes_of_hosts().items()
    pids = [p for p, c in found if c.startswith("python3 -I launch_container.py")]
    os.kill(min(pids), number)
    job.finish(60)
    assert job.status == (255 if number == signal.SIGKILL else 128 + number), job.text()
    nothing_is_left(job)


def test_a_killed_application_master_ends_the_job(tmp_path):
    """Its containers end with it. Those of the next one, which YARN starts, come too late."""
    job, _ = running(tmp_path)
    found = processes_of_hosts().items()
    (pid,) = (p for p, c in found if re.match(r"\S+java .*\.ApplicationMaster ", c))
    os.kill(pid, signal.SIGKILL)
    job.finish(60)
    assert job.status in (143, 255), job.text()
    nothing_is_left(job)


def test_an_application_that_somebody_kills_ends_the_job(tmp_path):
    job, _ = running(tmp_path)
    number = re.search(r"application_\d+_\d+", job.text())[0]
    on_d1(f"{PROGRAMS}/yarn application -kill {number}")
    job.finish(60)
    assert job.status in (143, 255), job.text()
    nothing_is_left(job)


def test_ctrl_c_lets_the_workers_save_and_leaves_no_application(tmp_path):
    job, _ = running(tmp_path, command=shell(worker0=UNTIL_TOLD, worker1=UNTIL_TOLD))
    job.interrupt()
    job.finish(60)
    assert job.status == 75, job.text()
    assert job.stdout.count("] saved") == 2
    nothing_is_left(job)


def test_ctrl_c_while_the_job_waits_for_room_takes_it_out_of_the_queue(tmp_path):
    job = start(tmp_path, "-n", 4, UP)
    job.wait_for("waits for some of its 4 containers: is there room")
    job.interrupt()
    job.finish(60)
    assert job.status == 130, job.text()
    nothing_is_left(job)


def test_two_jobs_run_side_by_side(tmp_path):
    (tmp_path / "other").mkdir()
    small = ("--worker-memory", "512m", "--server-memory", "256m", "--jobname", "small")
    folders = (tmp_path, tmp_path / "other")
    command = f"echo $LAUNCH_LOCAL_RANK of $LAUNCH_LOCAL_WORKERS; exec {sys.executable} {SUM_RANKS}"
    started = [start(folder, *small, command) for folder in folders]
    for job in started:
        job.finish(90)
        assert job.status == 0, job.text()
        for rank in range(2):
            assert f"] worker {rank} is rank {rank} of 2, sum 3\n" in job.stdout
        hosts = re.findall(r"\[worker \d (d\d)(?:/2)?\] worker", job.stdout)
        places = sorted(re.findall(r"\[worker .*\] (\d of \d)", job.stdout))
        assert places == (["0 of 2", "1 of 2"] if hosts[0] == hosts[1] else ["0 of 1", "0 of 1"])


def test_a_killed_container_is_no_more_than_a_restart(tmp_path):
    """The parameters at the end are those of a training that nobody disturbed."""
    undisturbed = tmp_path / "undisturbed"
    finished(training(tmp_path, undisturbed, workers=2))
    words = (*OPTIONS, "--batch-size", GLOBAL_BATCH // 2, "--model-prefix", tmp_path / "model")
    pause = ("--env", "TINY_PAUSE=0.5", "--env", "OMP_NUM_THREADS=1", "--env", "PYTHONPATH")
    again = ("--max-restarts", 1, "--min-uptime", 0)
    job = start(tmp_path, *again, *pause, sys.executable, PROGRAM, *words, "--resume", "auto")
    job.wait_for("Epoch[1] Batch [2]")
    found = processes_of_hosts().items()
    os.kill(min(p for p, c in found if c.startswith("python3 -I launch_c")), signal.SIGKILL)
    finished(job)
    assert "Resumed from" in job.text() and job.text().count("YARN: application_") == 2
    assert_same(tmp_path / "model", undisturbed)
    nothing_is_left(job)


def test_the_options_of_dmlc_submit_reach_yarn_and_a_secret_does_not(tmp_path):
    words = ("--queue", "urgent", "--worker-memory", "1g", "--server-memory", "512m")
    secret = ("--env", "API_TOKEN", "--jobname", "mine")
    job, _ = running(tmp_path, *words, *secret, env={"API_TOKEN": "vf8s2kwq"})
    assert "2 containers of 1536 MB and 2 cores" in job.text()
    assert re.search(r"mine RUNNING root.urgent", " ".join(jobs()))
    said = on_d1("cat /proc/[0-9]*/cmdline; cat /run/hadoop/logs/*/*/*").replace("\0", " ")
    assert "launch_container.py" in said and "vf8s2kwq" not in said
    (worker,) = job.role("worker-0")
    assert "API_TOKEN=vf8s2kwq" in about(worker, "environ")
    job.interrupt(signal.SIGTERM)
    job.finish(60)
    assert job.status == 143, job.text()
    nothing_is_left(job)


def test_files_and_archives_come_to_the_folder_of_the_command(tmp_path):
    (tmp_path / "a.txt").write_text("of a\n")
    (tmp_path / "c.txt").write_text("of c\n")
    on_d1(f"cd {tmp_path} && python3 -m tarfile -c b.tar.gz c.txt")
    words = ("--files", "a.txt#d.txt", "--archives", "b.tar.gz")
    job = start(tmp_path, *words, shell(worker0="cat d.txt c.txt; pwd", other="true"))
    job.finish(60)
    assert job.status == 0, job.text()
    assert re.search(r"\] of a\n.*\] of c\n.*container_\d+", job.stdout, re.DOTALL), job.text()


def test_the_example_trains_and_goes_on_when_started_again(tmp_path):
    """Only what this cluster has less of is changed."""
    command = f"cd {ROOT} && GPUS=0 MEMORY=1g CORES=1 OUT={tmp_path} examples/cifar10-yarn.sh"
    words = ("ssh", "d1", f"{command} {SMALL} 2>&1 --num-epochs")
    first, second = (cluster(*words, n, check=False).stdout for n in "12")
    assert re.search(r"\[worker 1 d\d\] Epoch 0: Test_acc", first), first
    assert "Resumed from" in second and "] Epoch 0: Test_acc" not in second, second
    assert re.search(r"\[worker 1 d\d\] Epoch 1: Test_acc", second), second


@pytest.mark.parametrize(
    "words, status, line",
    [
        (("--worker-memory", "9g"), 2, "YARN gives no container more than 3072 MB"),
        (("--queue", "none"), 2, "Queue none not present"),
        (("--launcher-option=-nonsense",), 2, "Unrecognized option: -nonsense"),
        (("--launcher-option=-container_resources=yarn.io/gpu=1",), 2, "yarn.io/gpu"),
    ],
)
def test_what_yarn_cannot_give_is_one_line(tmp_path, words, status, line):
    job = start(tmp_path, *words, "true")
    job.finish(60)
    assert job.status == status, job.text()
    assert line in job.last_words() and len(job.last_words().splitlines()) <= 2
    nothing_is_left(job)


def test_a_folder_that_a_host_does_not_share_is_named(tmp_path):
    folder = pathlib.Path("/dev/shm", tmp_path.name)  # here and on d1
    on_d1(f"mkdir -p {folder}")
    folder.mkdir()
    try:
        job = Job(tmp_path, "-n", 2, "--launcher", "yarn", "true", cwd=folder, inside="d1")
        job.finish(60)
    finally:
        folder.rmdir()
    assert job.status == 2, job.text()
    assert "d2: " in job.last_words() and "--files" in job.last_words()


def test_a_lost_node_ends_the_job_and_the_next_try_goes_without_it(tmp_path):
    """Last: the host is gone afterwards."""
    act = "[ $LAUNCH_ATTEMPT = 1 ] || exit 0; echo up; exec sleep 300"
    small = ("--worker-memory", "1200m", "--server-memory", "100m")
    again = ("--max-restarts", 1, "--min-uptime", 0)
    job = start(tmp_path, *small, *again, shell(worker0=act, worker1=act))
    job.wait_for("[worker 0 ")
    job.wait_for("[worker 1 ")
    holder = json.loads((CLUSTER / "state.json").read_text())["holders"]["d2"][0]
    os.kill(holder, signal.SIGKILL)
    job.finish(120)
    assert job.status == 0, job.text()
    assert "restarting (try 2, 1 of 1 restarts)" in job.last_words()

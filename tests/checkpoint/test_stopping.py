"""Stopping on request: a signal to one process, and all stop after the same step."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gluon_launch.remote.tree import catches
from launching import PROGRAMS, ROOT, launch
from restarting import ENVIRONMENT, OPTIONS, PROGRAM, SLOW, Job, finished, training

TIME_BUDGET_S = 120
pytestmark = pytest.mark.long

NOWHERE = {
    "DMLC_ROLE": "worker",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9",
    "DMLC_NUM_WORKER": "1",
    "DMLC_NUM_SERVER": "1",
}
RAISE_FLAG = (sys.executable, str(PROGRAMS / "raise_flag.py"))


@pytest.mark.parametrize("options", [(), ("--gc-type", "2bit")])
def test_all_workers_see_the_flag_in_the_same_step(tmp_path, options):
    job = launch(tmp_path, "-n", 3, "-s", 1, *RAISE_FLAG, *options, env=ENVIRONMENT, timeout=200)
    assert job.status == 0, job.text()
    assert job.text().count("seen in step 6\n") == 3, job.text()


def test_in_dist_async_all_workers_see_the_flag(tmp_path):
    command = (*RAISE_FLAG, "--kv-store", "dist_async", "--late", "2")
    job = launch(tmp_path, "-n", 2, "-s", 1, *command, env=ENVIRONMENT, timeout=200)
    assert job.status == 0 and job.text().count("seen in step") == 2, job.text()


def wait_until_it_waits_in_mxnet(pid):
    """It takes requests, and MXNet has opened its sockets."""
    files, end = Path(f"/proc/{pid}/fd"), time.monotonic() + 100
    while not (catches(pid, signal.SIGTERM) and has_sockets(files)):
        assert time.monotonic() < end
        time.sleep(0.05)


def has_sockets(files):
    for file in files.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if os.readlink(file).startswith("socket:"):
                return True
    return False


def test_before_the_training_there_is_nothing_to_save(tmp_path):
    """A server and a scheduler that do not come: the worker waits for them in MXNet."""
    job = training(tmp_path, tmp_path / "model", env=NOWHERE)
    wait_until_it_waits_in_mxnet(job.pid)
    os.kill(job.pid, signal.SIGTERM)
    finished(job, 75)
    assert "SIGTERM: stopped before the training began" in job.text()


def test_a_second_term_ends_at_once(tmp_path):
    job = training(tmp_path, tmp_path / "model", env={"TINY_PAUSE": "60"})
    job.wait_for("Epoch[0] Batch [1]")
    os.kill(job.pid, signal.SIGTERM)
    job.wait_for("will save and stop within two steps")
    os.kill(job.pid, signal.SIGTERM)  # the same request: a batch system and the launcher send it
    time.sleep(3.5)
    assert job.popen.poll() is None
    os.kill(job.pid, signal.SIGTERM)
    finished(job, 143)
    assert "a second SIGTERM: stopped without saving" in job.text()


def test_a_request_that_the_others_do_not_answer_ends_after_the_grace_time(tmp_path):
    job = training(tmp_path, tmp_path / "model", workers=2, env=SLOW, launch=("--grace", "3"))
    job.wait_for("Epoch[0] Batch [1]")
    (stopped,), (asked,) = job.role("worker-1"), job.role("worker-0")
    os.kill(stopped, signal.SIGSTOP)
    os.kill(asked, signal.SIGTERM)
    finished(job, 143)
    assert "no step for 3 s after the request to stop" in job.text()


SAVE_SLOWLY = """
import os, signal, time
import gluon_dist
import mxnet as mx
from gluon_dist.checkpoint.stopper import Stopper
from gluon_dist.workers.workers import Workers
with Stopper(True) as stopper:
    stopper.watch_training(Workers(mx.kv.create("local")))
    os.kill(os.getpid(), signal.SIGUSR1)
    stopper.lift_limit()
    time.sleep(3)
print("saved", stopper.is_requested)
"""
SLOW_DISK = """
import os, signal, tempfile, time
import gluon_dist as gd
import mxnet as mx
net, replace = mx.gluon.nn.Dense(1, in_units=1), os.replace
net.initialize()
os.replace = lambda *args: (time.sleep(3), replace(*args))
with tempfile.TemporaryDirectory() as folder:
    job = gd.Checkpoint(folder + "/m", net, gd.Trainer(net.collect_params(), "sgd"))
    job.restore()
    os.kill(os.getpid(), signal.SIGUSR1)
    {}
    job.save(0, 1)
    job.close()
print("saved", True)
"""


@pytest.mark.parametrize(
    "program",
    [SAVE_SLOWLY, SLOW_DISK.format("pass"), SLOW_DISK.format("while not job.should_stop(): pass")],
    ids=["lifted", "the end of a loop", "a stop within a loop"],
)
def test_a_worker_that_waits_for_files_has_no_time_limit_even_if_its_screen_takes_no_line(program):
    """A second of grace, and no step for three."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist"), "LAUNCH_GRACE": "1"}
    env["PYTHONUNBUFFERED"] = "1"  # else Python tries the line again at its exit, which is then 120
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", program]
        job = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=full)
    assert (job.returncode, job.stdout) == (0, b"saved True\n")


FORK = """
import multiprocessing, time
from gluon_dist.checkpoint.stopper import Stopper
def work(begun):
    begun.set()
    time.sleep(60)
with Stopper(True) as stopper:
    fork = multiprocessing.get_context("fork")
    begun = fork.Event()
    child = fork.Process(target=work, args=(begun,))
    child.start()
    begun.wait()
    child.terminate()
    child.join()
    time.sleep(0.2)  # for a request to be read
    print(child.exitcode, stopper.is_requested)
"""


def test_term_ends_a_process_that_the_program_has_forked_and_stops_no_training():
    """As a pool of loaders ends its processes. Without it the program ended with 75."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    job = subprocess.run([sys.executable, "-c", FORK], env=env, stdout=subprocess.PIPE, timeout=20)
    assert (job.returncode, job.stdout) == (0, b"-15 False\n")


def test_with_nowhere_to_save_term_ends_at_once(tmp_path):
    job = Job(tmp_path, *OPTIONS, "--batch-size", 48, env={**ENVIRONMENT, **SLOW}, program=PROGRAM)
    job.wait_for("Epoch[0] Batch [1]")
    os.kill(job.pid, signal.SIGTERM)
    finished(job, -signal.SIGTERM)


def test_usr1_to_the_launcher_saves_and_under_max_restarts_the_job_goes_on(tmp_path):
    restarts, log = ("--max-restarts", "1", "--min-uptime", "0"), ("--log-dir", tmp_path)
    job = training(tmp_path, tmp_path / "model", *log, workers=2, env=SLOW, launch=restarts)
    job.wait_for("Epoch[1] Batch [2]")
    os.kill(job.pid, signal.SIGUSR1)
    finished(job)
    assert "restarting (try 2, 1 of 1 restarts)" in job.text()
    assert re.search(r"Resumed from .*/model-0001-0000\d: 1 epoch and \d steps? done", job.text())
    assert "Epoch 3: Test_acc" in job.text()
    rows = map(json.loads, (tmp_path / "metrics.jsonl").read_text().splitlines())
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]


def test_dist_async_stops_and_goes_on(tmp_path):
    store = ("--kv-store", "dist_async")
    job = training(tmp_path, tmp_path / "model", *store, workers=2, env=SLOW)
    job.wait_for("Epoch[1] Batch [2]")
    (pid,) = job.role("worker-1")
    os.kill(pid, signal.SIGUSR1)
    finished(job, 75)
    assert "cannot be read and is not in the checkpoints" in job.text()
    again = training(tmp_path, tmp_path / "model", *store, "--resume", "auto", workers=2)
    assert "Epoch 3: Test_acc" in finished(again).text()

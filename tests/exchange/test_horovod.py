"""Horovod under the launcher: it trains and ends as jobs with servers do."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

import make_venv
from launching import (
    PROGRAM,
    ROOT,
    TRAIN,
    Job,
    accuracies,
    cluster,
    free_port,
    launch,
    on_hosts,
    why_no_cluster,
)

TIME_BUDGET_S = 60
pytestmark = pytest.mark.horovod
SHORT = "--data synthetic --network resnet --num-layers 8 --num-examples 266 --batch-size 64"
RING = (*SHORT.split(), "--num-epochs", "1", "--kv-store", "horovod")
LONG = (*SHORT.split(), "--num-epochs", "50", "--disp-batches", "1", "--kv-store", "horovod")
ONE_THREAD = ("--env", "OMP_NUM_THREADS=1")  # as two workers have on two processors
LINE = "gradients are added up by Horovod"


@pytest.fixture(scope="module")
def through_servers(tmp_path_factory):
    """The accuracies of the same training, two workers, through servers."""
    words = (*ONE_THREAD, *TRAIN, *RING[:-2], "--allreduce", "servers")
    return accuracies(launch(tmp_path_factory.mktemp("servers"), "-n", 2, *words).stdout)


def test_it_trains_as_the_servers_do_and_says_so(tmp_path, through_servers):
    """The last batch has 10 examples: 5 for each worker."""
    job = launch(tmp_path, "-n", 2, "-s", 0, *ONE_THREAD, *TRAIN, *RING)
    assert job.status == 0, job.text()
    assert LINE in job.stdout and "rendezvous" not in job.text()
    assert accuracies(job.stdout) == through_servers


@pytest.mark.long
@pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or "")
@pytest.mark.parametrize("workers", [2, 3])  # with 3, one host has two of them
def test_it_trains_on_hosts(tmp_path, through_servers, workers):
    cluster("up", "--hosts", "2")
    try:
        job = launch(tmp_path, "-n", workers, "-s", 0, *ONE_THREAD, *on_hosts(), *TRAIN, *RING)
    finally:
        cluster("down")
    assert job.status == 0 and LINE in job.stdout, job.text()
    for epoch in accuracies(job.stdout):
        assert len(epoch) == workers and len(set(epoch)) == 1
    assert workers > 2 or accuracies(job.stdout) == through_servers
    assert "d2: worker 1" in job.text()


def test_a_killed_worker_ends_the_job_and_is_named(tmp_path):
    job = Job(tmp_path, "-n", 2, "-s", 0, *TRAIN, *LONG)
    job.wait_for("Batch [2]")
    os.kill(job.top("worker-0"), signal.SIGKILL)
    job.finish(30)
    assert job.status == 137, job.text()
    assert "worker 0 on localhost: was killed by SIGKILL" in job.last_words()


def test_a_worker_that_raises_ends_the_job_with_its_cause(tmp_path):
    (tmp_path / "p.py").write_text(RAISES)
    job = launch(tmp_path, "-n", 2, "-s", 0, sys.executable, tmp_path / "p.py")
    assert job.status == 1 and "ValueError: on purpose" in job.last_words(), job.text()


RAISES = """
import gluon_dist
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

def main():
    workers = Workers(gluon_dist.store("horovod"))
    if workers.rank == 1:
        raise ValueError("on purpose")
    workers.barrier()

exit_with(main, "p.py")
"""


def test_first_values_come_bit_for_bit_and_horovods_own_broadcast_is_not_used(tmp_path):
    (tmp_path / "p.py").write_text(FIRST_VALUES)
    job = launch(tmp_path, "-n", 2, "-s", 0, sys.executable, tmp_path / "p.py")
    assert job.status == 0, job.text()
    assert sorted(job.stdout.splitlines()) == [f"[worker {rank}] 100" for rank in (0, 1)]


FIRST_VALUES = """
import gluon_dist
import mxnet as mx
import numpy as np
from gluon_dist.common.failure import exit_with

def main():
    store = gluon_dist.store("horovod")
    store._hvd.broadcast_ = None  # with small values it crashed one worker in three
    bits = np.array([0x80000000, 0x7FA00001, 1, 0x3F800000], np.uint32)  # -0, a NaN, the least, 1
    value = mx.nd.array(bits.view(np.float32) if store.rank == 0 else np.ones(4))
    outs = [mx.nd.zeros(4) for _ in range(100)]
    for number, out in enumerate(outs):
        store.broadcast(number, value, out)
    print(sum((out.asnumpy().view(np.uint32) == bits).all() for out in outs))

exit_with(main, "p.py")
"""


@pytest.mark.long
def test_a_job_that_lost_a_worker_is_started_again(tmp_path):
    words = ("-n", 2, "-s", 0, "--max-restarts", 1, "--min-uptime", 0, *TRAIN)
    more = ("--num-epochs", 6, "--disp-batches", 1, "--model-prefix", tmp_path / "m")
    job = Job(tmp_path, *words, *RING, *more)
    job.wait_for("Epoch[1] Batch [1]")  # worker 0 has saved: the step before needed its gradients
    os.kill(job.top("worker-1"), signal.SIGKILL)
    job.finish(100)
    assert job.status == 0 and "Resumed from" in job.text(), job.text()
    assert "worker 1 on localhost: was killed by SIGKILL" in job.last_words()


def test_a_user_of_horovodrun_gets_the_same(tmp_path, through_servers):
    program = os.path.join(os.path.dirname(sys.executable), "horovodrun")
    words = [program, "-np", "2", "sh", "-c", " ".join([*TRAIN, *RING])]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert accuracies(done.stdout) == through_servers


@pytest.mark.may_skip("elsewhere MPI may be missing")
@pytest.mark.skipif(not shutil.which("mpirun.openmpi"), reason="Open MPI is not installed")
def test_plain_mpirun_is_told_what_is_missing():
    words = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2", *TRAIN, *RING]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 2
    assert "Horovod was built without MPI" in done.stderr and "Traceback" not in done.stderr


def test_a_dry_run_runs_the_job_and_ends(tmp_path):
    words = ("-n", 2, "-s", 0, "--port", free_port(), "--dry-run", sys.executable, PROGRAM, *RING)
    script = launch(tmp_path, *words).stdout
    done = subprocess.run(
        ["bash"], input=script, capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    # Both write to one pipe, and their lines may run into each other.
    assert done.stdout.count(": Test_acc ") == 2  # workers


def test_a_wheel_that_is_there_is_not_installed_again():
    words = [sys.executable, "tools/make_horovod.py", "1", "--venv", sys.prefix]
    stamp = os.path.join(sys.prefix, make_venv.HOROVOD_STAMP)
    if not os.path.exists(stamp):
        pytest.skip("Horovod was not installed by make setup")
    assert subprocess.run(words, cwd=ROOT, capture_output=True).stdout == b""

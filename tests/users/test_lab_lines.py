"""A lab's lines, pasted on two ssh hosts; only the program's name and the sizes differ."""

import os
import pathlib
import subprocess
import sys
import time

from gluon_dist.checkpoint import files as checkpoint

import pytest

from launching import CLUSTER, accuracies, cluster, entering, why_no_cluster
from on_cluster import processes_of_hosts

TIME_BUDGET_S = 70
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or ""),
]
FOLDER = pathlib.Path(__file__).parent  # two floors below tools/, as in the lab
STOP = """\
while read -u 10 host; do ssh -o "StrictHostKeyChecking no" $host "pkill -f python"; \
done 10<$DEEPLEARNING_WORKERS_PATH"""
TRAIN = """\
../../tools/launch.py -n $DEEPLEARNING_WORKERS_COUNT -H $DEEPLEARNING_WORKERS_PATH \
python train_cifar10.py --gpus $(seq -s , 0 1 $(($DEEPLEARNING_WORKER_GPU_COUNT - 1))) \
--network resnet --num-layers 50 --kv-store dist_device_sync --num-epoch 2"""
ON_CPU = """\
../../tools/launch.py -n $DEEPLEARNING_WORKERS_COUNT -H $DEEPLEARNING_WORKERS_PATH \
python train_cifar10.py --network resnet --num-layers 8 --kv-store dist_device_sync --num-epoch 2 \
--model-prefix"""
SMALL = " --data synthetic --num-examples 256 --batch-size 64"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    """Two hosts; a user of d1 reaches both by plain ssh."""
    cluster("up", "--hosts", "2")
    config = f"mkdir ~/.ssh && cp {CLUSTER}/ssh_config ~/.ssh/config && chmod -R go= ~/.ssh"
    cluster("ssh", "d1", config)
    yield
    cluster("down")


@pytest.fixture
def on_d1(tmp_path):
    """Start a line of the lab in a shell on d1; the file of workers ends in a blank line."""
    workers = tmp_path / "workers"
    workers.write_text("d1\nd2\n\n")
    started = []

    def start(line, gpus=0):
        lab = {"WORKERS_COUNT": 2, "WORKERS_PATH": workers, "WORKER_GPU_COUNT": gpus}
        env = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
        env.update({f"DEEPLEARNING_{name}": str(value) for name, value in lab.items()})
        env["PATH"] = f"{pathlib.Path(sys.executable).parent}:{env['PATH']}:/usr/sbin:/sbin"
        (tmp_path / "line").write_text(line)  # in the shell's own words, pkill would find it
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with open(tmp_path / "line") as typed:
            words = [*entering("d1", FOLDER), "bash"]
            started.append(subprocess.Popen(words, text=True, env=env, stdin=typed, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run(process, timeout=120):
    said, _ = process.communicate(timeout=timeout)
    end = time.monotonic() + 12  # supervisors that lose the launcher give workers 10 s
    while processes_of_hosts() and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes_of_hosts(), said
    return process.returncode, said


def ours(line, program="../../cifar10_dist/cifar10_dist.py"):
    """The line with the program of here, and small."""
    return line.replace("train_cifar10.py", program).replace("-layers 50", "-layers 8")


def test_the_line_for_gpus_trains_on_all_that_the_lab_counts(on_d1):
    """On CPU devices in the place of two GPUs."""
    status, said = run(on_d1(ours(TRAIN, "../programs/two_gpus.py") + SMALL, gpus=2))
    assert status == 0 and "2 workers, 2 devices each (cpu(1), cpu(2))" in said, said
    assert [len(set(found)) for found in accuracies(said)] == [1, 1]


def test_the_line_without_gpus_saves_what_it_trains(on_d1, tmp_path):
    status, said = run(on_d1(f"{ours(ON_CPU)} {tmp_path}/out/cifar10{SMALL}"))
    assert status == 0 and len(accuracies(said)) == 2, said
    assert (tmp_path / "out" / "cifar10-0002.params").is_file()


def test_the_line_that_kills_python_on_all_hosts_ends_a_job_and_leaves_nothing(on_d1, tmp_path):
    """Launcher, supervisors and workers all get TERM at about the same time."""
    job = on_d1(f"{ours(ON_CPU)} {tmp_path}/out/cifar10{SMALL} --num-epochs 10000")
    said = ""
    while "Epoch 1: Test_acc" not in said:
        said += job.stdout.readline()
    on_d1(STOP).communicate(timeout=100)
    status, said = run(job, timeout=100)
    assert status not in (0, 2), said
    assert checkpoint.find(tmp_path / "out" / "cifar10")[0].error is None  # the newest is whole

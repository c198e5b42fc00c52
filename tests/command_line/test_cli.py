"""What a user types: help, old command lines, and mistakes."""

import os
import re
import socket
import subprocess
import sys

from gluon_dist.common.errors import UsageError
from gluon_dist.workers.group import share_gpus

import pytest

from cifar10_dist import main
from launching import PROGRAM, ROOT, launch, train

TIME_BUDGET_S = 40
FEW = ("--data", "synthetic", "--num-examples", "100", "--batch-size", "64")  # quickly made

# What is wrong, beside the pairs of flags and the single values of test_flags.py.
WRONG = {
    "--network nonsense": "--network nonsense: not a GluonCV model",
    "--network ssd_512_resnet50_v1_coco": "--network ssd_512_resnet50_v1_coco: ",
    "--network inceptionv3": "does not take images of --image-shape 3,32,32; it takes 3,299,299",
    "--network c3d_kinetics400": "of --image-shape 3,32,32, nor of other sizes (MXNetError: ",
    "--network resnet18_v1b_0.89": "--num-classes 10: resnet18_v1b_0.89 has 1000 classes",
    "--network mobilenet1.0_int8": "--network mobilenet1.0_int8: is quantized: whole numbers",
    "--network i3d_resnet50_v1_custom": "_custom: GluonCV builds it on trained weights",
    "--network nasnet_4_1056": "--network nasnet_4_1056: does not give scores of the classes alone",
    "--kv-store carrier_pigeon": "invalid choice: 'carrier_pigeon'",
    "--optimizer SGLD --cpus 2": "--optimizer SGLD: MXNet's updates each of 2 devices",
    "--optimizer LARS --cpus 2": "--optimizer LARS: MXNet's updates each of 2 devices",
    "--no-such-flag": "unknown argument '--no-such-flag'",
    "--gpus 7": "--gpus 7: this machine has 0 GPUs",
    "--cpus 2147483647": "--batch-size 64: fewer than one for each of 2147483647 devices",
    "--network resnet --num-layers 9": "--num-layers 9: a CIFAR ResNet has 6n+2 layers",
    "--num-layers 20": "--num-layers goes with --network resnet",
    "--batch-size 20000": "takes 20000 examples, and there are 100 (synthetic images)",
    "--num-examples 20000": "--num-examples 20000: there are 10000 (synthetic images)",
    "--num-classes 2147483647": "--network resnet18_v1: too large for --num-classes 2147483647, or",
    "--num-classes 4": "outside --num-classes 4",
    "--data auto --data-train /no/x.rec --data-val /no/y.rec": "/no/x.rec: No such file",
    "--data auto --data-train ; --data-val x.rec": ";: names no file",
    "--model-prefix /proc/nowhere/x": "--model-prefix /proc/nowhere/x: cannot write",
    "--log-dir /proc/nowhere": "--log-dir /proc/nowhere: cannot be written",
    "--model-prefix build/none/x --load-epoch 3": "build/none/x-0003.params on",
    "--lr -1": "'-1' is not a number above 0",
    "--model-prefix=": "--model-prefix: '' is not a path: is a variable not set?",
    "--num-epoch": "expected one argument",
    "--num-ep 3": "unknown argument '--num-ep'",
    "--disp-batch 10": "unknown argument '--disp-batch'; did you mean --disp-batches?",
    "--Batchsize=64": "unknown argument '--Batchsize'; did you mean --batch-size?",
    "--zzz": "unknown argument '--zzz'; --help lists the flags",
}


@pytest.mark.parametrize("options", WRONG)
def test_a_mistake_is_named_in_one_line_before_anything_is_written(options, capsys):
    with pytest.raises(UsageError) as caught:
        main([*FEW, *options.split()])
    assert WRONG[options] in str(caught.value) and "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("options", ["--lr -1", "--network nonsense"])
def test_a_mistake_ends_the_program_with_one_line_and_status_2(options, tmp_path):
    job = train(tmp_path, *FEW, *options.split())
    assert job.status == 2, job.stderr
    lines = job.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("cifar10_dist.py: error: "), job.stderr
    assert WRONG[options] in lines[0] and job.stdout == ""


@pytest.mark.parametrize("error", ["MemoryError()", "ValueError('cudaMalloc: out of memory')"])
def test_too_little_memory_ends_a_program_with_one_line(error, tmp_path):
    program = "from gluon_dist.common.failure import exit_with\n"
    program += f"def main(): raise {error}\nexit_with(main, 'p')"
    job = launch(tmp_path, "-c", program, program="-u")
    assert job.status == 1
    assert re.fullmatch("p: error: out of memory: .*; try smaller sizes\n", job.stderr), job.stderr


def test_a_line_is_written_in_one_piece_even_without_buffers():
    """Else the lines of two workers that share a screen mix: `lineline`, then two ends."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps writes apart
    program = "from gluon_dist.common.messages import say; say('error: x')"
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    with ours, its:
        words = [sys.executable, "-u", "-c", program]
        subprocess.run(words, stderr=its, env=environ, check=True, timeout=60)
        assert ours.recv(1000) == b"gluon_dist: error: x\n"


def test_a_data_folder_that_cannot_be_written_is_named():
    with pytest.raises(UsageError, match="--data-dir /proc/nowhere: cannot be written"):
        main(["--data-dir", "/proc/nowhere"])


@pytest.mark.long
def test_workers_that_would_add_noise_of_their_own_are_refused(tmp_path):
    job = launch(tmp_path, "-n", 2, "python", "cifar10_dist/cifar10_dist.py", "--optimizer", "sgld")
    assert job.status == 2
    assert "each worker would add noise of its own; take -n 1" in job.stderr + job.stdout


@pytest.mark.long
def test_an_exception_ends_a_worker_at_once_with_its_traceback(tmp_path):
    job = launch(tmp_path, "-n", 2, "python", "tests/programs/raise_on_one.py", timeout=60)
    assert job.status == 1
    assert "ValueError: on purpose" in job.stderr + job.stdout


@pytest.mark.long
def test_a_training_whose_output_nobody_reads_any_more_ends_with_one_line(tmp_path):
    options = "--data synthetic --network fast --num-examples 512 --num-epochs 1 --disp-batches 1"
    command = [sys.executable, PROGRAM, *options.split()]
    with open(tmp_path / "err", "w+") as err:
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True)
        assert job.stdout.readline().startswith("fast on synthetic images")
        job.stdout.close()
        assert job.wait(100) == 1
        err.seek(0)
        assert err.read() == "cifar10_dist.py: error: what reads its output has ended\n"


@pytest.mark.parametrize(
    "gpus, workers, shares",
    [
        (4, 1, ["0123"]),
        (4, 2, ["01", "23"]),
        (3, 2, ["01", "2"]),
        (2, 3, ["0", "1", "0"]),
        (0, 2, ["", ""]),
    ],
)
def test_the_workers_of_a_host_share_its_gpus(gpus, workers, shares):
    for local_rank, share in enumerate(shares):
        assert share_gpus(gpus, workers, local_rank) == tuple(map(int, share))
    assert share_gpus(gpus, 1, 0) == tuple(range(gpus))

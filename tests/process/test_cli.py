"""What a user types: help, old command lines, and mistakes."""

import argparse
import re

import mxnet as mx
import pytest
from process.devices import share_gpus
from process.failure import UsageError
from process.options import parse_args
from running import ROOT, launch, train
from trainers.create import check_optimizer

from cifar10_dist import main

TIME_BUDGET_S = 60

WRONG = {
    "--network nonsense": "--network nonsense: not a GluonCV model",
    "--network ssd_512_resnet50_v1_coco": "--network ssd_512_resnet50_v1_coco: ",
    "--network inceptionv3": "--network inceptionv3: does not take images",
    "--network nasnet_4_1056": "--network nasnet_4_1056: does not give scores of the classes alone",
    "--kv-store carrier_pigeon": "invalid choice: 'carrier_pigeon'",
    "--optimizer luck": "--optimizer luck: not one of",
    "--optimizer groupadagrad": "--optimizer groupadagrad: not one of",
    "--optimizer dcasgd": "--optimizer dcasgd: MXNet's fails with a momentum; add --mom 0",
    "--optimizer SGLD --cpus 2": "--optimizer sgld: MXNet's updates each of 2 devices",
    "--optimizer nadam --cpus 3": "--optimizer nadam: MXNet's updates each of 3 devices",
    "--no-such-flag": "unknown argument '--no-such-flag'",
    "--gpus 7": "--gpus 7: this machine has 0 GPU(s)",
    "--gpus a": "'a' is not a list of GPUs",
    "--batch-size 0": "--batch-size 0: must be at least 1",
    "--batch-size 3 --cpus 4": "--batch-size 3: fewer than one for each of 4 devices",
    "--network resnet --num-layers 9": "--num-layers 9: a CIFAR ResNet has 6n+2 layers",
    "--num-layers 20": "--num-layers goes with --network resnet",
    "--target-accuracy 75": "'75' is not a fraction in (0, 1]",
    "--kv-store dist": "--kv-store dist needs a launcher: python tools/launch.py",
    "--batch-size 20000": "takes 20000 examples, and there are 10000 (synthetic images)",
    "--num-examples 20000": "--num-examples 20000: there are 10000 (synthetic images)",
    "--num-classes 4": "outside --num-classes 4",
    "--data-train x.rec": "--data-train and --data-val go together",
    "--data auto --data-train /no/x.rec --data-val /no/y.rec": "/no/x.rec: No such file",
    "--model-prefix /proc/nowhere/x": "--model-prefix /proc/nowhere/x: cannot write",
    "--log-dir /proc/nowhere": "--log-dir /proc/nowhere: cannot be written",
    "--load-epoch 3": "--load-epoch needs --model-prefix",
    "--model-prefix build/none/x --load-epoch 3": "build/none/x-0003.params on",
    "--rgb-std 0,1,1": "'0,1,1' is not three numbers above 0",
    "--rgb-mean nan,1,1": "'nan,1,1' is not three numbers",
    "--lr -1": "'-1' is not a number above 0",
    "--dtype float16": "--dtype float16 needs a GPU",
    "--lr-schedule step": "needs --lr-step-epochs",
    "--lr-schedule cosine --lr-step-epochs 3": "goes with --lr-schedule step, not cosine",
    "--model-prefix=": "--model-prefix '': is a variable not set?",
    "--model-prefix build/": "--model-prefix build/: a folder; add how its files begin, as in",
    "--profile /no/where/t.json": "--profile /no/where/t.json: no folder /no/where that can be",
    "--gc-type 2bit": "--gc-type 2bit needs --kv-store dist_sync, not device",
    "--gc-type 1bit": "invalid choice: '1bit'",
    "--lr-scale staleness": "--lr-scale staleness needs --kv-store dist_async",
    "--num-epoch": "expected one argument",
    "--num-ep 3": "unknown argument '--num-ep'",
}


@pytest.mark.parametrize("options", WRONG)
def test_a_mistake_is_named_in_one_line_before_anything_is_written(options, capsys):
    with pytest.raises(UsageError) as caught:
        main(["--data", "synthetic", *options.split()])
    assert WRONG[options] in str(caught.value) and "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


def test_steps_of_the_learning_rate_hold_for_the_fast_network_too():
    assert parse_args(["--network", "fast"]).lr_schedule == "onecycle"
    assert parse_args(["--network", "fast", "--lr-step-epochs", "3,4"]).lr_schedule == "step"


@pytest.mark.parametrize("options", ["--lr -1", "--network nonsense", "--gpus 7"])
def test_a_mistake_gets_one_line_and_status_2(options):
    job = train("--data", "synthetic", *options.split())
    assert job.returncode == 2, job.stderr
    lines = job.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("cifar10_dist.py: error: "), job.stderr
    assert WRONG[options] in lines[0] and job.stdout == ""


def test_a_data_folder_that_cannot_be_written_is_named():
    job = train("--data-dir", "/proc/nowhere")
    assert job.returncode == 2
    assert "--data-dir /proc/nowhere: cannot be written" in job.stderr


def test_workers_that_would_add_noise_of_their_own_are_refused():
    job = launch(2, "python", "cifar10_dist/cifar10_dist.py", "--optimizer", "sgld")
    assert job.returncode == 2
    assert "each worker would add noise of its own; take -n 1" in job.stderr + job.stdout


def test_float16_and_dist_async_exclude_each_other():
    """Both checked alone: here is no GPU, and no launcher."""
    args = argparse.Namespace(optimizer="sgd", mom=0.9, kv_store="dist_async", dtype="float16")
    with pytest.raises(UsageError, match="--dtype float16 and dist_async exclude each other"):
        check_optimizer(args, [mx.gpu(0)])


def test_a_store_on_this_machine_alone_is_refused_under_a_launcher():
    job = launch(2, "python", "cifar10_dist/cifar10_dist.py", "--kv-store", "device")
    assert job.returncode == 2
    assert "would train every worker alone" in job.stderr + job.stdout


def test_an_exception_ends_a_worker_at_once_with_its_traceback():
    job = launch(2, "python", "tests/programs/raise_on_one.py", timeout=60)
    assert job.returncode == 1
    assert "ValueError: on purpose" in job.stderr + job.stdout


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
    for place, share in enumerate(shares):
        assert share_gpus(gpus, workers, place) == tuple(map(int, share))
    assert share_gpus(gpus, 1, 0) == tuple(range(gpus))


def test_help_lists_every_flag_of_the_design_that_exists():
    job = train("--help")
    assert job.returncode == 0 and job.stderr == ""
    shown = set(re.findall(r"--[a-z-]+", job.stdout))
    assert {"--kv-store", "--gpus", "--cpus", "--num-epochs", "--model-prefix"} <= shown
    assert not {"--monitor", "--max-random-h"} & shown
    assert max(map(len, job.stdout.splitlines())) <= 110


def test_readme_names_only_flags_that_exist():
    known = set(re.findall(r"--[a-z-]+", train("--help").stdout))
    lines = (ROOT / "README.md").read_text().splitlines()
    commands = [line for line in lines if "cifar10_dist.py" in line]
    assert commands
    for line in commands:
        program = line.split("cifar10_dist.py", 1)[1]
        assert set(re.findall(r"--[a-z-]+", program)) <= known, line

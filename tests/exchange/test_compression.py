"""Gradients in 16 and in 2 bits: their bytes, their sums, what they do to the training."""

import json
import re
import sys

from gluon_dist.common.errors import UsageError
from gluon_dist.exchange.compression import TwoBits

import numpy as np
import pytest

from launching import TRAIN, accuracies, launch
from run.trainer import compression_params

TIME_BUDGET_S = 75
SMALL = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8")
COMPRESSED = """
import gluon_dist
import mxnet as mx
from gluon_dist.common.failure import exit_with

def main():
    net = mx.gluon.nn.Dense(2, in_units=3)
    net.initialize()
    compression = {"type": "2bit", "threshold": 0.5}
    trainer = mx.gluon.Trainer(
        net.collect_params(), "sgd", None, "dist_sync", compression, update_on_kvstore=False
    )
    trainer.allreduce_grads()
    mx.nd.waitall()

exit_with(main, "compressed")
"""


@pytest.mark.long
def test_16_bits_halve_both_ways_and_2_bits_shrink_pushes_sixteen_times(tmp_path):
    job = launch(tmp_path, "-n", 2, "-s", 2, sys.executable, "tests/programs/count_bytes.py")
    assert job.status == 0, job.stdout + job.stderr
    line = next(line for line in job.stdout.splitlines() if "{" in line)
    found = json.loads(line[line.index("{") :])
    pushed, pulled = found["--allreduce servers"]
    pushed_half, pulled_half = found["--gc-type fp16"]
    pushed_2bit, pulled_2bit = found["--gc-type 2bit"]
    assert pushed == pytest.approx(1500 * 1001 * 4, rel=0.01)
    assert pushed / pushed_half == pytest.approx(2, rel=0.01)
    assert pulled / pulled_half == pytest.approx(2, rel=0.01)
    assert 15.5 < pushed / pushed_2bit < 16.1
    assert pulled / pulled_2bit == pytest.approx(1, rel=0.01)
    assert 1.86 < (pushed + pulled) / (pushed_2bit + pulled_2bit) <= 32 / 17


def test_servers_add_halves_in_float32_and_small_gradients_are_not_lost(tmp_path):
    job = launch(tmp_path, "-n", 3, "-s", 2, sys.executable, "tests/programs/half_sums.py")
    assert job.status == 0, job.stdout + job.stderr
    found = [float(word) for word in re.search(r"sums (.*)", job.stdout)[1].split()]
    assert found[:3] == [2 + 2**-9] * 3  # float16 would add to 2, in two of these at least
    assert found[3] == pytest.approx(6e-8, rel=5e-3)
    assert found[4] == float("inf") and found[5] == -10  # 70 is above 64


@pytest.mark.long
def test_a_training_that_diverges_in_16_bits_tells_that_they_may_be_why(tmp_path):
    options = (*SMALL, "--num-examples", "200", "--batch-size", "50", "--lr", "1e30")
    job = launch(tmp_path, "-n", 2, "-s", 1, *TRAIN, *options, "--gc-type", "fp16")
    assert job.status not in (0, 2)
    advice = "the training has diverged and is not saved; try a lower --lr, or leave out --gc-type"
    assert advice in job.stdout + job.stderr


@pytest.mark.long
@pytest.mark.parametrize(("kind", "bits"), [("fp16", 16), ("2bit", 2)])
def test_workers_learn_and_agree_under_compression(tmp_path, kind, bits):
    options = (*SMALL, "--num-examples", "2000", "--batch-size", "50", "--num-epochs", "3")
    job = launch(tmp_path, "-n", 2, "-s", 1, *TRAIN, *options, "--gc-type", kind)
    assert job.status == 0, job.stdout + job.stderr
    printed = accuracies(job.stdout)
    assert [len(set(values)) for values in printed] == [1, 1, 1]
    assert printed[-1][0] > 0.6
    assert re.search(rf"gradients (are sent )?in {bits} bits", job.stdout)


def test_the_threshold_is_what_workers_and_servers_read_alike():
    params = compression_params("2bit", 0.5, global_batch_size=300)
    assert params == {"type": "2bit", "threshold": 0.001667}
    sent = TwoBits(params["threshold"]).threshold
    assert f"{np.float32(sent):f}" == sent == "0.001667"
    with pytest.raises(UsageError, match=r"--gc-threshold 0.0001: .* at least 0.000001"):
        compression_params("2bit", 1e-4, global_batch_size=300)


@pytest.mark.long
def test_gluons_own_trainer_still_refuses(tmp_path):
    """Once it does not, compression.py has nothing left to do."""
    job = launch(tmp_path, "-n", 1, sys.executable, "-c", COMPRESSED)
    assert job.status == 1 and "Compression not supported with PushPull" in job.stderr

"""``--dtype auto``: what it chooses, and that the trial before it changes nothing else."""

import re
import sys
from argparse import Namespace

import mxnet as mx
import numpy as np
import pytest

from ground.failure import UsageError
from ground.processor import processor_flags
from launching import PROGRAMS, accuracies, launch, train
from networks.by_name import network_by_name
from processors import needs_avx512
from restarting import ENVIRONMENT, assert_same, finished, training
from run import precision
from run.precision import PROCESSOR_HAS, choose_dtype, copy_in, decide, faster_dtype
from workers import Workers

TIME_BUDGET_S = 70
HAS_BFLOAT16 = bool(PROCESSOR_HAS & processor_flags())
SHORT = ("--num-epochs", "1", "--lr-schedule", "constant")
TOLD = re.compile(r"float32 (\d+), bfloat16 (\d+) samples/s a worker, measured in [\d.]+ s")


@pytest.fixture
def cpuinfo(tmp_path):
    """Write what Linux would say of a processor."""

    def write(*flags):
        path = tmp_path / "-".join(("cpuinfo", *flags))
        path.write_text(f"processor\t: 0\nflags\t\t: fpu avx512f {' '.join(flags)}\nbugs\t\t:\n")
        return str(path)

    return write


@pytest.fixture
def net():
    mx.random.seed(0)
    return network_by_name("mobilenet0.25", 10, (3, 32, 32), [mx.cpu()])


def choose(net, cpuinfo, saved=None):
    args = Namespace(batch_size=4, image_shape=(3, 32, 32))
    return faster_dtype(args, net, Workers(mx.kv.create("local")), saved, cpuinfo)


def assert_the_faster(dtype, told):
    """The figures are rounded, and rounds may disagree with the fastest: then it is float32."""
    float32, bfloat16 = map(int, TOLD.search(told).groups())
    assert dtype == "float32" or bfloat16 > float32


@pytest.mark.parametrize(
    ("rounds", "dtype", "fastest"),
    [
        ([(2.0, 1.0), (2.1, 1.1), (0.1, 9.0)], "bfloat16", (2.0, 1.0)),  # two rounds are enough
        ([(1.0, 2.0), (1.0, 2.0), (9.0, 0.1)], "float32", (1.0, 2.0)),
        ([(1.04, 1.0), (1.04, 1.0)], "float32", (1.04, 1.0)),  # not clearly
        (
            [(2.0, 1.0), (2.0, 9.0), (2.0, 1.0), (2.0, 1.0)],
            "bfloat16",
            (2.0, 1.0),
        ),  # disturbed once
        ([(9.0, 1.0), (8.0, 1.0), (1.0, 2.0)], "bfloat16", (8.0, 1.0)),
        ([(9.0, 1.0), (1.0, 2.0), (9.0, 1.0), (9.0, 1.0)], "float32", (1.0, 1.0)),  # doubtful
        ([(2.0, 1.0), (1.0, 2.0)] * 9, "float32", (1.0, 1.0)),  # no end: after nine rounds
    ],
)
def test_two_rounds_more_decide_and_a_doubt_keeps_float32(rounds, dtype, fastest):
    found, times = decide(iter(rounds))
    assert found == dtype and tuple(times) == fastest


def test_auto_takes_what_the_rounds_say(net, cpuinfo, monkeypatch):
    for faster, dtype in ((2.0, "bfloat16"), (0.5, "float32")):
        rounds = [(faster, 1.0)] * 2
        monkeypatch.setattr(precision, "measure_steps", lambda *_, rounds=rounds: iter(rounds))
        found, told = choose(net, cpuinfo("avx512_bf16"))
        assert found == dtype and f"float32 {4 / faster:.0f}, bfloat16 4 samples/s" in told


@needs_avx512
@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16"])
def test_the_type_of_the_higher_speed_is_chosen(flag, net, cpuinfo):
    assert_the_faster(*choose(net, cpuinfo(flag)))


def test_a_processor_that_would_imitate_bfloat16_keeps_float32_without_a_trial(net, cpuinfo):
    without = ("float32", "no fast bfloat16 on worker 0's devices")
    assert choose(net, cpuinfo("avx512_vnni")) == without
    assert choose(net, cpuinfo() + ".missing") == without
    dtype, reason = choose(net, cpuinfo(), saved="bfloat16")
    assert dtype == "float32" and reason == f"{without[1]}; the checkpoint was trained in bfloat16"


def test_bfloat16_is_refused_where_mxnet_cannot_compute_in_it(net, cpuinfo):
    args = Namespace(dtype="bfloat16")
    with pytest.raises(UsageError, match="needs a processor with AVX-512; take float32"):
        choose_dtype(args, net, Workers(mx.kv.create("local")), cpuinfo=cpuinfo("avx2"))


@pytest.mark.parametrize("saved", ["float32", "bfloat16"])
def test_a_checkpoint_decides_without_a_trial(saved, net, cpuinfo):
    assert choose(net, cpuinfo("amx_bf16"), saved) == (saved, "as in the checkpoint")


@needs_avx512
def test_a_trial_leaves_parameters_gradients_and_mxnet_as_they_were(net, cpuinfo):
    def everything():
        params = [p for _, p in sorted(net.collect_params().items())]
        arrays = [p.data() for p in params] + [p.grad() for p in params if p.grad_req != "null"]
        return b"".join(array.asnumpy().tobytes() for array in arrays)

    before = everything()
    operators = vars(mx.sym).copy(), vars(mx.nd).copy(), vars(mx.sym._internal).copy()
    choose(net, cpuinfo("avx512_bf16"))
    assert everything() == before
    assert operators == (vars(mx.sym), vars(mx.nd), vars(mx.sym._internal))
    assert "amp_cast" not in net(mx.sym.var("data")).tojson(remove_amp_cast=False)


def test_the_copy_in_float32_computes_the_same(net):
    images = mx.nd.array(np.random.RandomState(0).rand(4, 3, 32, 32))
    with mx.autograd.record():  # as in training; without, MXNet changes the layout of weights
        wanted = net(images).asnumpy()
        same = copy_in("float32", net, [mx.cpu()])(images).asnumpy()
    np.testing.assert_array_equal(same, wanted)


@pytest.mark.long
@needs_avx512
def test_the_copy_computes_what_the_trained_network_will(tmp_path):
    job = launch(tmp_path, program=PROGRAMS / "copy_in_bfloat16.py")
    assert job.status == 0 and "the same outputs and gradients\n" in job.stdout, job.text()


@pytest.mark.long
def test_a_training_ends_as_one_in_the_type_that_auto_chose(tmp_path):
    said = finished(training(tmp_path, tmp_path / "auto", *SHORT, "--dtype", "auto")).stdout
    (dtype,) = re.findall(r"^--dtype auto: (\w+) ", said, re.MULTILINE)
    if HAS_BFLOAT16:
        assert_the_faster(dtype, said)
    finished(training(tmp_path, tmp_path / "outright", *SHORT, "--dtype", dtype))
    assert_same(tmp_path / "auto", tmp_path / "outright", "0001")


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"] if HAS_BFLOAT16 else ["float32"])
def test_a_restart_keeps_the_type(dtype, tmp_path):
    finished(training(tmp_path, tmp_path / "model", *SHORT, "--dtype", dtype))
    two = ("--num-epochs", "2", "--lr-schedule", "constant", "--resume", "auto", "--dtype", "auto")
    said = finished(training(tmp_path, tmp_path / "model", *two)).text()
    why = "as in the checkpoint" if HAS_BFLOAT16 else "no fast bfloat16 on worker 0's devices"
    assert f"--dtype auto: {dtype} ({why})\n" in said
    assert "Epoch 1: Test_acc" in said and "not as saved" not in said


def choices(folder, kind, *files):
    """What each worker of a real job chose, and the figures that it would tell."""
    job = launch(
        folder, "-n", 2, "-s", 1, sys.executable, PROGRAMS / "choose_type.py", kind, *files
    )
    assert job.status == 0, job.text()
    return sorted(re.findall(r"worker (\d) chose (\w+): (.*)", job.stdout))


@pytest.mark.long
@needs_avx512
@pytest.mark.parametrize("kind", ["dist_sync", "dist_async"])
def test_all_workers_choose_by_the_same_figures(kind, cpuinfo, tmp_path):
    first, second = choices(tmp_path, kind, cpuinfo("amx_bf16"), cpuinfo("amx_bf16"))
    assert TOLD.search(first[2])[0].split(" measured")[0] in second[2]
    assert first[1] == second[1]
    assert_the_faster(*first[1:])


@pytest.mark.long
def test_one_worker_without_bfloat16_keeps_float32_for_all(cpuinfo, tmp_path):
    found = choices(tmp_path, "dist_sync", cpuinfo("amx_bf16"), cpuinfo())
    assert {row[1:] for row in found} == {("float32", "no fast bfloat16 on worker 1's devices")}


@pytest.mark.long
def test_several_devices_are_tried_together(tmp_path):
    options = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8", "--cpus", "2")
    options += ("--num-examples", "64", "--batch-size", "32", "--num-epochs", "1")
    job = train(tmp_path, *options, "--dtype", "auto", env=ENVIRONMENT)
    assert job.status == 0 and len(accuracies(job.stdout)) == 1, job.stderr
    assert bool(TOLD.search(job.stdout)) == HAS_BFLOAT16

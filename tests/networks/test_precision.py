"""``--dtype auto``: what it chooses, and that the program trains so."""

from argparse import Namespace

import mxnet as mx
import pytest
from mxnet.gluon import nn

from launching import accuracies, train
from networks.by_name import build_network
from networks.precision import choose_dtype, processor_flags, uses_of_a_weight

TIME_BUDGET_S = 25
CPU = [mx.cpu()]


@pytest.fixture
def cpuinfo(tmp_path):
    """Write what Linux would say of a processor."""

    def write(*flags):
        path = tmp_path / "cpuinfo"
        path.write_text(
            f"processor\t: 0\nflags\t\t: fpu sse avx512f {' '.join(flags)}\nbugs\t\t:\n"
        )
        return str(path)

    return write


def options(network, batch_size=256, num_layers=None):
    return Namespace(
        network=network,
        num_classes=10,
        image_shape=(3, 32, 32),
        num_layers=num_layers,
        batch_size=batch_size,
    )


def test_the_uses_of_a_weight_are_counted():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, in_channels=2), nn.MaxPool2D(), nn.Dense(5))
    # 72 weights at 8 x 8 places, and 4 * 4 * 4 * 5 = 320 weights once.
    assert uses_of_a_weight(net, (2, 8, 8)) == pytest.approx((72 * 64 + 320) / (72 + 320))


@pytest.mark.parametrize(
    ("network", "num_layers", "flag", "dtype"),
    [
        ("resnet", 20, "avx512_bf16", "bfloat16"),
        ("fast", None, "amx_bf16", "bfloat16"),
        ("fast", None, "avx512_vnni", "float32"),  # oneDNN would imitate it
        ("resnet18_v1", None, "avx512_bf16", "float32"),  # casts of 11 M weights in every step
    ],
)
def test_the_choice_is_by_processor_and_network(network, num_layers, flag, dtype, cpuinfo):
    assert choose_dtype(options(network, num_layers=num_layers), CPU, cpuinfo(flag)) == dtype


def test_a_device_with_few_examples_keeps_float32(cpuinfo):
    path = cpuinfo("avx512_bf16")
    assert choose_dtype(options("fast", 256), CPU * 8, path) == "float32"
    assert choose_dtype(options("fast", 8 * 256), CPU * 8, path) == "bfloat16"


def test_gpus_and_other_systems_keep_float32(cpuinfo, tmp_path):
    path = cpuinfo("avx512_bf16")
    assert choose_dtype(options("fast"), [mx.gpu()], path) == "float32"
    assert choose_dtype(options("fast"), CPU, str(tmp_path / "missing")) == "float32"


def test_looking_at_the_network_does_not_change_its_names():
    before = set(build_network("fast", 10, (3, 32, 32)).collect_params())
    uses_of_a_weight(build_network("fast", 10, (3, 32, 32)), (3, 32, 32))
    assert set(build_network("fast", 10, (3, 32, 32)).collect_params()) == before


def test_the_program_says_what_it_chose_and_trains(tmp_path):
    short = ("--data", "synthetic", "--network", "resnet", "--num-layers", "8")
    short += ("--num-examples", "256", "--batch-size", "128", "--num-epochs", "1")
    job = train(tmp_path, *short, "--dtype", "auto")
    assert job.status == 0 and len(accuracies(job.stdout)) == 1, job.stderr
    has_bfloat16 = {"avx512_bf16", "amx_bf16"} & processor_flags()
    assert f"--dtype auto: {'bfloat16' if has_bfloat16 else 'float32'}\n" in job.stdout

"""``--network resnet`` is the network that MXNet's older examples build."""

import math

from gluon_dist.common.errors import UsageError

import pytest

from networks.by_name import get_network

TIME_BUDGET_S = 30
# What their symbols/resnet.py has and GluonCV's classes have not: a scale, which it fixes, and a
# shift of each colour, and a product on the shortcut of the first block if that has no need of it.
COLOURS = 6


@pytest.mark.parametrize(
    "layers, size, theirs, less",
    [
        (20, 28, 272_544, 16 * 16),
        (110, 28, 1_730_784, 16 * 16),
        (164, 28, 1_703_264, 0),  # bottlenecks
        (200, 28, 2_074_208, 0),
        (18, 224, 11_691_950, 64 * 64),
        (34, 224, 21_800_110, 64 * 64),
        (50, 224, 25_549_486, 0),
        (101, 224, 44_541_614, 0),
        (152, 224, 60_185_262, 0),
        (200, 224, 64_666_286, 0),
        (269, 224, 102_065_838, 0),
        (50, 32, 23_513_168, 0),  # without the first layers that make images smaller
        (152, 32, 58_148_944, 0),
    ],
)
def test_a_resnet_has_as_many_parameters_as_that_of_mxnets_examples(layers, size, theirs, less):
    net = get_network("resnet", 1000 if size == 224 else 10, (3, size, size), num_layers=layers)
    learned = [p.shape for p in net.collect_params().values() if p.grad_req != "null"]
    assert sum(map(math.prod, learned)) == theirs - less - COLOURS


@pytest.mark.parametrize("layers, size", [(18, 28), (9, 32), (170, 32), (2, 32), (49, 224)])
def test_a_number_of_layers_that_no_resnet_has_is_refused(layers, size):
    with pytest.raises(UsageError, match=rf"--num-layers {layers}: a CIFAR ResNet has 6n\+2"):
        get_network("resnet", 10, (3, size, size), num_layers=layers)


@pytest.mark.parametrize("size, layers", [(32, 20), (224, 50)])
def test_small_images_get_a_small_network_by_default(size, layers):
    shapes = [
        [
            p.shape
            for p in get_network("resnet", 10, (3, size, size), num_layers=n)
            .collect_params()
            .values()
        ]
        for n in (None, layers)
    ]
    assert shapes[0] == shapes[1]

"""Networks of GluonCV's model zoo: as they were asked for, and the same in every test."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd

from networks.by_name import get_network

TIME_BUDGET_S = 15
SHAPE = (3, 32, 32)


@pytest.mark.parametrize("name", ["hrnet_w18_small_v1_c", "se_resnext101e_64x4d", "resnest14"])
def test_a_network_has_the_classes_that_were_asked_for(name):
    scores = get_network(name, 7, SHAPE)(mx.sym.var("data"))
    assert scores.infer_shape(data=(5, *SHAPE))[1] == [(5, 7)]


def test_what_is_dropped_at_random_in_training_is_not_dropped_in_tests():
    net = get_network("resnest26", 10, SHAPE, [mx.cpu()])
    images = mx.nd.random.normal(shape=(2, *SHAPE))
    with autograd.record():
        net(images).backward()
    np.testing.assert_array_equal(net(images).asnumpy(), net(images).asnumpy())

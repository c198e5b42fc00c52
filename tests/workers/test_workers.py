"""What workers exchange; the operations themselves are in test_operations.py."""

import sys

from gluon_dist.workers.statistics import average_statistics
from gluon_dist.workers.workers import Workers

import mxnet as mx
import pytest
from mxnet.gluon import nn

from launching import launch

TIME_BUDGET_S = 20
SERVERS_UPDATE = """
import sys
import gluon_dist
import mxnet as mx
import numpy as np
from gluon_dist.workers.workers import Workers
store = mx.kv.create("dist_sync")
workers = Workers(store)
print("right", *workers.all_reduce(np.array([2, 3], sys.argv[1])))
store.set_optimizer(mx.optimizer.SGD(learning_rate=0.1))
store._barrier()
print("right", *workers.all_reduce(np.array([2, 3], sys.argv[1])))
"""


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.long)])
def test_where_servers_update_a_sum_is_right_too(dtype, tmp_path):
    (tmp_path / "p.py").write_text(SERVERS_UPDATE)
    job = launch(tmp_path, "-n", 2, "-s", 1, sys.executable, tmp_path / "p.py", dtype)
    assert job.status == 0 and job.stdout.count("right 4.0 6.0") == 4, job.text()


def test_one_process_talks_to_itself():
    workers = Workers(mx.kv.create("local"))
    assert workers.all_reduce([1, 2]).tolist() == [1, 2]
    assert workers.all_gather([1, 2]).tolist() == [[1, 2]]
    workers.agree({"a": "b"})
    workers.barrier()


def test_a_network_without_statistics_is_left_alone():
    """Its devices hold different weights, which an average would make equal."""
    net, devices = nn.Dense(2, in_units=3), [mx.cpu(0), mx.cpu(1)]
    net.initialize(ctx=devices)
    for number, device in enumerate(devices):
        net.weight.data(device)[:] = number
    average_statistics(net, Workers(mx.kv.create("local")))
    assert [net.weight.data(device).asnumpy().mean() for device in devices] == [0, 1]

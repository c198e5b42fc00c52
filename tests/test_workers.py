"""Sums, agreement and averages between real workers."""

import sys

import mxnet as mx
import pytest
from mxnet.gluon import nn
from running import launch
from workers import Workers, average_statistics

TIME_BUDGET_S = 40


@pytest.mark.parametrize("kind, count", [("dist_sync", 3), ("dist_async", 3), ("dist_sync", 1)])
def test_workers_sum_gather_average_and_agree(kind, count):
    job = launch(count, sys.executable, "tests/programs/talk.py", kind)
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("talk done") == count
    assert job.stdout.count("agreement refused") == (count if count > 1 else 0)


def test_one_process_talks_to_itself():
    workers = Workers(mx.kv.create("local"))
    assert workers.sum([1, 2]).tolist() == [1, 2]
    assert workers.gather([1, 2]).tolist() == [[1, 2]]
    workers.agree({"a": "b"})
    workers.barrier()


def test_a_network_without_statistics_is_left_alone():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    average_statistics(net, Workers(mx.kv.create("local")))

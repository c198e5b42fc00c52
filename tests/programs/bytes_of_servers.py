"""Train a network of 280,000 weights, and count the bytes that each server gets in a step."""

import sys
from pathlib import Path

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx
from mxnet.gluon import nn

from command_line.parse import parse_args
from run.trainer import create_trainer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks" / "programs"))
from count_bytes import Counter


def main():
    store, args, counter = mx.kv.create("dist_sync"), parse_args([]), Counter()
    net = nn.HybridSequential()
    net.add(*[nn.Dense(200, use_bias=False, in_units=200) for _ in range(7)])
    net.initialize()
    trainer = create_trainer(args, net, Workers(store), 1)
    for _ in range(2):
        counter.start()
        trainer.allreduce_grads()
        mx.nd.waitall()
        counts = counter.stop()
    print("sent", *counts["sent"], flush=True)


exit_with(main, "bytes_of_servers.py")

"""Let workers choose what --dtype auto is: a kind of store, and a file of processor flags each."""

import sys
from argparse import Namespace

import mxnet_setup  # noqa: F401

import mxnet as mx

from ground.failure import exit_with
from networks.by_name import network_by_name
from run.precision import faster_dtype
from workers import Workers


def main():
    net = network_by_name("mobilenet0.25", 10, (3, 32, 32), [mx.cpu()])
    workers = Workers(mx.kv.create(sys.argv[1]))
    args = Namespace(batch_size=4, image_shape=(3, 32, 32))
    dtype, reason = faster_dtype(args, net, workers, cpuinfo=sys.argv[2 + workers.rank])
    print(f"worker {workers.rank} chose {dtype}: {reason}", flush=True)
    workers.barrier()


exit_with(main, "choose_type.py")

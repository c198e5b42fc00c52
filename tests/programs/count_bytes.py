"""Count the bytes that a worker sends and gets for gradients, without and with compression.

The kernel counts for each TCP connection what was acknowledged and received; to a worker all of it
is ps-lite's. Prints one JSON object: for each way the bytes out and in, of one step.
"""

import json
import os
import socket
import struct
import time

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx
from mxnet.gluon import nn
from shifted import Shifted

from command_line.parse import parse_args
from run.trainer import create_trainer

STEPS = 5
WAYS = "--allreduce servers", "--gc-type fp16", "--gc-type 2bit"
BYTES_ACKED, BYTES_RECEIVED = 120, 128  # offsets in the struct tcp_info of Linux


def bytes_so_far():
    """Return the bytes out and in over all TCP connections of this process."""
    time.sleep(0.3)  # acknowledgements come up to 0.2 s late
    total = [0, 0]
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # not a socket
            continue
        with connection:
            if connection.family == socket.AF_INET and not connection.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            ):
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                total[0] += struct.unpack_from("Q", info, BYTES_ACKED)[0]
                total[1] += struct.unpack_from("Q", info, BYTES_RECEIVED)[0]
    return total


def count(args, store, workers):
    """Return the bytes out and in of one step."""
    net = nn.Dense(1500, in_units=1000)  # one array small enough for one server, one for both
    net.initialize()
    trainer = create_trainer(args, net, workers, STEPS)
    workers.barrier()
    before = bytes_so_far()
    for _ in range(STEPS):
        trainer.allreduce_grads()
    mx.nd.waitall()
    after = bytes_so_far()
    workers.barrier()
    return [(b - a) / STEPS for a, b in zip(before, after)]


def main():
    store = mx.kv.create("dist_sync")
    workers = Workers(store)
    found = {}
    for number, options in enumerate(WAYS):
        args = parse_args(options.split())
        found[options] = count(args, Shifted(store, number), workers)
    if workers.rank == 0:
        print(json.dumps(found))
    workers.barrier()


exit_with(main, "count_bytes.py")

"""Count the bytes that a worker sends and receives: array by array, then in a training step."""

import os
import socket
import struct

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx

import lesson
from networks.by_name import get_network
from training import CrossEntropy, forward_backward

# Size of the array of each key; the keys are above those of the Trainer, which count from 0.
ARRAYS = {600: 1000, 601: 2000, 602: 3000, 603: 999_999, 604: 1_000_000}


def main():
    store, counter = mx.kv.create("dist_sync"), Counter()
    count_arrays(store, counter)
    count_trainer(store, counter)
    store._barrier()  # nobody leaves while others still need the servers


def count_arrays(store, counter):
    """Push and pull arrays of several sizes, and count each."""
    for key, size in ARRAYS.items():
        array = mx.nd.ones(size)
        store.init(key, array)
        counter.start()
        store.push(key, array)
        store.pull(key, out=array)
        array.wait_to_read()
        counts = counter.stop()
        if store.rank == 0:
            print(f"key {key}, {size:,} numbers: {describe(counts)}")


def count_trainer(store, counter):
    """Count a step of MXNet's own Trainer."""
    net = get_network("resnet18_v1", 10, (3, 32, 32), [mx.cpu()])
    options = {"kvstore": store, "update_on_kvstore": False}
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, **options)
    counts = count_second_step(net, trainer, counter)
    print(f"a step of rank {store.rank}: {describe(counts)}")


def count_second_step(net, trainer, counter):
    """Take two steps, the first of which also hands out rank 0's weights; count the second."""
    loss = CrossEntropy()
    for _ in range(2):
        forward_backward(net, loss, [mx.nd.ones((8, 3, 32, 32))], [mx.nd.zeros(8)], 16)
        mx.nd.waitall()
        counter.start()
        trainer.step(1)
        mx.nd.waitall()
        counts = counter.stop()
    return counts


def describe(counts):
    """Return the bytes that were counted, in words."""
    if counts["sent"] is None:
        return "this system does not count bytes"
    sent = " and ".join(f"{n:,}" for n in counts["sent"])
    return f"sent {sent} bytes to the servers, received {counts['received']:,}"


class Counter:
    """Counts what goes to each server, and what comes back."""

    def __init__(self):
        self.servers = []  # their ports, in the order in which they were first sent to

    def start(self):
        self.before = count_connections()

    def stop(self):
        """Return the bytes sent to each server, and those received, or None where unknown."""
        now = count_connections()
        if now is None:
            return {"sent": None, "received": None}
        scheduler = int(os.environ["DMLC_PS_ROOT_PORT"])
        grown = {end: now[end] - self.before.get(end, 0) for end in now if end[0] != scheduler}
        ports = [port for (port, direction) in grown if direction == "sent" and grown[port, "sent"]]
        self.servers += sorted(set(ports) - set(self.servers))
        sent = [grown[port, "sent"] for port in self.servers]
        sent += [0] * (int(os.environ["DMLC_NUM_SERVER"]) - len(sent))
        return {
            "sent": sent,
            "received": sum(n for end, n in grown.items() if end[1] == "received"),
        }


def count_connections():
    """Count the bytes of all TCP connections of this process since each was opened.

    Linux counts them and tells their owner: the payload, without the headers of TCP and IP.

    Returns
    -------
    dict of (int, str) to int, or None
        (port of the other end, "sent" or "received"). None where the system does not tell.
    """
    if not (hasattr(socket, "TCP_INFO") and os.path.isdir("/proc/self/fd")):
        return None
    counts = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=int(number))
        except OSError:  # a file
            continue
        try:
            port = connection.getpeername()[1]
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            received, sent, sent_again = struct.unpack_from("Q64xQQ", info, 128)
        except OSError:  # a socket that listens, or is not TCP's
            continue
        except struct.error:  # before Linux 4.19
            return None
        finally:
            connection.detach()  # it stays open: ps-lite's own
        counts[port, "received"], counts[port, "sent"] = received, sent - sent_again
    return counts


if __name__ == "__main__":
    exit_with(main, "count_bytes.py")

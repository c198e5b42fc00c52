"""Every worker pushes an array from each of two devices, and prints what comes back."""

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.workers import Workers

import mxnet as mx


def main():
    store = mx.kv.create("dist_sync")
    store.init(0, mx.nd.zeros((2, 3)))  # rank 0's value counts

    ones = [mx.nd.ones((2, 3), ctx) * (store.rank + 1) for ctx in (mx.cpu(0), mx.cpu(1))]
    store.push(0, ones)  # adds up the devices here, then sends one array to the server
    total = mx.nd.zeros((2, 3))
    store.pull(0, out=total)  # waits for the pushes of all workers

    one_line = " ".join(str(total.asnumpy()).split())
    print(f"rank {store.rank} of {store.num_workers} pulls {one_line}")

    ranks = Workers(store).all_reduce([store.rank, 1])
    print(f"rank {store.rank} of {store.num_workers} adds up ranks and workers: {ranks}")
    store._barrier()  # no worker ends while another still needs the servers


if __name__ == "__main__":
    exit_with(main, "kvstore_sum.py")

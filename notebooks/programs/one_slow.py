"""The training program, in which worker 1 computes the gradients of each batch three times.

It takes the program's own flags.
"""

import os
import sys

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import lesson  # before what it finds
import cifar10_dist
from training import forward_backward


def three_times(*batch):
    """Backward writes the gradients anew: they are the same, only later."""
    for _ in range(3):
        outputs = forward_backward(*batch)
    return outputs


if os.environ.get("LAUNCH_WORKER_ID") == "1":
    cifar10_dist.forward_backward = three_times
if __name__ == "__main__":
    exit_with(lambda: cifar10_dist.main(sys.argv[1:]), "one_slow.py")

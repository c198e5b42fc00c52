"""The training program; worker 1 takes much longer for a step than worker 0.

argv: the program's own flags.
"""

import os
import sys
import time

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with

import cifar10_dist
from training import forward_backward


def slowly(*batch):
    """Wait, as for a slow disk, and compute thrice: backward writes the same gradients anew."""
    time.sleep(0.17)
    for _ in range(3):
        outputs = forward_backward(*batch)
    return outputs


if os.environ.get("LAUNCH_WORKER_ID") == "1":
    cifar10_dist.forward_backward = slowly
if __name__ == "__main__":
    exit_with(lambda: cifar10_dist.main(sys.argv[1:]), "slow_one.py")

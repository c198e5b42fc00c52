"""The training program on two devices of which MXNet's current one, cpu(0), is none: as on GPUs."""

import mxnet_setup  # noqa: F401

import mxnet as mx

import cifar10_dist
from ground.failure import exit_with

cifar10_dist.choose_devices = lambda args: [mx.cpu(1), mx.cpu(2)]
exit_with(cifar10_dist.main, "other_devices.py")

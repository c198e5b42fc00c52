"""The training program on two devices of which MXNet's current one, cpu(0), is none: as on GPUs."""

import gluon_dist  # noqa: F401
from gluon_dist.common.failure import exit_with

import mxnet as mx

import cifar10_dist

cifar10_dist.choose_devices = lambda args: [mx.cpu(1), mx.cpu(2)]
exit_with(cifar10_dist.main, "other_devices.py")

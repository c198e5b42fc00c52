"""The training program on a machine with two GPUs, whose work CPU devices do."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cifar10_dist"))
import gluon_dist  # noqa: F401
from gluon_dist.common.failure import exit_with

import mxnet as mx

import cifar10_dist
from command_line.devices import choose_devices

mx.context.num_gpus = lambda: 2
cifar10_dist.choose_devices = lambda args: [
    mx.cpu(1 + gpu.device_id) for gpu in choose_devices(args)
]
exit_with(cifar10_dist.main, "two_gpus.py")

"""The table of the program's flags. What goes together is in ``checks.py``."""

import os
from dataclasses import dataclass
from typing import Any

import mxnet as mx

from command_line.flag_types import (
    below_one,
    compression,
    count,
    epochs,
    fraction,
    gpu_list,
    not_negative,
    path,
    positive,
    positive_float,
    positive_triple,
    shape,
    triple,
)


@dataclass(frozen=True)
class Flag:
    """A flag of the command line."""

    names: str  # with a space between them
    takes: Any  # an argparse type, or a tuple of the possible values
    default: Any  # a value or its text; None: nothing, or what `defaults.fill_in` says
    shown: Any  # what --help calls the value; None: it lists the possible values
    help: str
    alone: Any = None  # the value if only the flag is given, of flags that may stand alone
    steers: bool = False  # changes the training: a resumed one warns if the value differs
    may_differ: bool = False  # from worker to worker

    @property
    def name(self):
        """The first of its names: ``--num-epochs``."""
        return self.names.split()[0]

    @property
    def attribute(self):
        """Where argparse puts its value: ``num_epochs``."""
        return attribute_of(self.name)

    def of(self, args):
        """Return its value in a namespace."""
        return getattr(args, self.attribute)


def attribute_of(name):
    """Return where argparse puts the value of a flag: ``num_epochs`` for ``--num-epochs``."""
    return name[2:].replace("-", "_")


def names_a_folder(prefix):
    """Return whether ``--model-prefix`` ends where the files' names should begin."""
    return prefix and os.path.basename(prefix) in ("", ".", "..")


STORES = ("local", "device", "dist", "dist_sync", "dist_device_sync", "dist_async", "horovod")
# One is for MXNet's own tests, the other for embeddings: it takes weights of two dimensions.
OPTIMIZERS = sorted(set(mx.optimizer.Optimizer.opt_registry) - {"test", "groupadagrad"})
SCHEDULES = ("constant", "step", "cosine", "onecycle")
# fmt: off
FLAGS = {
    "devices and workers": (
        Flag("--kv-store", STORES, None, None,
             "MXNet's kvstore; default dist under a launcher, else device"),
        Flag("--gpus", gpu_list, None, "0,1", "GPUs of this worker; without a value: the CPU; "
             "default: its share of the host's GPUs", alone="", may_differ=True),
        Flag("--cpus", positive, None, "N", "rehearse N devices on the CPU", may_differ=True),
        Flag("--allreduce", ("auto", "servers"), "auto", None,
             "where gradients of workers are added up; auto: in shared memory if all workers are "
             "on one Linux host, with one CPU device each, without --gc-type; else on the servers"),
    ),
    "network": (
        Flag("--network", str, "resnet18_v1", "NAME",
             "a GluonCV classifier; resnet (see --num-layers); fast, which sets other defaults; or "
             "PATH-symbol.json, a network that MXNet saved"),
        Flag("--num-layers", positive, None, "N",
             "layers of --network resnet, as in MXNet's older examples: 6n+2, as for CIFAR-10; "
             "18, 34, 50, 101, 152, 200 or 269, as for ImageNet, with more than 28 pixels; "
             "default 20, with more than 32 pixels 50"),
        Flag("--num-classes", positive, 10, "N", "classes of the images"),
        Flag("--dtype", ("float32", "float16", "bfloat16"), "float32", None,
             "type of convolutions and products; weights stay float32", steers=True),
    ),
    "data": (
        Flag("--data", ("auto", "cifar10", "synthetic"), "auto", None,
             "auto: CIFAR-10 from disk, else a download, else synthetic images"),
        Flag("--data-dir", path, None, "DIR",
             "where CIFAR-10 is, or is put; default: MXNet's own folder", may_differ=True),
        Flag("--data-train", path, None, "X.rec",
             "RecordIO file to train on, a folder of them, or several: 'a.rec;b.rec'",
             may_differ=True),
        Flag("--data-val", path, None, "Y.rec", "the same, to test on", may_differ=True),
        Flag("--image-shape", shape, "3,32,32", "3,32,32", "channels, height, width"),
        Flag("--num-examples", positive, None, "N", "train on the first N examples only"),
        Flag("--max-data-gb", positive_float, 2.0, "GB",
             "decode RecordIO files once if their images fit in GB, else at each use"),
        Flag("--pad-size", count, 0, "PIXELS", "zeros around the image", steers=True),
        Flag("--random-crop", (0, 1), 0, None,
             "crop --image-shape at random from the whole, padded image", steers=True),
        Flag("--random-mirror", (0, 1), 0, None,
             "flip half of the images, the other half in the next epoch", steers=True),
        Flag("--rgb-mean", triple, "0,0,0", "R,G,B", "subtracted from the pixels (0 to 255)",
             steers=True),
        Flag("--rgb-std", positive_triple, "255,255,255", "R,G,B", "then divided by", steers=True),
    ),
    "training": (
        Flag("--batch-size", positive, 256, "N",
             "examples of one worker in a step, over all its devices"),
        Flag("--num-epochs --num-epoch", positive, 5, "N", "epochs in all"),
        Flag("--optimizer", str, "adam", "NAME", "one of MXNet's", steers=True),
        Flag("--lr", positive_float, 0.001, "RATE", "learning rate", steers=True),
        Flag("--lr-schedule", SCHEDULES, None, None,
             "default step with --lr-step-epochs, else constant", steers=True),
        Flag("--lr-factor", fraction, 0.1, "F",
             "what each step of --lr-schedule step multiplies the learning rate by", steers=True),
        Flag("--lr-step-epochs", epochs, "", "30,60", "epochs of these steps", steers=True),
        Flag("--warmup-epochs", not_negative, 0, "N",
             "epochs in which the learning rate rises from zero", steers=True),
        Flag("--lr-scale", ("none", "sqrt", "linear", "staleness"), None, None,
             "linear: multiply the learning rate by (batch of all workers) / 256, in dist_async by "
             "(batch of one) / 256; sqrt: by its root; staleness: lower rate and less momentum for "
             "more workers; default staleness in dist_async, else none", steers=True),
        Flag("--mom", not_negative, 0.9, "M", "momentum, of optimizers that have one", steers=True),
        Flag("--wd", not_negative, 0.0, "W", "weight decay", steers=True),
        Flag("--label-smoothing", below_one, 0.0, "E", "at least 0, below 1", steers=True),
        Flag("--lookahead", count, 0, "N",
             "steps between two averagings of the weights; 0: never", steers=True),
        Flag("--gc-type", compression, None, "{none,fp16,2bit}",
             "send gradients in fewer bits, through servers in synchronous training: fp16: in 16, "
             "both ways; 2bit: in 2, one way; default none", steers=True),
        Flag("--gc-threshold", positive_float, 0.5, "T",
             "2bit sends each gradient as -T, 0 or T, divided by the global batch size",
             steers=True),
        Flag("--target-accuracy", fraction, None, "A",
             "stop after the epoch whose test reaches this accuracy, a fraction in (0, 1]"),
        Flag("--seed", count, 0, "N", "of weights, order and augmentation"),
    ),
    "what is written": (
        Flag("--disp-batches", positive, 20, "N", "batches between two lines", may_differ=True),
        Flag("--test-period", positive, 1, "N",
             "epochs between two tests; the last epoch is always tested"),
        Flag("--top-k", count, 0, "K", "report the top-K accuracy too; 0: no"),
        Flag("--flip-test", ("0", "1", "last"), "0", None,
             "add the scores of each test image and its mirror image, in twice the time; last: "
             "after the last epoch only"),
        Flag("--model-prefix", path, None, "PATH", "save checkpoints: PATH-0001.params, …"),
        Flag("--save-period", positive, 1, "N",
             "epochs between two checkpoints; the last epoch is always saved"),
        Flag("--keep", positive, None, "N", "keep N checkpoints of this run; default: all",
             may_differ=True),
        Flag("--resume", path, None, "WHAT",
             "auto: continue from the newest checkpoint of --model-prefix, if there is one; none; "
             "or a checkpoint, PATH-0003; default auto under the launcher's --max-restarts, else "
             "none"),
        Flag("--load-epoch", count, None, "N",
             "continue from PATH-000N.params, up to --num-epochs in all"),
        Flag("--log-dir", path, None, "DIR",
             "TensorBoard events and metrics.jsonl; {run} in it stands for a name of the run",
             may_differ=True),
    ),
    "measuring": (
        Flag("--test-io", (0, 1), 0, None, "read the data without training", alone=1),
        Flag("--benchmark", (0, 1), 0, None, "train on one repeated batch: speed without reading",
             alone=1),
        Flag("--profile", path, None, "FILE",
             "write a trace of the first epoch for chrome://tracing", may_differ=True),
    ),
}
# Flags of MXNet's older examples that have nothing to act on here.
WITHOUT_EFFECT = (
    "--data-train-idx", "--data-val-idx", "--data-nthreads", "--fill-value", "--initializer",
    "--loss", "--macrobatch-size", "--monitor", "--warmup-strategy", "--profile-worker-suffix",
    "--profile-server-suffix", "--use-imagenet-data-augmentation", "--max-random-h",
    "--max-random-s", "--max-random-l", "--min-random-aspect-ratio",
    "--max-random-aspect-ratio", "--max-random-rotate-angle", "--max-random-shear-ratio",
    "--max-random-scale", "--min-random-scale", "--max-random-area", "--min-random-area",
    "--max-crop-size", "--min-crop-size", "--brightness", "--contrast", "--saturation",
    "--pca-noise", "--random-resized-crop",
)
# fmt: on
ALL = [flag for flags in FLAGS.values() for flag in flags]

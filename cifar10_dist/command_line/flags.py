"""The flags of the program: all that is known of a flag stands in its entry in ``FLAGS``."""

import hashlib
import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gluon_dist.common.processor import processor_flags
from gluon_dist.setup.environment import (
    is_launched,
    max_restarts,
    num_ring_workers,
    num_servers,
    uses_p3,
)

import mxnet as mx

from command_line.flag_types import (
    SMALL,
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


def attribute_of(name):
    """Return where argparse puts the value of a flag: ``num_epochs`` for ``--num-epochs``."""
    return name[2:].replace("-", "_")


@dataclass(frozen=True)
class Flag:
    """All that is known of a flag of the command line.

    Where a field may be a function, ``a`` are the values of all flags.
    """

    # fmt: off
    names: str  # with a space between them
    takes: Any  # an argparse type, or a tuple of the possible values
    default: Any  # a value, its text, a function of a, or None for nothing
    shown: Any  # what --help calls the value; None: it lists the possible values
    help: str
    alone: Any = None  # the value if only the flag is given, of flags that may stand alone
    excludes: Any = None  # a flag that cannot be given beside it
    checks: Any = ()  # pairs: when its value is a mistake, a function of a, and the message, in which {name} is the value of --name
    device_checks: Any = ()  # the same, functions of a, the kind of this worker's devices ("cpu" or "gpu") and their number
    fast: Any = None  # its default with --network fast, where it has another: as above
    older: Any = None  # a pair: whether to warn that its default is another in MXNet's older examples, a function of the values as given (None: not given), and that default
    steers: bool = False  # the course of a training: one that is resumed with another value says so
    agreed: Any = str  # the text of its value that must be the same on all workers; None: they may differ in it
    # fmt: on

    @property
    def name(self):
        """The first of its names: ``--num-epochs``."""
        return self.names.split()[0]

    def of(self, args):
        """Return its value in a namespace."""
        return getattr(args, attribute_of(self.name))


def names_a_folder(prefix):
    """Tell whether ``--model-prefix`` ends where the files' names should begin."""
    return prefix and os.path.basename(prefix) in ("", ".", "..")


def _cannot_be_written(path):
    return path and not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def _lacks_avx512():
    known = processor_flags()  # empty where the system does not list them
    return known and "avx512bw" not in known


def _is_symbol(a):
    return a.network.endswith(".json")


def _network_text(name):
    """Return the name; for a file, what tells its content from others."""
    if not name.endswith(".json"):
        return name
    return f"a file with SHA-256 {hashlib.sha256(Path(name).read_bytes()).hexdigest()[:12]}"


def _default_resume(a):
    return "auto" if max_restarts() and a.model_prefix and a.load_epoch is None else "none"


STORES = ("local", "device", "dist", "dist_sync", "dist_device_sync", "dist_async", "horovod")
SYNC_STORES = ("dist", "dist_sync", "dist_device_sync")
# One is for MXNet's own tests, the other for embeddings: it takes weights of two dimensions.
OPTIMIZERS = sorted(set(mx.optimizer.Optimizer.opt_registry) - {"test", "groupadagrad"})
# The defaults for --network fast are per 256 examples, as --lr-scale linear has it.
# fmt: off
FLAGS = {
    "devices and workers": (
        Flag("--kv-store", STORES, lambda a: "dist" if is_launched() else "device", None, "MXNet's kvstore; default dist under a launcher, else device", checks=[
            (lambda a: a.kv_store.startswith("dist") and not is_launched(), "--kv-store {kv_store} needs a launcher: python tools/launch.py -n 2 -s 2 --launcher local \"python cifar10_dist.py …\""),
            (lambda a: uses_p3() and a.kv_store == "dist_async", "--kv-store dist_async does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"),
            (lambda a: is_launched() and a.kv_store in ("local", "device"), "--kv-store {kv_store} under a launcher would train every worker alone: use dist_sync, or start one process without the launcher"),
            (lambda a: num_ring_workers() > 1 and a.kv_store != "horovod", "--kv-store {kv_store} would train every worker of horovodrun or mpirun alone: use horovod"),
            (lambda a: a.kv_store.startswith("dist") and num_servers() == 0, "--kv-store {kv_store} has no servers: leave out the launcher's -s 0, or use --kv-store horovod"),
            (lambda a: a.kv_store == "horovod" and not is_launched() and num_ring_workers() == 1, "--kv-store horovod needs a launcher: python tools/launch.py -n 2 -s 0 --launcher local \"python cifar10_dist.py …\""),
            (lambda a: a.kv_store == "horovod" and is_launched() and num_servers() > 0, "--kv-store horovod takes no servers: give the launcher -s 0"),
            (lambda a: a.kv_store == "horovod" and importlib.util.find_spec("horovod") is None, "--kv-store horovod: Horovod is not installed: make setup HOROVOD=1"),
        ]),
        Flag("--gpus", gpu_list, None, "0,1", "GPUs of this worker; without a value: the CPU; default: its share of the host's GPUs", alone="", agreed=None),
        Flag("--cpus", positive, None, "N", "rehearse N devices on the CPU", excludes="--gpus", agreed=None),
        Flag("--allreduce", ("auto", "servers"), "auto", None, "where gradients of workers are added up; auto: in shared memory "
             "if all workers are on one Linux host, with one CPU device each, without --gc-type; else on the servers"),
    ),
    "network": (
        Flag("--network", str, "resnet18_v1", "NAME", "a GluonCV classifier; resnet (see --num-layers); fast, which sets other defaults; "
             "or PATH-symbol.json, a network that MXNet saved", agreed=_network_text,
             checks=[(lambda a: _is_symbol(a) and not os.path.isfile(a.network), "--network {network}: no such file")]),
        Flag("--num-layers", positive, None, "N", "layers of --network resnet, as in MXNet's older examples: 6n+2, as for CIFAR-10; 18, 34, 50, 101, 152, "
             "200 or 269, as for ImageNet, with more than 28 pixels; default 20, with more than 32 pixels 50"),
        Flag("--num-classes", positive, 10, "N", "classes of the images"),
        Flag("--dtype", ("float32", "float16", "bfloat16"), "float32", None, "type of convolutions and products; weights stay float32", steers=True,
             checks=[(lambda a: _is_symbol(a) and a.dtype in ("float16", "bfloat16"), "--dtype {dtype}: {network} is read as it is, without casts; take float32"),
                     (lambda a: a.kv_store == "dist_async" and a.dtype == "float16", "--dtype float16 and dist_async exclude each other: the servers cannot know how float16 gradients are scaled")],
             device_checks=[(lambda a, kind, number: kind == "cpu" and a.dtype == "float16", "--dtype float16 needs a GPU; on the CPU try bfloat16"),
                            (lambda a, kind, number: kind == "gpu" and a.dtype == "bfloat16", "--dtype bfloat16 needs a CPU; on GPUs try float16"),
                            (lambda a, kind, number: a.dtype == "bfloat16" and _lacks_avx512(), "--dtype bfloat16: MXNet needs a processor with AVX-512; take float32")]),
    ),
    "data": (
        Flag("--data", ("auto", "cifar10", "synthetic"), "auto", None, "auto: CIFAR-10 from disk, else a download, else synthetic images"),
        Flag("--data-dir", path, None, "DIR", "where CIFAR-10 is, or is put; default: MXNet's own folder", agreed=None),
        Flag("--data-train", path, None, "X.rec", "RecordIO file to train on, a folder of them, or several: 'a.rec;b.rec'", agreed=None,
             checks=[(lambda a: bool(a.data_train) != bool(a.data_val), "--data-train and --data-val go together"),
                     (lambda a: a.data_train and a.data != "auto", "--data {data} and --data-train exclude each other")]),
        Flag("--data-val", path, None, "Y.rec", "the same, to test on", agreed=None),
        Flag("--image-shape", shape, "3,32,32", "3,32,32", "channels, height, width"),
        Flag("--num-examples", positive, None, "N", "train on the first N examples only"),
        Flag("--max-data-gb", positive_float, 2.0, "GB", "decode RecordIO files once if their images fit in GB, else at each use"),
        Flag("--pad-size", count, 0, "PIXELS", "zeros around the image", fast=2, steers=True,
             checks=[(lambda a: a.pad_size > 1000, "--pad-size {pad_size}: too wide a border; at most 1000 pixels")]),
        Flag("--random-crop", (0, 1), 0, None, "crop --image-shape at random from the whole, padded image", fast=1, steers=True),
        Flag("--random-mirror", (0, 1), 0, None, "flip half of the images, the other half in the next epoch", fast=1, steers=True),
        Flag("--rgb-mean", triple, "0,0,0", "R,G,B", "subtracted from the pixels (0 to 255)", fast="125.3,123,113.9", steers=True,
             older=(lambda given: given.rgb_std and not given.rgb_mean, "123.68,116.779,103.939")),
        Flag("--rgb-std", positive_triple, "255,255,255", "R,G,B", "then divided by", fast="63,62.1,66.7", steers=True,
             older=(lambda given: given.rgb_mean and not given.rgb_std, "1,1,1")),
    ),
    "training": (
        Flag("--batch-size", positive, 256, "N", "examples of one worker in a step, over all its devices",
             device_checks=[(lambda a, kind, number: a.batch_size < number, "--batch-size {batch_size}: fewer than one for each of {num_devices} devices")]),
        Flag("--num-epochs --num-epoch", positive, 5, "N", "epochs in all"),
        Flag("--optimizer", str, "adam", "NAME", "one of MXNet's", fast="nag", steers=True,
             older=(lambda given: (given.mom or (given.lr or 0) >= 0.05) and not given.optimizer, "sgd"),  # Adam's rates are lower
             checks=[(lambda a: a.optimizer.lower() not in OPTIMIZERS, "--optimizer {optimizer}: not one of " + ", ".join(OPTIMIZERS)),
                     (lambda a: a.optimizer.lower() == "dcasgd" and a.mom, "--optimizer dcasgd: MXNet's fails with a momentum; add --mom 0")],
             device_checks=[(lambda a, kind, number: number > 1 and a.kv_store != "dist_async" and a.optimizer.lower() in ("sgld", "nadam"),
                             "--optimizer {optimizer}: MXNet's updates each of {num_devices} devices in another way; take one device a worker")]),
        Flag("--lr", positive_float, 0.001, "RATE", "learning rate", fast=0.375, steers=True,
             older=(lambda given: (given.optimizer or "").lower() in ("sgd", "nag") and not given.lr, "0.1")),
        Flag("--lr-schedule", ("constant", "step", "cosine", "onecycle"), lambda a: "step" if a.lr_step_epochs else "constant", None,
             "default step with --lr-step-epochs, else constant", fast=lambda a: "step" if a.lr_step_epochs else "onecycle", steers=True,
             checks=[(lambda a: a.lr_schedule == "step" and not a.lr_step_epochs, "--lr-schedule step needs --lr-step-epochs, such as 30,60")]),
        Flag("--lr-factor", fraction, 0.1, "F", "what each step of --lr-schedule step multiplies the learning rate by", steers=True,
             checks=[(lambda a: a.lr * a.lr_factor ** len(a.lr_step_epochs) < SMALL, "--lr-factor {lr_factor}: the learning rate would fall below " + str(SMALL))]),
        Flag("--lr-step-epochs", epochs, "", "30,60", "epochs of these steps", steers=True,
             checks=[(lambda a: a.lr_step_epochs and a.lr_schedule != "step", "--lr-step-epochs goes with --lr-schedule step, not {lr_schedule}")]),
        Flag("--warmup-epochs", not_negative, 0, "N", "epochs in which the learning rate rises from zero", fast=lambda a: 0.23 * a.num_epochs, steers=True,
             checks=[(lambda a: a.warmup_epochs > a.num_epochs, "--warmup-epochs {warmup_epochs}: longer than the training")]),
        Flag("--lr-scale", ("none", "sqrt", "linear", "staleness"), lambda a: "staleness" if a.kv_store == "dist_async" else "none", None,
             "linear: multiply the learning rate by (batch of all workers) / 256, in dist_async by (batch of one) / 256; sqrt: by its root; "
             "staleness: lower rate and less momentum for more workers; default staleness in dist_async, else none",
             fast=lambda a: "staleness" if a.kv_store == "dist_async" else "linear", steers=True,
             checks=[(lambda a: a.lr_scale == "staleness" and a.kv_store != "dist_async", "--lr-scale staleness needs --kv-store dist_async: only there gradients come late")]),
        Flag("--mom", not_negative, 0.9, "M", "momentum, of optimizers that have one", fast=0.85, steers=True),
        Flag("--wd", not_negative, 0.0, "W", "weight decay", fast=0.00133, steers=True),
        Flag("--label-smoothing", below_one, 0.0, "E", "at least 0, below 1", fast=0.2, steers=True),
        Flag("--lookahead", count, 0, "N", "steps between two averagings of the weights; 0: never", fast=5, steers=True),
        Flag("--gc-type", compression, None, "{none,fp16,2bit}", "send gradients in fewer bits, dist_sync only: fp16: in 16, both ways; 2bit: in 2, one way; default none", steers=True, checks=[
            (lambda a: uses_p3() and a.gc_type, "--gc-type {gc_type} does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"),
            (lambda a: a.gc_type and a.kv_store not in SYNC_STORES, "--gc-type {gc_type} needs --kv-store dist_sync, not {kv_store}: start it with tools/launch.py"),
            (lambda a: a.gc_type and a.dtype == "float16", "--gc-type and --dtype float16 exclude each other: float16 gradients are scaled"),
        ]),
        Flag("--gc-threshold", positive_float, 0.5, "T", "each gradient, summed over a batch, is pushed as -T, 0 or T", steers=True),
        Flag("--target-accuracy", fraction, None, "A", "stop after the epoch whose test reaches this accuracy, a fraction in (0, 1]"),
        Flag("--seed", count, 0, "N", "of weights, order and augmentation"),
    ),
    "what is written": (
        Flag("--disp-batches", positive, 20, "N", "batches between two lines", agreed=None),
        Flag("--test-period", positive, 1, "N", "epochs between two tests; the last epoch is always tested"),
        Flag("--top-k", count, 0, "K", "report the top-K accuracy too; 0: no",
             checks=[(lambda a: a.top_k > a.num_classes, "--top-k {top_k}: there are {num_classes} classes")]),
        Flag("--flip-test", ("0", "1", "last"), "0", None, "add the scores of each test image and its mirror image, in twice the time; "
             "last: after the last epoch only", fast="last"),
        Flag("--model-prefix", path, None, "PATH", "save checkpoints: PATH-0001.params, …", agreed=lambda prefix: "given" if prefix else "not given",
             checks=[(lambda a: names_a_folder(a.model_prefix), "--model-prefix {model_prefix}: a folder; add how its files begin, as in out/model")]),
        Flag("--save-period", positive, 1, "N", "epochs between two checkpoints; the last epoch is always saved"),
        Flag("--keep", positive, None, "N", "keep N checkpoints of this run; default: all", agreed=None,
             checks=[(lambda a: a.keep and not a.model_prefix, "--keep needs --model-prefix, the start of the file names")]),
        Flag("--resume", path, _default_resume, "WHAT", "auto: continue from the newest checkpoint of --model-prefix, if there is one; "
             "none; or a checkpoint, PATH-0003; default auto under the launcher's --max-restarts, else none",
             agreed=lambda what: what if what in ("auto", "none") else "of a path",
             checks=[(lambda a: a.resume == "auto" and not a.model_prefix, "--resume auto needs --model-prefix, the start of the file names")]),
        Flag("--load-epoch", count, None, "N", "continue from PATH-000N.params, up to --num-epochs in all", excludes="--resume", checks=[
            (lambda a: a.load_epoch is not None and not a.model_prefix, "--load-epoch needs --model-prefix, the start of the file names"),
            (lambda a: a.load_epoch is not None and a.load_epoch >= a.num_epochs, "--load-epoch {load_epoch}: nothing is left of --num-epochs {num_epochs}"),
        ]),
        Flag("--log-dir", path, None, "DIR", "TensorBoard events and metrics.jsonl; {run} in it stands for a name of the run", agreed=None),
    ),
    "measuring": (
        Flag("--test-io", (0, 1), 0, None, "read the data without training", alone=1),
        Flag("--benchmark", (0, 1), 0, None, "train on one repeated batch: speed without reading", alone=1),
        Flag("--profile", path, None, "FILE", "write a trace of the first epoch for chrome://tracing", agreed=None,
             checks=[(lambda a: _cannot_be_written(a.profile), "--profile {profile}: its folder is missing or cannot be written to")]),
    ),
}
# Flags of MXNet's older examples that have nothing to act on here.
WITHOUT_EFFECT = (
    "--data-train-idx", "--data-val-idx", "--data-nthreads", "--fill-value", "--initializer", "--loss", "--macrobatch-size",
    "--monitor", "--warmup-strategy", "--profile-worker-suffix", "--profile-server-suffix", "--use-imagenet-data-augmentation",
    "--max-random-h", "--max-random-s", "--max-random-l", "--min-random-aspect-ratio", "--max-random-aspect-ratio",
    "--max-random-rotate-angle", "--max-random-shear-ratio", "--max-random-scale", "--min-random-scale", "--max-random-area",
    "--min-random-area", "--max-crop-size", "--min-crop-size", "--brightness", "--contrast", "--saturation", "--pca-noise",
    "--random-resized-crop",
)
# fmt: on
ALL = [flag for flags in FLAGS.values() for flag in flags]

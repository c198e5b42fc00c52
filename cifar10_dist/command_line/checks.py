"""Flags that do not go together: what is wrong, and what the user is told."""

import os

import mxnet as mx

from command_line.flag_types import SMALL
from ground.environment import is_launched, uses_p3
from ground.failure import UsageError

SYNC_STORES = ("dist", "dist_sync", "dist_device_sync")
# One is for MXNet's own tests, the other for embeddings: it takes weights of two dimensions.
OPTIMIZERS = sorted(set(mx.optimizer.Optimizer.opt_registry) - {"test", "groupadagrad"})

# A condition that holds is a mistake; the first one is reported. A flag that was not given is None
# if its default depends on other flags. {name} stands for the value of --name.
# fmt: off
CHECKS = (
    (lambda a: a.cpus and a.gpus, "--cpus and --gpus exclude each other"),
    (lambda a: bool(a.data_train) != bool(a.data_val), "--data-train and --data-val go together"),
    (lambda a: a.data_train and a.data != "auto", "--data {data} and --data-train exclude each other"),
    (lambda a: a.load_epoch is not None and not a.model_prefix, "--load-epoch needs --model-prefix, the start of the file names"),
    (lambda a: a.keep and not a.model_prefix, "--keep needs --model-prefix, the start of the file names"),
    (lambda a: _names_a_folder(a.model_prefix), "--model-prefix {model_prefix}: a folder; add how its files begin, as in out/model"),
    (lambda a: _cannot_be_written(a.profile), "--profile {profile}: its folder is missing or cannot be written to"),
    (lambda a: a.load_epoch is not None and a.resume, "--load-epoch and --resume exclude each other"),
    (lambda a: a.resume == "auto" and not a.model_prefix, "--resume auto needs --model-prefix, the start of the file names"),
    (lambda a: a.load_epoch is not None and a.load_epoch >= a.num_epochs, "--load-epoch {load_epoch}: nothing is left of --num-epochs {num_epochs}"),
    (lambda a: a.pad_size > 1000, "--pad-size {pad_size}: too wide a border; at most 1000 pixels"),
    (lambda a: a.top_k > a.num_classes, "--top-k {top_k}: there are {num_classes} classes"),
    (lambda a: a.lr_schedule == "step" and not a.lr_step_epochs, "--lr-schedule step needs --lr-step-epochs, such as 30,60"),
    (lambda a: a.lr_step_epochs and a.lr_schedule not in (None, "step"), "--lr-step-epochs goes with --lr-schedule step, not {lr_schedule}"),
    (lambda a: a.lr * a.lr_factor ** len(a.lr_step_epochs) < SMALL, "--lr-factor {lr_factor}: the learning rate would fall below " + str(SMALL)),
    (lambda a: a.lr_scale == "staleness" and a.kv_store != "dist_async",
     "--lr-scale staleness needs --kv-store dist_async: only there gradients come late"),
    (lambda a: a.warmup_epochs > a.num_epochs, "--warmup-epochs {warmup_epochs}: longer than the training"),
    (lambda a: a.kv_store.startswith("dist") and not is_launched(),
     "--kv-store {kv_store} needs a launcher: python tools/launch.py -n 2 -s 2 --launcher local \"python cifar10_dist.py …\""),
    (lambda a: uses_p3() and a.gc_type, "--gc-type {gc_type} does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"),
    (lambda a: uses_p3() and a.kv_store == "dist_async", "--kv-store dist_async does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"),
    (lambda a: is_launched() and not a.kv_store.startswith("dist"),
     "--kv-store {kv_store} under a launcher would train every worker alone: use dist_sync, or start one process without the launcher"),
    (lambda a: a.gc_type and a.kv_store not in SYNC_STORES,
     "--gc-type {gc_type} needs --kv-store dist_sync, not {kv_store}: start it with tools/launch.py"),
    (lambda a: a.gc_type and a.dtype == "float16", "--gc-type and --dtype float16 exclude each other: float16 gradients are scaled"),
    (lambda a: a.kv_store == "dist_async" and a.dtype == "float16",
     "--dtype float16 and dist_async exclude each other: the servers cannot know how float16 gradients are scaled"),
    (lambda a: a.optimizer.lower() not in OPTIMIZERS, "--optimizer {optimizer}: not one of " + ", ".join(OPTIMIZERS)),
    (lambda a: a.optimizer.lower() == "dcasgd" and a.mom, "--optimizer dcasgd: MXNet's fails with a momentum; add --mom 0"),
)
# Checks that need to know the devices of this worker: their kind, and their number n.
DEVICE_CHECKS = (
    (lambda a, kind, n: kind == "cpu" and a.dtype == "float16", "--dtype float16 needs a GPU; on the CPU try bfloat16"),
    (lambda a, kind, n: kind == "gpu" and a.dtype == "bfloat16", "--dtype bfloat16 needs a CPU; on GPUs try float16"),
    (lambda a, kind, n: a.batch_size < n, "--batch-size {batch_size}: fewer than one for each of {num_devices} devices"),
    (lambda a, kind, n: n > 1 and a.kv_store != "dist_async" and a.optimizer.lower() in ("sgld", "nadam"),
     "--optimizer {optimizer}: MXNet's updates each of {num_devices} devices in another way; take one device a worker"),
)
# Flags of MXNet's older examples that are half of a pair, its other half missing: which one, and
# its default there. Of g, the flags, those that were not given are None.
OTHER_DEFAULTS = (
    (lambda g: g.rgb_mean and not g.rgb_std, "--rgb-std", "1,1,1"),
    (lambda g: g.rgb_std and not g.rgb_mean, "--rgb-mean", "123.68,116.779,103.939"),
    (lambda g: (g.mom or (g.lr or 0) >= 0.05) and not g.optimizer, "--optimizer", "sgd"),  # Adam's rates are lower
    (lambda g: (g.optimizer or "").lower() in ("sgd", "nag") and not g.lr, "--lr", "0.1"),
)
# fmt: on


def check(args):
    """See that the flags go together.

    Parameters
    ----------
    args : argparse.Namespace
        As given, before :func:`flags.defaults_that_depend` fills in the rest.

    Raises
    ------
    UsageError
    """
    for is_wrong, message in CHECKS:
        if is_wrong(args):
            raise UsageError(message.format(**vars(args)))


def check_devices(args, kind, num_devices):
    """See that the flags go with this worker's devices.

    Parameters
    ----------
    args : argparse.Namespace
    kind : {'cpu', 'gpu'}
    num_devices : int

    Raises
    ------
    UsageError
    """
    for is_wrong, message in DEVICE_CHECKS:
        if is_wrong(args, kind, num_devices):
            raise UsageError(message.format(num_devices=num_devices, **vars(args)))


def _names_a_folder(prefix):
    return prefix and os.path.basename(prefix) in ("", ".", "..")


def _cannot_be_written(path):
    return path and not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)

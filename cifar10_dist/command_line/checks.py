"""Which flags do not go together, with each other or with what there is here."""

import importlib.util
import os
from itertools import chain

from gluon_dist.common.errors import UsageError
from gluon_dist.common.processor import processor_flags
from gluon_dist.setup.environment import is_launched, num_ring_workers, num_servers, uses_p3

from command_line.flag_types import SMALL
from command_line.flags import OPTIMIZERS, names_a_folder

SYNC_STORES = ("dist", "dist_sync", "dist_device_sync")
LAUNCH = 'python tools/launch.py -n 2 -s {} --launcher local "python cifar10_dist.py …"'


def check(args, given):
    """See that the flags go together.

    Parameters
    ----------
    args, given : argparse.Namespace
        All values; and only those of the command line, None for flags that it leaves out.

    Raises
    ------
    UsageError
        With one line: the first mistake.
    """
    mistakes = chain(
        _mistakes_of_workers(args),
        _mistakes_of_network(args),
        _mistakes_of_data(args),
        _mistakes_of_training(args),
        _mistakes_of_files(args, given),
    )
    for first in mistakes:
        raise UsageError(first)


def _mistakes_of_workers(args):
    """Yield what is wrong with the store, and with the devices as they are asked for."""
    store = args.kv_store
    is_dist = store.startswith("dist")
    if is_dist and not is_launched():
        yield f"--kv-store {store} needs a launcher: {LAUNCH.format(2)}"
    if uses_p3() and store == "dist_async":
        yield "--kv-store dist_async does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"
    if is_launched() and store in ("local", "device"):
        yield (
            f"--kv-store {store} under a launcher would train every worker alone: use dist_sync, "
            "or start one process without the launcher"
        )
    if num_ring_workers() > 1 and store != "horovod":
        yield (
            f"--kv-store {store} would train every worker of horovodrun or mpirun alone: use "
            "horovod"
        )
    if is_dist and num_servers() == 0:
        yield (
            f"--kv-store {store} has no servers: leave out the launcher's -s 0, or use --kv-store "
            "horovod"
        )
    if store == "horovod":
        if not is_launched() and num_ring_workers() == 1:
            yield f"--kv-store horovod needs a launcher: {LAUNCH.format(0)}"
        if is_launched() and num_servers() > 0:
            yield "--kv-store horovod takes no servers: give the launcher -s 0"
        if importlib.util.find_spec("horovod") is None:
            yield "--kv-store horovod: Horovod is not installed: make setup HOROVOD=1"
    if args.cpus and args.gpus:
        yield "--cpus and --gpus exclude each other"


def _mistakes_of_network(args):
    """Yield what is wrong with the network and its type."""
    is_file = args.network.endswith(".json")
    if is_file and not os.path.isfile(args.network):
        yield f"--network {args.network}: no such file"
    if is_file and args.dtype != "float32":
        yield f"--dtype {args.dtype}: {args.network} is read as it is, without casts; take float32"
    if args.kv_store == "dist_async" and args.dtype == "float16":
        yield (
            "--dtype float16 and dist_async exclude each other: the servers cannot know how "
            "float16 gradients are scaled"
        )


def _mistakes_of_data(args):
    """Yield what is wrong with the images."""
    if bool(args.data_train) != bool(args.data_val):
        yield "--data-train and --data-val go together"
    if args.data_train and args.data != "auto":
        yield f"--data {args.data} and --data-train exclude each other"
    if args.test_io and args.benchmark:
        yield "--test-io and --benchmark exclude each other: --benchmark reads one batch only"
    if args.pad_size > 1000:
        yield f"--pad-size {args.pad_size}: too wide a border; at most 1000 pixels"


def _mistakes_of_training(args):
    """Yield what is wrong with the optimizer, its rate and the compression of gradients."""
    optimizer, steps = args.optimizer.lower(), args.lr_step_epochs
    if optimizer not in OPTIMIZERS:
        yield f"--optimizer {args.optimizer}: not one of {', '.join(OPTIMIZERS)}"
    if optimizer == "dcasgd" and args.mom:
        yield "--optimizer dcasgd: MXNet's fails with a momentum; add --mom 0"
    if args.lr_schedule == "step" and not steps:
        yield "--lr-schedule step needs --lr-step-epochs, such as 30,60"
    if args.lr * args.lr_factor ** len(steps) < SMALL:
        yield f"--lr-factor {args.lr_factor}: the learning rate would fall below {SMALL}"
    if steps and args.lr_schedule != "step":
        yield f"--lr-step-epochs goes with --lr-schedule step, not {args.lr_schedule}"
    if args.warmup_epochs > args.num_epochs:
        yield f"--warmup-epochs {args.warmup_epochs}: longer than the training"
    if args.lr_scale == "staleness" and args.kv_store != "dist_async":
        yield "--lr-scale staleness needs --kv-store dist_async: only there gradients come late"
    if args.gc_type:
        compression = f"--gc-type {args.gc_type}"
        if uses_p3():
            yield f"{compression} does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)"
        if args.kv_store not in SYNC_STORES:
            yield (
                f"{compression} needs --kv-store dist_sync, not {args.kv_store}: start it with "
                "tools/launch.py"
            )
        if args.dtype == "float16":
            yield "--gc-type and --dtype float16 exclude each other: float16 gradients are scaled"


def _mistakes_of_files(args, given):
    """Yield what is wrong with what is written: reports, checkpoints, a trace."""
    prefix, lacks_prefix = args.model_prefix, "needs --model-prefix, the start of the file names"
    if args.top_k > args.num_classes:
        yield f"--top-k {args.top_k}: there are {args.num_classes} classes"
    if names_a_folder(prefix):
        yield f"--model-prefix {prefix}: a folder; add how its files begin, as in out/model"
    if args.keep and not prefix:
        yield f"--keep {lacks_prefix}"
    if args.resume == "auto" and not prefix:
        yield f"--resume auto {lacks_prefix}"
    if args.load_epoch is not None:
        if given.resume:
            yield "--load-epoch and --resume exclude each other"
        if not prefix:
            yield f"--load-epoch {lacks_prefix}"
        if args.load_epoch >= args.num_epochs:
            yield (
                f"--load-epoch {args.load_epoch}: nothing is left of --num-epochs {args.num_epochs}"
            )
    if args.profile and not _can_be_written(args.profile):
        yield f"--profile {args.profile}: its folder is missing or cannot be written to"


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
    for first in _mistakes_of_devices(args, kind, num_devices):
        raise UsageError(first)


def _mistakes_of_devices(args, kind, num_devices):
    """Yield what these devices cannot do."""
    if args.dtype == "float16" and kind == "cpu":
        yield "--dtype float16 needs a GPU; on the CPU try bfloat16"
    if args.dtype == "bfloat16" and kind == "gpu":
        yield "--dtype bfloat16 needs a CPU; on GPUs try float16"
    if args.dtype == "bfloat16" and _lacks_avx512():
        yield "--dtype bfloat16: MXNet needs a processor with AVX-512; take float32"
    if args.batch_size < num_devices:
        yield f"--batch-size {args.batch_size}: fewer than one for each of {num_devices} devices"
    is_one_update = args.optimizer.lower() not in ("sgld", "nadam", "lars")
    if num_devices > 1 and args.kv_store != "dist_async" and not is_one_update:
        yield (
            f"--optimizer {args.optimizer}: MXNet's updates each of {num_devices} devices in "
            "another way; take one device a worker"
        )


def _can_be_written(path):
    return os.access(os.path.dirname(os.path.abspath(path)), os.W_OK)


def _lacks_avx512():
    known = processor_flags()  # empty where the system does not list them
    return known and "avx512bw" not in known

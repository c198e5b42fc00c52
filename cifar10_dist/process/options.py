"""The command line, read and checked."""

import os
import sys

from networks import fast as fast_network

from process.failure import UsageError
from process.flags import WITHOUT_EFFECT, create_parser
from process.launched import uses_p3


def parse_args(argv=None):
    """Read and check the command line.

    Raises
    ------
    UsageError
        With one line that names the flag and what it takes.
    """
    parser = create_parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UsageError(f"unknown argument {unknown[0]!r}; --help lists the flags")
    if args.network == "fast":  # has defaults of its own for what the command line leaves open
        warmup_epochs = fast_network.WARMUP_SHARE * args.num_epochs
        parser.set_defaults(**fast_network.DEFAULTS, warmup_epochs=warmup_epochs)
        if args.lr_step_epochs:
            parser.set_defaults(lr_schedule="step")
        if args.kv_store != "dist_async":
            parser.set_defaults(lr_scale="linear")
        args = parser.parse_args(argv)
    _warn_of_flags_without_effect(args)
    _check(args)
    return args


def _check(args):
    """See that the flags fit together."""
    if args.batch_size < 1:
        raise UsageError(f"--batch-size {args.batch_size}: must be at least 1")
    if args.cpus and args.gpus:
        raise UsageError("--cpus and --gpus exclude each other")
    if bool(args.data_train) != bool(args.data_val):
        raise UsageError("--data-train and --data-val go together")
    if args.data_train and args.data != "auto":
        raise UsageError(f"--data {args.data} and --data-train exclude each other")
    if args.label_smoothing >= 1:
        raise UsageError(f"--label-smoothing {args.label_smoothing}: must be below 1")
    for name in ("load_epoch", "keep"):
        if getattr(args, name) is not None and not args.model_prefix:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} needs --model-prefix, the start of the file names")
    _check_paths(args)
    _check_resume(args)
    if args.load_epoch is not None and args.load_epoch >= args.num_epochs:
        raise UsageError(
            f"--load-epoch {args.load_epoch}: nothing is left of --num-epochs {args.num_epochs}"
        )
    if args.top_k > args.num_classes:
        raise UsageError(f"--top-k {args.top_k}: there are {args.num_classes} classes")
    if args.lr_schedule is None:
        args.lr_schedule = "step" if args.lr_step_epochs else "constant"
    if args.lr_schedule == "step" and not args.lr_step_epochs:
        raise UsageError("--lr-schedule step needs --lr-step-epochs, such as 30,60")
    if args.lr_step_epochs and args.lr_schedule != "step":
        raise UsageError(f"--lr-step-epochs goes with --lr-schedule step, not {args.lr_schedule}")
    if args.lr_scale is None:
        args.lr_scale = "staleness" if args.kv_store == "dist_async" else "none"
    elif args.lr_scale == "staleness" and args.kv_store != "dist_async":
        raise UsageError("--lr-scale staleness needs --kv-store dist_async: nothing else is late")
    if args.warmup_epochs > args.num_epochs:
        raise UsageError(f"--warmup-epochs {args.warmup_epochs}: longer than the training")
    launched = "DMLC_PS_ROOT_URI" in os.environ
    if args.kv_store.startswith("dist") and not launched:
        raise UsageError(
            f"--kv-store {args.kv_store} needs a launcher: python tools/launch.py -n 2 -s 2 "
            '--launcher local "python cifar10_dist.py …"'
        )
    if uses_p3() and (args.kv_store == "dist_async" or args.gc_type):
        other = f"--gc-type {args.gc_type}" if args.gc_type else "--kv-store dist_async"
        raise UsageError(f"{other} does not go with the launcher's --p3 (DMLC_PS_VAN_TYPE=p3)")
    if launched and not args.kv_store.startswith("dist"):
        raise UsageError(
            f"--kv-store {args.kv_store} under a launcher would train every worker alone: "
            "use dist_sync, or start one process without the launcher"
        )


def _check_paths(args):
    """See that names of files are some, before hours of training end without any."""
    for name in ("model_prefix", "log_dir", "data_dir", "data_train", "data_val", "profile"):
        if getattr(args, name) == "":
            raise UsageError(f"--{name.replace('_', '-')} '': is a variable not set?")
    if args.model_prefix and os.path.basename(args.model_prefix) in ("", ".", ".."):
        raise UsageError(
            f"--model-prefix {args.model_prefix}: a folder; add how its files begin, as in "
            f"{os.path.join(args.model_prefix, 'model')}"
        )
    folder = args.profile and os.path.dirname(os.path.abspath(args.profile))
    if folder and not os.access(folder, os.W_OK):
        raise UsageError(f"--profile {args.profile}: no folder {folder} that can be written to")


def _check_resume(args):
    """Fill in what to go on from where the command line does not say."""
    if args.resume is None:
        restarts = int(os.environ.get("LAUNCH_MAX_RESTARTS") or 0)
        is_auto = restarts and args.model_prefix and args.load_epoch is None
        args.resume = "auto" if is_auto else "none"
    elif args.load_epoch is not None:
        raise UsageError("--load-epoch and --resume exclude each other")
    elif args.resume == "auto" and not args.model_prefix:
        raise UsageError("--resume auto needs --model-prefix, the start of the file names")
    elif not args.resume:
        raise UsageError("--resume '': not auto, none or the path of a checkpoint")


def _warn_of_flags_without_effect(args):
    names = [f for f in WITHOUT_EFFECT if hasattr(args, f.strip("-").replace("-", "_"))]
    if names:
        print(f"cifar10_dist.py: warning: no effect here: {' '.join(names)}", file=sys.stderr)

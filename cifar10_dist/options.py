"""The command line. Names are those of MXNet's image-classification examples."""

import argparse
import os
import sys

from failure import UsageError
from option_types import (
    count,
    epochs,
    fraction,
    gpu_list,
    not_negative,
    positive,
    positive_float,
    shape,
    triple,
)

DESCRIPTION = """\
Train a network on CIFAR-10, on one device, several devices, or several workers.

  python cifar10_dist.py                                   one process: all GPUs, or the CPU
  python cifar10_dist.py --cpus 2                          two devices, rehearsed on the CPU
  python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
                                                           two workers, two servers
"""
ENDING = """\
Exit status: 0 done, 2 the command line or its files are wrong, other: failed.
"""
DATA_SOURCES = ("auto", "cifar10", "synthetic")
KV_STORES = ("local", "device", "dist", "dist_sync", "dist_device_sync", "dist_async")
# Flags of MXNet's older examples that have nothing to act on here.
WITHOUT_EFFECT = [
    "--data-train-idx",
    "--data-val-idx",
    "--data-nthreads",
    "--fill-value",
    "--initializer",
    "--loss",
    "--macrobatch-size",
    "--monitor",
    "--warmup-strategy",
    "--profile-worker-suffix",
    "--profile-server-suffix",
    "--use-imagenet-data-augmentation",
    "--max-random-h",
    "--max-random-s",
    "--max-random-l",
    "--min-random-aspect-ratio",
    "--max-random-aspect-ratio",
    "--max-random-rotate-angle",
    "--max-random-shear-ratio",
    "--max-random-scale",
    "--min-random-scale",
    "--max-random-area",
    "--min-random-area",
    "--max-crop-size",
    "--min-crop-size",
    "--brightness",
    "--contrast",
    "--saturation",
    "--pca-noise",
    "--random-resized-crop",
]


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints are one line."""

    def error(self, message):
        """Raise instead of printing the usage and exiting: see :func:`failure.run`."""
        raise UsageError(message)


def parse_args(argv=None):
    """Read and check the command line.

    Raises
    ------
    UsageError
        With one line that names the flag and what it takes.
    """
    parser = _parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UsageError(f"unknown argument {unknown[0]!r}; --help lists the flags")
    _warn_of_flags_without_effect(args)
    _check(args)
    return args


def _parser():
    parser = OneLineParser(
        prog="cifar10_dist.py",
        description=DESCRIPTION,
        epilog=ENDING,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    launched = "DMLC_ROLE" in os.environ

    add = parser.add_argument_group("devices and workers").add_argument
    add(
        "--kv-store",
        choices=KV_STORES,
        default="dist" if launched else "device",
        metavar="TYPE",
        help=f"{', '.join(KV_STORES)}; default dist under a launcher, device otherwise",
    )
    add(
        "--gpus",
        nargs="?",
        const="",
        type=gpu_list,
        metavar="0,1",
        help="GPUs of this worker; default all; with no value the CPU",
    )
    add("--cpus", type=positive, metavar="N", help="rehearse N devices on the CPU")

    add = parser.add_argument_group("network").add_argument
    add(
        "--network",
        default="resnet18_v1",
        metavar="NAME",
        help="any GluonCV classifier, or resnet with --num-layers; default %(default)s",
    )
    add("--num-layers", type=int, metavar="6n+2", help="layers of --network resnet; default 20")
    add("--num-classes", type=positive, default=10, metavar="N", help="default %(default)s")
    add(
        "--dtype",
        choices=("float32", "float16", "bfloat16", "auto"),
        default="float32",
        help="of convolutions and products; weights stay float32; default %(default)s",
    )

    add = parser.add_argument_group("data").add_argument
    add(
        "--data",
        choices=DATA_SOURCES,
        default="auto",
        help="auto: files at hand, else a download, else images made from a seed",
    )
    add("--data-dir", metavar="DIR", help="where CIFAR-10 is or goes; default MXNet's own folder")
    add("--data-train", metavar="X.rec", help="RecordIO file to train on")
    add("--data-val", metavar="Y.rec", help="RecordIO file to test on")
    add(
        "--image-shape",
        type=shape,
        default=(3, 32, 32),
        metavar="3,32,32",
        help="channels, height, width",
    )
    add("--num-examples", type=positive, metavar="N", help="train on the first N examples only")
    add(
        "--max-data-gb",
        type=positive_float,
        default=2.0,
        metavar="GB",
        help="decode RecordIO files up to this size once, stream larger ones; default %(default)s",
    )
    add("--pad-size", type=count, default=0, metavar="PIXELS", help="zeros around the image")
    add("--random-crop", type=int, choices=(0, 1), default=0, help="crop from the padded image")
    add("--random-mirror", type=int, choices=(0, 1), default=0, help="flip half of the images")
    add(
        "--rgb-mean",
        type=triple,
        default=(0.0, 0.0, 0.0),
        metavar="R,G,B",
        help="subtracted from the bytes",
    )
    add(
        "--rgb-std",
        type=triple,
        default=(255.0, 255.0, 255.0),
        metavar="R,G,B",
        help="then divided by; default 255",
    )

    add = parser.add_argument_group("training").add_argument
    add(
        "--batch-size",
        type=int,
        default=256,
        metavar="N",
        help="examples of one worker in a step, over its devices; default %(default)s",
    )
    add(
        "--num-epochs",
        "--num-epoch",
        type=positive,
        default=5,
        metavar="N",
        help="default %(default)s",
    )
    add("--optimizer", default="adam", metavar="NAME", help="of MXNet's; default %(default)s")
    add("--lr", type=positive_float, default=0.001, help="learning rate; default %(default)s")
    add(
        "--lr-schedule",
        choices=("constant", "step", "cosine", "onecycle"),
        help="default step with --lr-step-epochs, else constant",
    )
    add("--lr-factor", type=fraction, default=0.1, help="of a step; default %(default)s")
    add("--lr-step-epochs", type=epochs, default=(), metavar="30,60", help="epochs of the steps")
    add("--warmup-epochs", type=not_negative, default=0, metavar="N", help="rise from zero")
    add(
        "--lr-scale",
        choices=("none", "sqrt", "linear"),
        default="none",
        help="raise the rate with the number of workers; default %(default)s",
    )
    add("--mom", type=not_negative, default=0.9, help="momentum, of optimizers that have one")
    add("--wd", type=not_negative, default=0.0, help="weight decay; default %(default)s")
    add("--label-smoothing", type=not_negative, default=0.0, metavar="E", help="in [0, 1)")
    add(
        "--target-accuracy",
        type=fraction,
        metavar="A",
        help="stop after the epoch whose test accuracy reaches A, a fraction in (0, 1]",
    )
    add("--seed", type=count, default=0, help="of weights, order and augmentation")

    add = parser.add_argument_group("what is written").add_argument
    add("--disp-batches", type=positive, default=20, metavar="N", help="batches between lines")
    add("--top-k", type=count, default=0, metavar="K", help="report top-K accuracy too")
    add("--model-prefix", metavar="PATH", help="save PATH-symbol.json and PATH-0001.params, …")
    add("--save-period", type=positive, default=1, metavar="N", help="epochs between saves")
    add("--load-epoch", type=count, metavar="N", help="go on from PATH-000N.params")
    add("--log-dir", metavar="DIR", help="TensorBoard events and metrics.jsonl")

    add = parser.add_argument_group("measuring").add_argument
    add(
        "--test-io",
        type=int,
        choices=(0, 1),
        nargs="?",
        const=1,
        default=0,
        help="read the data without training",
    )
    add(
        "--benchmark",
        type=int,
        choices=(0, 1),
        nargs="?",
        const=1,
        default=0,
        help="train on one repeated batch: speed without reading",
    )
    add("--profile", metavar="FILE", help="write a trace of the first epoch for chrome://tracing")
    for flag in WITHOUT_EFFECT:
        parser.add_argument(flag, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


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
    if args.load_epoch is not None and not args.model_prefix:
        raise UsageError("--load-epoch needs --model-prefix, the start of the file names")
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
    if args.warmup_epochs > args.num_epochs:
        raise UsageError(f"--warmup-epochs {args.warmup_epochs}: longer than the training")
    launched = "DMLC_PS_ROOT_URI" in os.environ
    if args.kv_store.startswith("dist") and not launched:
        raise UsageError(
            f"--kv-store {args.kv_store} needs a launcher: python tools/launch.py -n 2 -s 2 "
            '--launcher local "python cifar10_dist.py …"'
        )
    if launched and not args.kv_store.startswith("dist"):
        raise UsageError(
            f"--kv-store {args.kv_store} under a launcher would train every worker alone: "
            "use dist_sync, or start one process without the launcher"
        )


def _warn_of_flags_without_effect(args):
    names = [f for f in WITHOUT_EFFECT if hasattr(args, f.strip("-").replace("-", "_"))]
    if names:
        print(f"cifar10_dist.py: warning: no effect here: {' '.join(names)}", file=sys.stderr)

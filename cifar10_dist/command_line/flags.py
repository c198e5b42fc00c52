"""The flags of the program, one line each. Flags that do not go together: ``checks.py``.

Two more places may want to know a new flag: ``STEERING`` in ``saving/resume.py`` if it changes the
course of a training, and ``OWN`` in ``ground/versions.py`` if workers may have different values.
"""

import argparse
from dataclasses import dataclass
from typing import Any

from command_line.checks import OTHER_DEFAULTS, check
from command_line.flag_types import (
    below_one,
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
    two_bits,
)
from ground import environment
from ground.failure import UsageError
from ground.messages import warn
from networks import fast as fast_network

DESCRIPTION = """\
Train a network on CIFAR-10, on one device, several devices, or several workers.

  python cifar10_dist.py                                   one process: all GPUs, or the CPU
  python cifar10_dist.py --cpus 2                          two devices, rehearsed on the CPU
  python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
                                                           two workers, two servers
"""
ENDING = """\
A checkpoint is PATH-000N.params, .state and .json, with PATH-symbol.json. MXNet itself reads
.params and -symbol.json. Send SIGTERM or SIGUSR1 to any worker to stop the job. With
--model-prefix, all workers then stop after the same step (dist_async: soon), save
PATH-000N-STEP, and end with status 75. When the launcher starts the job again (--max-restarts),
it continues from the newest checkpoint that the job has saved itself.

Exit status: 0 done; 2 the command line or its files are wrong; 75 stopped on request after
saving everything, start me again; any other: failed.
"""


@dataclass(frozen=True)
class Flag:
    """A flag of the command line."""

    names: str  # with a space between them
    takes: Any  # an argparse type, or a tuple of the possible values
    default: Any  # a value, or its text; None: nothing, or see defaults_that_depend
    shown: str  # what --help calls the value; None: lists the possible values
    help: str
    alone: Any = None  # the value if only the flag is given, of flags that may stand alone


STORES = ("local", "device", "dist", "dist_sync", "dist_device_sync", "dist_async")
# fmt: off
FLAGS = {
    "devices and workers": (
        Flag("--kv-store", STORES, None, None, "MXNet's kvstore; default dist under a launcher, else device"),
        Flag("--gpus", gpu_list, None, "0,1", "GPUs of this worker; without a value: the CPU; default: its share of the host's GPUs", alone=""),
        Flag("--cpus", positive, None, "N", "rehearse N devices on the CPU"),
        Flag("--allreduce", ("auto", "servers"), "auto", None, "where gradients of workers are added up; auto: in shared memory "
             "if all workers are on one Linux host, with one CPU device each, without --gc-type; else on the servers"),
    ),
    "network": (
        Flag("--network", str, "resnet18_v1", "NAME", "a GluonCV classifier, resnet (see --num-layers), or fast, which sets other defaults"),
        Flag("--num-layers", positive, None, "N", "layers of --network resnet, as in MXNet's older examples: 6n+2, as for CIFAR-10; 18, 34, 50, 101, 152, "
             "200 or 269, as for ImageNet, with more than 28 pixels; default 20, with more than 32 pixels 50"),
        Flag("--num-classes", positive, 10, "N", "classes of the images"),
        Flag("--dtype", ("float32", "float16", "bfloat16", "auto"), "float32", None, "type of convolutions and products; weights stay float32; "
             "auto: on processors that have bfloat16, it or float32, whichever is faster in a short trial; else float32"),
    ),
    "data": (
        Flag("--data", ("auto", "cifar10", "synthetic"), "auto", None, "auto: CIFAR-10 from disk, else a download, else synthetic images"),
        Flag("--data-dir", path, None, "DIR", "where CIFAR-10 is, or is put; default: MXNet's own folder"),
        Flag("--data-train", path, None, "X.rec", "RecordIO file to train on"),
        Flag("--data-val", path, None, "Y.rec", "RecordIO file to test on"),
        Flag("--image-shape", shape, "3,32,32", "3,32,32", "channels, height, width"),
        Flag("--num-examples", positive, None, "N", "train on the first N examples only"),
        Flag("--max-data-gb", positive_float, 2.0, "GB", "decode RecordIO files once if their images fit in GB, else at each use"),
        Flag("--pad-size", count, 0, "PIXELS", "zeros around the image"),
        Flag("--random-crop", (0, 1), 0, None, "crop --image-shape at random from the whole, padded image"),
        Flag("--random-mirror", (0, 1), 0, None, "flip half of the images, the other half in the next epoch"),
        Flag("--rgb-mean", triple, "0,0,0", "R,G,B", "subtracted from the pixels (0 to 255)"),
        Flag("--rgb-std", positive_triple, "255,255,255", "R,G,B", "then divided by"),
    ),
    "training": (
        Flag("--batch-size", positive, 256, "N", "examples of one worker in a step, over all its devices"),
        Flag("--num-epochs --num-epoch", positive, 5, "N", "epochs in all"),
        Flag("--optimizer", str, "adam", "NAME", "one of MXNet's"),
        Flag("--lr", positive_float, 0.001, "RATE", "learning rate"),
        Flag("--lr-schedule", ("constant", "step", "cosine", "onecycle"), None, None, "default step with --lr-step-epochs, else constant"),
        Flag("--lr-factor", fraction, 0.1, "F", "what each step of --lr-schedule step multiplies the learning rate by"),
        Flag("--lr-step-epochs", epochs, "", "30,60", "epochs of these steps"),
        Flag("--warmup-epochs", not_negative, 0, "N", "epochs in which the learning rate rises from zero"),
        Flag("--lr-scale", ("none", "sqrt", "linear", "staleness"), None, None, "linear: multiply the learning rate by (batch of all workers) / 256, "
             "in dist_async by (batch of one) / 256; sqrt: by its root; staleness: lower rate and less momentum for more workers; "
             "default staleness in dist_async, else none"),
        Flag("--mom", not_negative, 0.9, "M", "momentum, of optimizers that have one"),
        Flag("--wd", not_negative, 0.0, "W", "weight decay"),
        Flag("--label-smoothing", below_one, 0.0, "E", "at least 0, below 1"),
        Flag("--lookahead", count, 0, "N", "steps between two averagings of the weights; 0: never"),
        Flag("--gc-type", two_bits, None, "{none,2bit}", "compress the gradients that workers push, dist_sync only; default none"),
        Flag("--gc-threshold", positive_float, 0.5, "T", "each gradient, summed over a batch, is pushed as -T, 0 or T"),
        Flag("--target-accuracy", fraction, None, "A", "stop after the epoch whose test reaches this accuracy, a fraction in (0, 1]"),
        Flag("--seed", count, 0, "N", "of weights, order and augmentation"),
    ),
    "what is written": (
        Flag("--disp-batches", positive, 20, "N", "batches between two lines"),
        Flag("--test-period", positive, 1, "N", "epochs between two tests; the last epoch is always tested"),
        Flag("--top-k", count, 0, "K", "report the top-K accuracy too; 0: no"),
        Flag("--flip-test", ("0", "1", "last"), "0", None, "add the scores of each test image and its mirror image, in twice the time; "
             "last: after the last epoch only"),
        Flag("--model-prefix", path, None, "PATH", "save checkpoints: PATH-0001.params, …"),
        Flag("--save-period", positive, 1, "N", "epochs between two checkpoints; the last epoch is always saved"),
        Flag("--keep", positive, None, "N", "keep N checkpoints of this run; default: all"),
        Flag("--resume", path, None, "WHAT", "auto: continue from the newest checkpoint of --model-prefix, if there is one; "
             "none; or a checkpoint, PATH-0003; default auto under the launcher's --max-restarts, else none"),
        Flag("--load-epoch", count, None, "N", "continue from PATH-000N.params, up to --num-epochs in all"),
        Flag("--log-dir", path, None, "DIR", "TensorBoard events and metrics.jsonl; {run} in it stands for a name of the run"),
    ),
    "measuring": (
        Flag("--test-io", (0, 1), 0, None, "read the data without training", alone=1),
        Flag("--benchmark", (0, 1), 0, None, "train on one repeated batch: speed without reading", alone=1),
        Flag("--profile", path, None, "FILE", "write a trace of the first epoch for chrome://tracing"),
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


def parse_args(argv=None):
    """Read and check the command line, and fill in what it leaves open.

    Raises
    ------
    UsageError
        With one line that names the flag and what it takes.
    """
    parser = _create_parser()
    args, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UsageError(f"unknown argument {unknown[0]!r}; --help lists the flags")
    check(args)
    useless = [flag for flag in WITHOUT_EFFECT if hasattr(args, flag[2:].replace("-", "_"))]
    if useless:
        warn(f"no effect here: {' '.join(useless)}")
    nothing = argparse.Namespace(**dict.fromkeys(vars(args)))
    _warn_of_defaults(parser, given=parser.parse_args(argv, nothing))
    return parser.parse_args(argv, argparse.Namespace(**defaults_that_depend(args)))


def _warn_of_defaults(parser, given):
    """Tell where a default is not that of MXNet's older examples; not given is None."""
    others = [
        f"{flag} {parser.get_default(flag[2:].replace('-', '_'))} (there {theirs})"
        for is_missing, flag, theirs in OTHER_DEFAULTS
        if is_missing(given) and given.network != "fast"
    ]
    if others and environment.is_first_worker():
        warn(f"other defaults than in MXNet's older examples: {', '.join(others)}")


def defaults_that_depend(args):
    """Return the defaults that depend on other flags, and on how the launcher was called."""
    is_async = args.kv_store == "dist_async"
    can_resume = args.model_prefix and args.load_epoch is None
    defaults = {
        "lr_schedule": "constant",
        "lr_scale": "staleness" if is_async else "none",
        "resume": "auto" if environment.max_restarts() and can_resume else "none",
    }
    if args.network == "fast":
        defaults.update(fast_network.DEFAULTS)
        defaults["warmup_epochs"] = fast_network.WARMUP_SHARE * args.num_epochs
        defaults["lr_scale"] = "staleness" if is_async else "linear"
    if args.lr_step_epochs:
        defaults["lr_schedule"] = "step"
    return defaults


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        """Raise instead of printing the usage and exiting: see :func:`failure.run`."""
        raise UsageError(message)


def _create_parser():
    parser = _Parser(
        prog="cifar10_dist.py",
        description=DESCRIPTION,
        epilog=ENDING,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for title, flags in FLAGS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            _add(group, flag)
    for name in WITHOUT_EFFECT:
        parser.add_argument(name, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.set_defaults(kv_store="dist" if environment.is_launched() else "device")
    return parser


def _add(group, flag):
    options = {"default": flag.default, "metavar": flag.shown, "help": flag.help}
    if flag.default not in (None, ""):
        options["help"] += "; default %(default)s"
    if isinstance(flag.takes, tuple):
        options.update(choices=flag.takes, type=type(flag.takes[0]))
    else:
        options["type"] = flag.takes
    if flag.alone is not None:
        options.update(nargs="?", const=flag.alone)
    group.add_argument(*flag.names.split(), **options)

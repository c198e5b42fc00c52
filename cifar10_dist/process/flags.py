"""The flags of the program: their names, values and help."""

import argparse
import os

from process.option_types import (
    OneLineParser,
    count,
    epochs,
    fraction,
    gpu_list,
    not_negative,
    positive,
    positive_float,
    positive_triple,
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
A checkpoint is PATH-000N.params, .state and .json, with PATH-symbol.json; the first and the last
are MXNet's own. SIGTERM or SIGUSR1 to any worker: with --model-prefix, all stop after the same
step (dist_async: soon), save PATH-000N-STEP, and end with 75. Started again by the launcher
(--max-restarts), a job goes on from the newest checkpoint that it has saved itself.

Exit status: 0 done, 2 the command line or its files are wrong, 75 stopped on request, with
all saved that there was (start me again), other: failed.
"""
DATA_SOURCES = ("auto", "cifar10", "synthetic")
KV_STORES = ("local", "device", "dist", "dist_sync", "dist_device_sync", "dist_async")
# Flags of MXNet's older examples that have nothing to act on here.
# fmt: off
WITHOUT_EFFECT = [
    "--data-train-idx", "--data-val-idx", "--data-nthreads", "--fill-value", "--initializer",
    "--loss", "--macrobatch-size", "--monitor", "--warmup-strategy", "--profile-worker-suffix",
    "--profile-server-suffix", "--use-imagenet-data-augmentation", "--max-random-h",
    "--max-random-s", "--max-random-l", "--min-random-aspect-ratio",
    "--max-random-aspect-ratio", "--max-random-rotate-angle", "--max-random-shear-ratio",
    "--max-random-scale", "--min-random-scale", "--max-random-area", "--min-random-area",
    "--max-crop-size", "--min-crop-size", "--brightness", "--contrast", "--saturation",
    "--pca-noise", "--random-resized-crop",
]
# fmt: on


def create_parser():
    """Create the parser of the command line."""
    parser = OneLineParser(
        prog="cifar10_dist.py",
        description=DESCRIPTION,
        epilog=ENDING,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    launched = "DMLC_PS_ROOT_URI" in os.environ

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
        help="GPUs of this worker; default: its share of the host's; with no value the CPU",
    )
    add(
        "--allreduce",
        choices=("auto", "servers"),
        default="auto",
        help="where gradients of several workers are added up; auto: in shared memory if all are "
        "on one Linux host, each on one CPU device, without --gc-type; else on the servers; "
        "default %(default)s",
    )
    add("--cpus", type=positive, metavar="N", help="rehearse N devices on the CPU")

    add = parser.add_argument_group("network").add_argument
    add(
        "--network",
        default="resnet18_v1",
        metavar="NAME",
        help="any GluonCV classifier, resnet with --num-layers, or fast, which changes defaults of "
        "other options and prints them; default %(default)s",
    )
    add("--num-layers", type=int, metavar="6n+2", help="layers of --network resnet; default 20")
    add("--num-classes", type=positive, default=10, metavar="N", help="default %(default)s")
    add(
        "--dtype",
        choices=("float32", "float16", "bfloat16", "auto"),
        default="float32",
        help="of convolutions and products; weights stay float32; auto: bfloat16 on processors "
        "that have it, for networks that gain; default %(default)s",
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
    add(
        "--num-examples",
        type=positive,
        metavar="N",
        help="train on the first N examples only (of streamed files on as many in an epoch)",
    )
    add(
        "--max-data-gb",
        type=positive_float,
        default=2.0,
        metavar="GB",
        help="decode RecordIO files once if all their images fit in this, else stream them; "
        "default %(default)s",
    )
    add(
        "--pad-size",
        type=count,
        default=0,
        metavar="PIXELS",
        help="zeros around the image; default 0",
    )
    add(
        "--random-crop",
        type=int,
        choices=(0, 1),
        default=0,
        help="crop from the padded image; default 0",
    )
    add(
        "--random-mirror",
        type=int,
        choices=(0, 1),
        default=0,
        help="flip half of the images, the others in the next epoch (streamed: each at random); "
        "default 0",
    )
    add(
        "--rgb-mean",
        type=triple,
        default=(0.0, 0.0, 0.0),
        metavar="R,G,B",
        help="subtracted from the bytes; default 0",
    )
    add(
        "--rgb-std",
        type=positive_triple,
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
    add(
        "--lr",
        type=positive_float,
        default=0.001,
        metavar="RATE",
        help="learning rate; default %(default)s",
    )
    add(
        "--lr-schedule",
        choices=("constant", "step", "cosine", "onecycle"),
        help="default step with --lr-step-epochs, else constant",
    )
    add(
        "--lr-factor",
        type=fraction,
        default=0.1,
        metavar="F",
        help="of a step; default %(default)s",
    )
    add("--lr-step-epochs", type=epochs, default=(), metavar="30,60", help="epochs of the steps")
    add(
        "--warmup-epochs",
        type=not_negative,
        default=0,
        metavar="N",
        help="of a rate rising from zero; default 0",
    )
    add(
        "--lr-scale",
        choices=("none", "sqrt", "linear", "staleness"),
        help="times the batch of all workers (dist_async: of one) / 256, or its root; staleness: "
        "less momentum and a lower rate for more workers; default none, in dist_async staleness",
    )
    add(
        "--mom",
        type=not_negative,
        default=0.9,
        metavar="M",
        help="momentum, of optimizers that have one; default %(default)s",
    )
    add(
        "--wd",
        type=not_negative,
        default=0.0,
        metavar="W",
        help="weight decay; default %(default)s",
    )
    add(
        "--label-smoothing",
        type=not_negative,
        default=0.0,
        metavar="E",
        help="in [0, 1); default 0",
    )
    add(
        "--lookahead",
        type=count,
        default=0,
        metavar="N",
        help="steps between two averagings of the weights; default 0: none",
    )
    add(
        "--gc-type",
        choices=("2bit",),
        help="compress the gradients that are pushed, dist_sync only; default: no",
    )
    add(
        "--gc-threshold",
        type=positive_float,
        default=0.5,
        metavar="T",
        help="what is pushed is 0 or ±T, of gradients summed over a batch; default %(default)s",
    )
    add(
        "--target-accuracy",
        type=fraction,
        metavar="A",
        help="stop after the epoch whose test reaches an accuracy of A, a fraction in (0, 1]",
    )
    add(
        "--seed",
        type=count,
        default=0,
        metavar="N",
        help="of weights, order and augmentation; default 0",
    )

    add = parser.add_argument_group("what is written").add_argument
    add(
        "--disp-batches",
        type=positive,
        default=20,
        metavar="N",
        help="batches between lines; default %(default)s",
    )
    add(
        "--test-period",
        type=positive,
        default=1,
        metavar="N",
        help="epochs between tests; the last one is always tested; default %(default)s",
    )
    add(
        "--top-k", type=count, default=0, metavar="K", help="report top-K accuracy too; default: no"
    )
    add(
        "--flip-test",
        choices=("0", "1", "last"),
        default="0",
        help="test each image and its mirror image, and add the scores; last: after --num-epochs "
        "only, as it takes twice the time; default 0",
    )
    add("--model-prefix", metavar="PATH", help="save checkpoints: PATH-0001.params, …")
    add(
        "--save-period",
        type=positive,
        default=1,
        metavar="N",
        help="epochs between saves; the last one is always saved; default %(default)s",
    )
    add("--keep", type=positive, metavar="N", help="keep N checkpoints of this run; default all")
    add(
        "--resume",
        metavar="WHAT",
        help="auto: go on from the newest checkpoint of --model-prefix if there is one; none; a "
        "checkpoint: PATH-0003; default auto under the launcher's --max-restarts, else none",
    )
    add(
        "--load-epoch",
        type=count,
        metavar="N",
        help="go on from PATH-000N.params, up to --num-epochs in all",
    )
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

"""Train the same small network in one type, with several seeds: train_in_type.py TYPE SEED ...

Takes CIFAR-10 from the folder that TUTORIAL_DATA names, else as cifar10_dist.py does. Prints a line
of JSON for each seed: accuracy after each epoch and the types of arrays; or why this processor
cannot compute the type.
"""

import json
import os
import sys
from pathlib import Path

import gluon_dist  # before mxnet: it sets the number of threads
from gluon_dist.common.errors import UsageError
from gluon_dist.common.failure import exit_with
from gluon_dist.workers.statistics import average_statistics
from gluon_dist.workers.workers import Workers

import mxnet as mx
from mxnet.contrib.amp.amp import bfloat16

import lesson
from command_line.checks import check_devices
from command_line.parse import parse_args
from loader import EvalLoader, create_loaders
from networks.create import create_network
from run.precision import use_mixed_precision
from run.trainer import create_trainer
from sources.images import ImageSource
from training import CrossEntropy, evaluate, forward_backward

NUM_TRAIN, NUM_TEST, NUM_EPOCHS = 1500, 1000, 3
OPTIONS = f"--network fast --batch-size 64 --num-epochs {NUM_EPOCHS} --num-examples {NUM_TRAIN}"


def main(dtype, seeds):
    options = [*OPTIONS.split(), *data_options(), "--dtype", dtype]
    images = ImageSource(parse_args(options))
    name = "CIFAR-10, JPEG copy" if data_options() else images.name
    for seed in seeds:
        try:
            result = train(parse_args([*options, "--seed", seed]), images)
        except (mx.MXNetError, UsageError) as error:
            result = {"error": str(error).strip().splitlines()[-1]}
        print(json.dumps({"data": name, "seed": seed, **result}), flush=True)


def data_options():
    """Return the flags for RecordIO files of CIFAR-10 where they are, else none."""
    folder = Path(os.environ.get("TUTORIAL_DATA", ""), "cifar10")
    files = [folder / f"cifar10_{part}.rec" for part in ("train", "val")]
    if not files[0].exists():
        return []
    return ["--data-train", str(files[0]), "--data-val", str(files[1])]


def train(args, images):
    """Train once; return the results, and the types of the arrays of the last step."""
    check_devices(args, "cpu", 1)
    ctx, store = [mx.cpu()], mx.kv.create("device")
    workers, loss = Workers(store), CrossEntropy(args.label_smoothing)
    net = create_network(args, ctx, images)
    use_mixed_precision(args.dtype)
    train_loader, _ = create_loaders(args, images, workers)
    few = images.test.first(NUM_TEST)
    test_loader = EvalLoader(*few, args.batch_size, transform=images.transform)
    trainer = create_trainer(args, net, workers, len(train_loader))
    accuracy = []
    for epoch in range(args.num_epochs):
        for batch in train_loader.epoch(epoch):
            forward_backward(net, loss, [batch.data], [batch.label], batch.global_size)
            trainer.step(1)
        average_statistics(net, workers)
        accuracy.append(evaluate(test_loader, net, ctx)["accuracy"])
    types = {
        "images": batch.data,
        "weights": net.output.weight.data(),
        "between layers": net.body(net.whitening(batch.data)),
        "gradients": net.output.weight.grad(),
    }
    return {
        "accuracy": accuracy,
        "types": {name: name_of(array.dtype) for name, array in types.items()},
    }


def name_of(dtype):
    """Name a type; bfloat16, which NumPy does not have, is a record of two bytes to it."""
    return "bfloat16" if dtype == bfloat16 else dtype.__name__


if __name__ == "__main__":
    exit_with(lambda: main(sys.argv[1], sys.argv[2:]), "train_in_type.py")

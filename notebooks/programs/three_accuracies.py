"""Train with all workers, then let each of them measure the same weights in three ways.

Takes the options of cifar10_dist.py. Every worker prints one line, its rank and a JSON object.
"""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "cifar10_dist"))
import mxnet_setup  # noqa: F401  before mxnet: servers and the scheduler never get further

import mxnet as mx
import numpy as np

from command_line.devices import choose_devices
from command_line.parse import parse_args
from ground.failure import exit_with
from loader import EvalLoader, create_loaders
from networks.create import create_network
from sources.images import ImageSource
from trainers.create import create_trainer
from training import CrossEntropy, evaluate, forward_backward, split_batch
from workers import Workers, average_statistics


def main():
    args = parse_args()
    ctx = choose_devices(args)
    source = ImageSource(args)
    store = mx.kv.create(args.kv_store)
    workers = Workers(store)
    train_loader, share = create_loaders(args, source, workers)
    net, loss = create_network(args, ctx, source), CrossEntropy()
    trainer = create_trainer(args, args.dtype, net, ctx, store, workers, len(train_loader))
    for epoch in range(args.num_epochs):
        for batch in train_loader.epoch(epoch):
            data, labels = split_batch(batch, ctx)
            forward_backward(net, loss, data, labels, trainer.loss_divisor(batch))
            trainer.step(1)

    whole = EvalLoader(*source.arrays[2:], args.batch_size)  # the whole test set, on every worker
    mx.nd.waitall()  # else the last backward may still be moving the running statistics
    found = {"weights": total(net, "weight"), "statistics": total(net, "running_")}
    found["as published"] = measure(net, whole, ctx[0])
    found["own half"] = measure(net, share, ctx[0])
    average_statistics(net, workers)
    found["averaged"] = measure(net, whole, ctx[0])
    result = evaluate(share, net, ctx, workers)
    found["evaluate"] = [result["accuracy"], result["loss"]]
    print(f"rank {workers.rank}: {json.dumps(found)}", flush=True)
    workers.barrier()  # nobody leaves while others still need the servers


def measure(net, loader, device):
    """Return accuracy and mean cross-entropy (nats) on one device, asking no other worker."""
    counts = np.zeros(3)  # right, loss, examples
    for batch in loader:
        output, label = net(batch.data.as_in_context(device)), batch.label.as_in_context(device)
        right = (output.argmax(axis=1) == label).sum().asscalar()
        counts += right, CrossEntropy()(output, label).sum().asscalar(), len(label)
    return list(counts[:2] / counts[2])


def total(net, kind):
    """Add up all numbers of one kind of parameter, as this worker's first device has them."""
    params = [p for name, p in net.collect_params().items() if kind in name]
    return float(sum(p.list_data()[0].asnumpy().astype(np.float64).sum() for p in params))


if __name__ == "__main__":
    exit_with(main, "three_accuracies.py")

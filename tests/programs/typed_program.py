"""A program that uses the whole door, for a type checker: it is not run."""

from pathlib import Path
from typing import Dict, List, Tuple

import gluon_dist as gd

import mxnet as mx
import numpy as np
from numpy.typing import NDArray


class Squares:
    """A data set."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Tuple[float, float]:
        return index, index**2


def _size(batch: gd.Batch) -> int:
    return batch.size


class Net(mx.gluon.nn.HybridSequential):  # type: ignore[misc]  # MXNet has no types
    """A network of one's own."""


def train(prefix: Path) -> List[float]:
    ctx, net = gd.devices(), Net()
    gd.devices([0])
    net.initialize(ctx=ctx)
    gd.broadcast_parameters(net.collect_params(), root=0)
    gd.broadcast_parameters({"scale": mx.nd.ones(3)})
    gd.Trainer(list(net.collect_params().values()), mx.optimizer.Adam(), kvstore=gd.store())
    trainer = gd.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="device")
    loader = gd.DataLoader(Squares(), 60, num_workers=2)
    job = gd.Checkpoint(prefix, {"net": net}, {"net": trainer}, keep=3)
    accuracies = []
    for epoch in job.epochs(3):
        metric = gd.sync_metric(mx.metric.Accuracy())
        for batch in job.steps(loader):
            parts = batch.split(ctx)
            losses = [net(x) - y for x, y in parts]
            gd.backward(losses)
            trainer.step(batch.global_size)
        gd.average_statistics(net)
        accuracies.append(epoch + metric.get()[1])
    return accuracies


def operate(counts: "NDArray[np.int64]", losses: "NDArray[np.float32]") -> None:
    total: int = gd.all_reduce(3)
    mean: float = gd.all_reduce(total, "mean")
    most: float = gd.all_reduce(mean, op="max")
    seen: NDArray[np.int64] = gd.all_reduce(counts)
    share: NDArray[np.float64] = gd.all_reduce(seen, "mean")
    summed: NDArray[np.float32] = gd.all_reduce(losses)
    rows: NDArray[np.float64] = gd.all_gather(most)
    matrix: NDArray[np.float32] = gd.all_gather(summed)
    seed: int = gd.broadcast(np.random.randint(2**31), root=gd.size() - 1)
    array: mx.nd.NDArray = gd.all_reduce(mx.nd.ones(3))
    gd.barrier()
    print(share, rows, matrix, seed, array, gd.rank(), gd.local_rank() + gd.local_size())


def more(trainer: gd.Trainer, loader: gd.DataLoader, job: gd.Checkpoint) -> Tuple[int, int]:
    facts, arrays = trainer.collect_state()
    trainer.restore_state(facts, {name: array.asnumpy() for name, array in arrays.items()})
    late: Dict[str, float] = trainer.measure_staleness()
    lines: List[str] = trainer.explain()
    trainer.pull_weights()
    trainer.update(60.0)
    steps: int = len(loader)
    sizes = [_size(batch) for batch in loader.epoch(1, first_step=steps // 2)]
    if job.should_stop():
        job.save(1, step=2, late=late, lines=lines, sizes=sizes)
    gd.explain()
    print(gd.__version__.upper())
    if not sizes:
        raise gd.UsageError("nothing to train")
    return job.restore()

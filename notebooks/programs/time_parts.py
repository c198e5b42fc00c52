"""Time the parts of a step of the training program, and the steps as a whole.

It takes the flags of cifar10_dist.py. SIZES in the environment, such as 64,32, are several batches
of one worker, one after the other; each worker prints JSON. ``--profile FILE`` also writes traces.
"""

import argparse
import contextlib
import json
import os
import statistics
import time
from pathlib import Path

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.errors import UsageError
from gluon_dist.common.failure import exit_with
from gluon_dist.common.messages import say
from gluon_dist.workers.workers import Workers

import mxnet as mx

import lesson
from command_line.devices import choose_devices
from command_line.parse import parse_args
from loader import create_loaders
from networks.create import create_network
from run.precision import use_mixed_precision
from run.profiling import profiled
from run.trainer import create_trainer
from sources.images import ImageSource
from training import CrossEntropy, forward_backward, split_batch

WARM_UP, STEPS = 1, 4  # a first step also plans memory and opens connections


def main():
    args = parse_args()
    ctx, images = choose_devices(args), ImageSource(args)
    net = create_network(args, ctx, images)
    workers = Workers(mx.kv.create(args.kv_store))
    use_mixed_precision(args.dtype)
    trainer = create_trainer(args, net, workers, steps_per_epoch=1000)
    for size in map(int, os.environ.get("SIZES", str(args.batch_size)).split(",")):
        sized = argparse.Namespace(**{**vars(args), "batch_size": size})
        loader = long_enough(create_loaders(sized, images, workers)[0])
        job = loader, net, CrossEntropy(args.label_smoothing), ctx, trainer, workers
        facts = {"workers": workers.count, "rank": workers.rank, "batch": size}
        facts["step_s"] = time_steps(*job)
        if not workers.is_async:  # there, pushing and updating are one
            facts["parts_s"] = time_parts(*job)
            tell_link(facts, trainer)
        print(json.dumps(facts), flush=True)
    if args.profile:
        with servers_profiled(args.profile, workers.store), profiled(args.profile, workers.rank):
            time_steps(*job)
    workers.barrier()  # nobody leaves while others still need the servers


def time_steps(loader, net, loss, ctx, trainer, workers):
    """Return the mean seconds of a step, with everything that overlaps."""
    for step, batch in zip(range(WARM_UP + STEPS), loader.epoch(0)):
        if step == WARM_UP:
            workers.barrier()
            start = time.perf_counter()
        data, labels = split_batch(batch, ctx)
        forward_backward(net, loss, data, labels, batch.global_size)
        trainer.step(1)
    workers.barrier()
    return (time.perf_counter() - start) / STEPS


def time_parts(loader, net, loss, ctx, trainer, workers):
    """Return the median seconds of each part of a step; each is waited for, so none overlap."""
    batches, times = loader.epoch(0), {}
    for _ in range(STEPS):
        clock = Clock(times)
        batch = next(batches)
        data, labels = split_batch(batch, ctx)
        clock.lap("data")
        with mx.autograd.record():
            outputs = [net(x) for x in data]
            losses = [loss(o, y) / batch.global_size for o, y in zip(outputs, labels)]
        clock.lap("forward")
        mx.autograd.backward(losses)
        clock.lap("backward")
        workers.barrier()
        clock.lap("waiting")  # for slower workers, who also hold up the exchange
        trainer.allreduce_grads()
        clock.lap("exchange")
        trainer.update(1)
        clock.lap("update")
    return {name: statistics.median(values) for name, values in times.items()}


class Clock:
    """Adds the seconds since the last lap to a list, when all that was queued is computed."""

    def __init__(self, times):
        self._times, self._last = times, time.perf_counter()

    def lap(self, name):
        mx.nd.waitall()
        now = time.perf_counter()
        self._times.setdefault(name, []).append(now - self._last)
        self._last = now


@contextlib.contextmanager
def servers_profiled(path, store):
    """Let each server write a trace of what it does; rank 0 tells them.

    A server puts ``rank0_`` before the name, and writes to the folder in which it was started.
    """
    if store.rank == 0:
        name = f"server_{Path(path).name}"
        options = {"profile_all": True, "continuous_dump": False, "filename": name}
        mx.profiler.set_config(profile_process="server", **options)
        mx.profiler.set_state("run", profile_process="server")
    yield
    store._barrier()
    if store.rank == 0:
        mx.profiler.set_state("stop", profile_process="server")
        mx.profiler.dump(profile_process="server")
    store._barrier()


def long_enough(loader):
    """Return the loader if it has as many steps as are timed."""
    if len(loader) < WARM_UP + STEPS:
        raise UsageError(
            f"{len(loader)} steps an epoch, and {WARM_UP + STEPS} are timed: take a larger "
            "--num-examples, or smaller batches"
        )
    return loader


def tell_link(facts, trainer):
    """Say, on worker 0, where this step can be seen and played with: `make site` makes the page."""
    if facts["rank"]:
        return
    parts, step = facts["parts_s"], f"{facts['workers']}:{facts['step_s']:.4f}"
    settings = {
        "compute": f"{parts['forward'] + parts['backward']:.4f}",
        "update": f"{parts['update']:.4f}",
        "bytes": sum(4 * param.list_data()[0].size for param in trainer.learned),
        "batch": facts["batch"],
        "hosts": facts["workers"],
        "servers": os.environ.get("DMLC_NUM_SERVER", 0),
        "exchange": f"{parts['exchange']:.4f}",
        "measured": step,
    }
    words = "&".join(f"{name}={value}" for name, value in settings.items())
    say(f"see your step: build/site/step.html#{words}")


if __name__ == "__main__":
    exit_with(main, "time_parts.py")

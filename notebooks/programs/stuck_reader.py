"""Train one weight on three workers; in step 3 the file that worker 1 reads never comes."""

import os
import tempfile
from pathlib import Path

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx


def read_batch(path):
    """Read a batch; on a disk that does not answer, `open` does not return."""
    with open(path, encoding="utf-8") as file:
        return float(file.read())


def write_batches(folder, rank):
    """Write the batches of five steps; in place of one, a pipe that nobody writes to."""
    for step in range(5):
        path = Path(folder, f"batch-{step}")
        if rank == 1 and step == 3:
            os.mkfifo(path)
        else:
            path.write_text("1", encoding="utf-8")
        yield path


def main():
    store = mx.kv.create("dist_sync")
    store.init(0, mx.nd.zeros(1))
    with tempfile.TemporaryDirectory() as folder:
        for step, path in enumerate(write_batches(folder, store.rank)):
            gradient = mx.nd.array([read_batch(path)])
            store.push(0, gradient)
            store.pull(0, out=gradient)
            print(f"step {step}: sum {gradient.asscalar():.0f}", flush=True)


if __name__ == "__main__":
    exit_with(main, "stuck_reader.py")

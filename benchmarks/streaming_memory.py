#!/usr/bin/env python3
"""Memory of a process that reads streamed RecordIO files for a hundred epochs, without training.

python benchmarks/streaming_memory.py [FOLDER]

FOLDER is the program to measure, by default this checkout's cifar10_dist. Each row is a process of
its own, the first worker of one or two: the batches of an epoch, then those of the test set.
"""

import multiprocessing
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).resolve().parent.parent
EPOCHS = (10, 25, 50, 100)
FILES = {32: (256, 64), 224: (48, 16)}  # pixels: images, batch size of one worker


def resident_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024


def measure(program, path, size, num_workers, num_examples):
    """Return the MB after each of EPOCHS."""
    sys.path.insert(0, program)
    import gluon_dist  # noqa: F401

    from command_line.parse import parse_args
    from loader import create_loaders
    from sources.images import ImageSource

    flags = f"--data-train {path} --data-val {path} --max-data-gb 1e-9 --num-classes 10"
    flags += f" --image-shape 3,{size},{size} --batch-size {FILES[size][1]}"
    flags += f" --num-examples {num_examples}"
    args = parse_args(flags.split())
    source = ImageSource(args)
    train, test = create_loaders(args, source, SimpleNamespace(count=num_workers, rank=0))
    after = []
    for epoch in range(1, EPOCHS[-1] + 1):
        for batches in train.epoch(epoch), test:
            for batch in batches:
                batch.data.wait_to_read()
        if epoch in EPOCHS:
            after.append(resident_mb())
    return after


def main(program=str(HERE / "cifar10_dist")):
    sys.path[:0] = [program, str(HERE / "tests")]
    import gluon_dist  # noqa: F401

    from record_files import write

    print("image_shape,workers,examples,of," + ",".join(f"MB_after_{n}" for n in EPOCHS))
    with tempfile.TemporaryDirectory() as folder:
        for size, (number, _) in FILES.items():
            path = write(Path(folder) / f"{size}.rec", [n % 10 for n in range(number)], size=size)
            for num_workers in (1, 2):
                for num_examples in (number, number * 5 // 6):
                    row = (program, path, size, num_workers, num_examples)
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        after = pool.apply(measure, row)
                    print(f'"3,{size},{size}"', num_workers, num_examples, number, *after, sep=",")
                    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

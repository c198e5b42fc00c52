"""Images to read, small and large, the ways of reading them, and clocks for both."""

import functools
import io
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gluon_dist.setup.process import usable_processors

import mxnet as mx
import numpy as np
import psutil
from gluoncv.data.transforms.block import RandomCrop
from mxnet import recordio
from mxnet.gluon.data import ArrayDataset, DataLoader
from mxnet.gluon.data.vision import transforms
from PIL import Image
from sklearn.datasets import load_sample_image

from helpers import ROOT, own_folder, run_quietly
from sources import images, records

PARTS = ["read file", "decode", "crop", "flip", "to float", "normalize"]
PROGRAM = ["python", "cifar10_dist/cifar10_dist.py", "--network", "mobilenet0.25"]
PROGRAM += ["--num-classes", "2", "--image-shape", "3,224,224", "--batch-size", "8"]
PROGRAM += ["--random-crop", "1", "--random-mirror", "1", "--disp-batches", "3"]


def __getattr__(name):
    """Return ``FEED``, the folder of all files; the first request makes it, empty."""
    if name != "FEED":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _feed()


@functools.lru_cache(None)
def _feed():
    return ROOT / own_folder("feed")


def save_small(count):
    """Save CIFAR-10's first images, or synthetic ones, as JPEG files in a folder for each class.

    Returns
    -------
    str, numpy.ndarray
        What they are, and the images, (n, 3, 32, 32) bytes.
    """
    own_folder("feed")
    source = Path(os.environ.get("TUTORIAL_DATA", ""), "cifar10", "cifar10_train.rec")
    if source.exists():
        packed = records.RecordImages(str(source), (3, 32, 32), count)
        name = "CIFAR-10, JPEG copy"
        pixels, labels = records.decode(packed, records.RecordLabels(packed, 10))
    else:
        name, (pixels, labels), _ = images.load_images("auto", num_examples=count)
    for number in range(count):
        path = _feed() / "small" / f"class{labels[number]}" / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number].transpose(1, 2, 0)).save(path, quality=95)
    return name, pixels[:count]


def save_photos(count):
    """Save parts of two photographs, enlarged to sizes of their own; return the paths."""
    random, paths = np.random.RandomState(0), []
    originals = {n: Image.fromarray(load_sample_image(f"{n}.jpg")) for n in ("china", "flower")}
    for number in range(count):
        name = list(originals)[number % 2]
        width, height = random.randint(200, 400, 2)
        left, top = random.randint(0, 640 - width), random.randint(0, 427 - height)
        part = originals[name].crop((left, top, left + width, top + height))
        factor = random.uniform(4, 7)
        path = _feed() / "photos" / name / f"{number:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        part.resize((int(width * factor), int(height * factor))).save(path, quality=90)
        paths.append(path)
    return paths


def create_transforms(size, mean, std, pad=None):
    """Create what is done to each image, in this order; mean and std are of bytes."""
    scale = transforms.Normalize([m / 255 for m in mean], [s / 255 for s in std])
    flip = transforms.RandomFlipLeftRight()
    return [RandomCrop(size, pad), flip, transforms.ToTensor(), scale]


def time_parts(path, steps, repeats=20):
    """Time each part of reading an image: ``{part: milliseconds}``, of the fastest run."""
    times, value = {}, path
    for name, part in zip(PARTS, [Path.read_bytes, mx.image.imdecode, *steps]):
        times[name] = np.inf
        for _ in range(repeats):
            start = time.perf_counter()
            result = part(value)
            mx.nd.waitall()
            times[name] = min(times[name], 1000 * (time.perf_counter() - start))
        value = result
    return times


def write_toy(sides):
    """Write a RecordIO file of noise, its labels counting from 0; return paths of file, index."""
    paths, random = [str(_feed() / f"toy.{ending}") for ending in ("rec", "idx")], np.random
    writer = recordio.MXIndexedRecordIO(paths[1], paths[0], "w")
    for number, side in enumerate(sides):
        noise = random.RandomState(number).randint(0, 256, (side, side, 3), dtype=np.uint8)
        writer.write_idx(number, recordio.pack_img((0, number, number, 0), noise))
    writer.close()
    return paths


def native(path, batch_size, shape=(3, 32, 32), **options):
    """Open a RecordIO file of images with MXNet's own reader."""
    options = {"preprocess_threads": usable_processors(), "verbose": False, **options}
    return mx.io.ImageRecordIter(
        path_imgrec=str(path), data_shape=shape, batch_size=batch_size, **options
    )


def parts_of(path, **options):
    """Read a file by two workers; return the numbers of each one's batches, and the last pad."""
    found = []
    for part in range(2):
        batches = list(native(path, 4, num_parts=2, part_index=part, **options))
        numbers = [batch.label[0].asnumpy().astype(int).tolist() for batch in batches]
        found.append((numbers, batches[-1].pad))
    return found


def flips_of_processes():
    """Read two batches by two processes; return which images each batch has flipped."""
    pairs = ArrayDataset(mx.nd.array(np.tile([[0], [1]], (32, 1, 1, 3)), dtype="uint8"))
    flipped = pairs.transform(transforms.RandomFlipLeftRight())
    loader = DataLoader(flipped, batch_size=16, num_workers=2)
    time.sleep(1)  # until both processes are ready, each makes a batch
    return [batch[:, 0, 0, 0].asnumpy().tolist() for batch in loader]


def speed_of(epoch, seconds):
    """Read epoch after epoch: images a second, and how many processors were busy meanwhile."""
    count, start = 0, None
    while True:
        for data in epoch():
            data.wait_to_read()
            now = time.perf_counter(), _processor_seconds()
            if start is None:
                start = now  # starting processes does not count
                continue
            count += len(data)
            if now[0] - start[0] > seconds:
                return count / (now[0] - start[0]), (now[1] - start[1]) / (now[0] - start[0])


def native_epochs(path, batch_size, **options):
    """Return a function that begins an epoch of MXNet's own reader."""
    reader = native(path, batch_size, **options)

    def epoch():
        reader.reset()
        return (batch.data[0] for batch in reader)

    return epoch


def same_changes(mean, std, pad):
    """Give the options by which MXNet's own reader changes images as the other ways do."""
    names = [f"{what}_{channel}" for what in ("mean", "std") for channel in "rgb"]
    options = dict(zip(names, [*map(float, mean), *map(float, std)]), pad=pad, fill_value=0)
    return {"shuffle": True, "rand_crop": True, "rand_mirror": True, **options}


def decoding_speed(paths, num_threads, repeats=1):
    """Decode JPEG files by some threads, as the training program does; return images a second."""
    contents = [Path(path).read_bytes() for path in paths]

    def decode(content):
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB")).shape

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(decode, contents[:num_threads]))
        start = time.perf_counter()
        for _ in range(repeats):
            list(pool.map(decode, contents))
    return repeats * len(contents) / (time.perf_counter() - start)


def _processor_seconds():
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children())]
    return sum(one.user + one.system for one in times)


def program_speed(name, *flags):
    """Run the training program on photos; return its best speed line, in images a second."""
    files = [f"--data-{part}={_feed()}/{name}_{part}.rec" for part in ("train", "val")]
    status, lines = run_quietly(*PROGRAM, *files, "--num-epochs", "2", *flags)
    if status:
        raise RuntimeError("\n".join(lines[-20:]))
    return max(float(found) for found in re.findall(r"Speed: ([\d.]+)", "\n".join(lines)))

"""Images in MXNet's RecordIO files: decoded once where they fit in memory, streamed otherwise."""

import os
import struct
from pathlib import Path

import mxnet as mx
import numpy as np
from loader import Batch
from process.failure import UsageError

MAGIC = 0xCED7230A
HEADER = struct.Struct("<IfQQ")  # flag, label, id, id2: mxnet.recordio.IRHeader


def scan(path):
    """Walk over the records of a file without decoding them.

    Parameters
    ----------
    path : str

    Returns
    -------
    places : list of (int, int)
        Offset and length in bytes of each image.
    labels : ndarray of float64, shape (records,)

    Raises
    ------
    UsageError
        If the file is missing, empty, cut short, or not RecordIO with one label an image.
    """
    places, labels = [], []
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        position = 0
        while position < size:
            length, is_start = _frame(file, path, position, size, len(places))
            if is_start:  # an image that contains the magic number is stored in several frames
                flag, label, _, _ = HEADER.unpack(file.read(HEADER.size))
                if flag:
                    raise UsageError(f"{path}: record {len(places)} holds a vector of labels")
                places.append((position + 8 + HEADER.size, length - HEADER.size))
                labels.append(label)
            position += 8 + -(-length // 4) * 4
            file.seek(position)
    if not places:
        raise UsageError(f"{path}: holds no records")
    return places, np.array(labels)


def count(path):
    """Count the records of a file: by its index where it has a good one, else walking over them."""
    index = Path(path).with_suffix(".idx")
    try:
        lines = index.read_text().split("\n")
        offsets = [int(line.split("\t")[1]) for line in lines if "\t" in line]
    except (OSError, ValueError):  # UnicodeDecodeError is one
        offsets = []
    if not offsets or min(offsets) < 0:
        return len(scan(path)[0])
    with _open(path) as file:  # the last record tells whether the file is whole
        size = os.fstat(file.fileno()).st_size
        file.seek(max(offsets))
        _frame(file, path, max(offsets), size, len(offsets) - 1)
    return len(offsets)


def decoded_bytes(path, image_shape):
    """Return the size of all images of a file in memory."""
    return count(path) * int(np.prod(image_shape))


def decode(path, image_shape, num_classes):
    """Decode all images of a file, cropped at the centre to ``image_shape``.

    Returns
    -------
    images : ndarray of uint8, shape (records, C, H, W)
    labels : ndarray of int32, shape (records,)
    """
    places, labels = scan(path)
    check_labels(path, labels, num_classes)
    images = np.empty((len(places),) + tuple(image_shape), np.uint8)
    done = 0
    try:
        batches = mx.io.ImageRecordUInt8Iter(
            path_imgrec=path,
            data_shape=image_shape,
            batch_size=min(500, len(places)),
            verbose=False,
        )
        for batch in batches:
            part = batch.data[0].asnumpy()[: len(places) - done]
            images[done : done + len(part)] = part
            done += len(part)
    except mx.MXNetError:
        raise UsageError(f"{path}: record {_first_bad(path, places)} is not an image") from None
    return images, labels.astype(np.int32)


def check_labels(path, labels, num_classes, of_what=""):
    """See that all labels are classes; a network would take a wrong one for another, silently."""
    bad = np.flatnonzero((labels != labels.astype(int)) | (labels < 0) | (labels >= num_classes))
    if len(bad):
        raise UsageError(
            f"{path}: record {bad[0]}{of_what} has label {labels[bad[0]]:g}, outside --num-classes "
            f"{num_classes}"
        )


class StreamLoader:
    """Batches read from disk by MXNet's own threads, for files that memory does not hold.

    Every worker reads its own part of the file, and the same number of full batches: what is left
    over is not seen in that epoch. Parameters as for :class:`loader.TrainLoader`.
    """

    def __init__(
        self,
        path,
        image_shape,
        num_classes,
        batch_size,
        workers,
        seed,
        augmentation,
        num_examples=None,
    ):
        in_file = count(path)
        if num_examples and num_examples > in_file:
            raise UsageError(f"--num-examples {num_examples}: {path} has {in_file}")
        self.num_examples = num_examples or in_file
        self.global_batch_size = batch_size * workers.count
        self._options = _iter_options(image_shape, batch_size, workers, augmentation)
        self._options.update(
            shuffle=True,
            rand_crop=augmentation.random_crop,
            rand_mirror=augmentation.random_mirror,
            pad=augmentation.pad,
            fill_value=0,  # MXNet's own is 255
        )
        self._path, self._num_classes, self._seed = path, num_classes, seed

    def sample(self, number):
        """Return up to ``number`` images, scaled, the same on every worker: (n, C, H, W)."""
        plain = {"shuffle": False, "rand_crop": False, "rand_mirror": False, "pad": 0}
        whole = {"num_parts": 1, "part_index": 0, "batch_size": min(number, self.num_examples)}
        batches = _open_stream(self._path, **dict(self._options, **plain, **whole))
        return _next_batch(batches, self._path, self._num_classes).data[0].asnumpy()

    def __len__(self):
        """Return the number of steps of an epoch."""
        return self.num_examples // self.global_batch_size

    def epoch(self, epoch, first_step=0):
        """Yield the batches of an epoch from ``first_step`` on.

        The file is opened anew for each epoch, so that the order depends on (seed, epoch) alone; at
        its end the part starts again where it is too short.
        """
        seed = (self._seed * 1000 + epoch) % 2**31  # a C int
        batches = _open_stream(self._path, seed=seed, seed_aug=seed, **self._options)
        for step in range(len(self)):
            batch = _next_batch(batches, self._path, self._num_classes)
            if batch is None:
                batches.reset()
                batch = _next_batch(batches, self._path, self._num_classes)
            if step >= first_step:
                yield Batch(batch.data[0], batch.label[0], self.global_batch_size)


class StreamEvalLoader:
    """This worker's part of a test file, each image once."""

    def __init__(self, path, image_shape, num_classes, batch_size, workers, augmentation):
        self._path, self._num_classes = path, num_classes
        # MXNet fills the last batch from the beginning of a part, which it cannot do twice (and
        # without round_batch it does not tell how many images there are). Parts have near-equal
        # numbers of bytes.
        largest = max(1, count(path) // workers.count // 2)
        batch_size = min(batch_size, largest)
        self._options = _iter_options(image_shape, batch_size, workers, augmentation)

    def __iter__(self):
        batches = _open_stream(self._path, **self._options)
        for batch in iter(lambda: _next_batch(batches, self._path, self._num_classes), None):
            used = batch.data[0].shape[0] - batch.pad
            if used:
                yield Batch(batch.data[0][:used], batch.label[0][:used], used)


def _open_stream(path, **options):
    try:
        return mx.io.ImageRecordIter(path_imgrec=path, **options)
    except mx.MXNetError:  # it reads a batch at once
        raise UsageError(f"{path}: holds a record that is not an image") from None


def _next_batch(stream, path, num_classes):
    """Return the next batch of MXNet's iterator, None at its end."""
    try:
        batch = stream.next()
    except StopIteration:
        return None
    except mx.MXNetError:
        raise UsageError(f"{path}: holds a record that is not an image") from None
    check_labels(path, batch.label[0].asnumpy(), num_classes, of_what=" of a batch")
    return batch


def _iter_options(image_shape, batch_size, workers, augmentation):
    mean, std = augmentation.mean, augmentation.std
    return {
        "data_shape": tuple(image_shape),
        "batch_size": batch_size,
        "num_parts": workers.count,
        "part_index": workers.rank,
        "verbose": False,
        **{f"mean_{c}": m for c, m in zip("rgb", mean)},
        **{f"std_{c}": s for c, s in zip("rgb", std)},
    }


def _open(path):
    try:
        return open(path, "rb")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def _frame(file, path, position, size, number):
    """Read a frame's header; return the length of its body and whether a record starts there."""
    header = file.read(8)
    if len(header) < 8:
        raise UsageError(f"{path}: cut short in record {number}, at byte {position}")
    magic, word = struct.unpack("<II", header)
    if magic != MAGIC:
        what = "not a RecordIO file" if position == 0 else f"broken at byte {position}"
        raise UsageError(f"{path}: {what}; tools/im2rec.py of MXNet makes such files")
    length, kind = word & (1 << 29) - 1, word >> 29
    if position + 8 + length > size:
        raise UsageError(f"{path}: cut short in record {number}, at byte {position}")
    if kind < 2 and length < HEADER.size:
        raise UsageError(f"{path}: record {number} is too short to be an image")
    return length, kind < 2


def _first_bad(path, places):
    """Find the record that MXNet's threads could not decode; they do not say which it was."""
    with open(path, "rb") as file:
        for number, (offset, length) in enumerate(places):
            file.seek(offset)
            try:
                mx.image.imdecode(file.read(length)).wait_to_read()
            except (mx.MXNetError, ValueError):
                return number
    return "(unknown)"

"""Images in MXNet's RecordIO files: decoded once where they fit in memory, streamed otherwise."""

import struct
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import recordio

from loader import Batch
from process.failure import UsageError


def walk(path):
    """Yield the records of a file as bytes.

    Raises
    ------
    UsageError
        If the file cannot be read, is empty or cut short, or is not RecordIO.
    """
    number = 0
    try:
        open(path, "rb").close()  # MXNet takes a folder for an empty file
        file = recordio.MXRecordIO(path, "r")
        for record in iter(file.read, None):
            yield record
            number += 1
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except mx.MXNetError as error:
        if "kMagic" not in str(error):
            what = f"cut short in record {number}"
        elif number:
            what = f"broken where record {number} should begin"
        else:
            what = "not a RecordIO file; tools/im2rec.py of MXNet makes such files"
        raise UsageError(f"{path}: {what}") from None
    if not number:
        raise UsageError(f"{path}: holds no records")


def count(path):
    """Count the records of a file: by its index where that is good, else by walking over them."""
    index = Path(path).with_suffix(".idx")
    if index.is_file():
        try:
            file = recordio.MXIndexedRecordIO(str(index), path, "r")
            first, last = (choose(file.idx, key=file.idx.get) for choose in (min, max))
            file.seek(last)
            is_last = file.read() is not None and file.read() is None
            if is_last and file.idx[first] == 0:
                return len(set(file.idx.values()))
        except (OSError, ValueError, IndexError, mx.MXNetError):
            pass  # a damaged index, or a file that is: the walk tells
    return sum(1 for _ in walk(path))


def decoded_bytes(path, image_shape):
    """Return the size of all images of a file in memory."""
    return count(path) * int(np.prod(image_shape))


def decode(path, image_shape, num_classes):
    """Decode all images of a file, cropped at the centre to ``image_shape``.

    Returns
    -------
    images : ndarray of uint8, shape (records, C, H, W)
    labels : ndarray of int32, shape (records,)

    Raises
    ------
    UsageError
        If a record is not an image, or its label is not one class.
    """
    number = sum(1 for _ in walk(path))  # MXNet's threads end the process at a broken record
    images = np.empty((number,) + tuple(image_shape), np.uint8)
    labels = np.empty(number, np.float32)
    done = 0
    try:
        batches = mx.io.ImageRecordUInt8Iter(
            path_imgrec=path, data_shape=image_shape, batch_size=min(500, number), verbose=False
        )
        for batch in batches:
            part = slice(done, min(done + 500, number))
            images[part] = batch.data[0].asnumpy()[: part.stop - done]
            labels[part] = batch.label[0].asnumpy()[: part.stop - done]
            done = part.stop
    except mx.MXNetError:
        raise UsageError(f"{path}: {_first_bad(path)}") from None
    check_labels(path, labels, num_classes)
    return images, labels.astype(np.int32)


def check_labels(path, labels, num_classes, of_what=""):
    """See that all labels are classes; a network would take a wrong one for another, silently."""
    bad = np.flatnonzero((labels != labels.astype(int)) | (labels < 0) | (labels >= num_classes))
    if len(bad):
        raise UsageError(
            f"{path}: record {bad[0]}{of_what} has label {labels[bad[0]]:g}, outside --num-classes "
            f"{num_classes}"
        )


def sample(path, image_shape, num_classes, number, augmentation):
    """Return the first ``number`` images of a file, scaled but not changed: (number, C, H, W)."""
    batches = _open_stream(path, **_iter_options(image_shape, number, augmentation))
    return _next_batch(batches, path, num_classes).data[0].asnumpy()


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
        self._uses_all = self.num_examples == in_file
        self.global_batch_size = batch_size * workers.count
        self._options = _iter_options(image_shape, batch_size, augmentation, workers)
        self._options.update(
            shuffle=True,
            rand_crop=augmentation.random_crop,
            rand_mirror=augmentation.random_mirror,
            pad=augmentation.pad,
            fill_value=0,  # MXNet's own is 255
        )
        self._path, self._num_classes, self._seed = path, num_classes, seed

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
        at_end_soon = self._uses_all
        for step in range(len(self)):
            batch = _next_batch(batches, self._path, self._num_classes)
            if batch is None:
                batches.reset()
                at_end_soon = False
                batch = _next_batch(batches, self._path, self._num_classes)
            if step >= first_step:
                yield Batch(batch.data[0], batch.label[0], self.global_batch_size)
        # MXNet never gives back a batch that it has prepared and nobody has taken: take the few
        # that are left. (Of a second pass, or with --num-examples, they are too many.)
        while at_end_soon and _next_batch(batches, self._path, self._num_classes):
            pass


class StreamEvalLoader:
    """This worker's part of a test file, each image once."""

    def __init__(self, path, image_shape, num_classes, batch_size, workers, augmentation):
        self._path, self._num_classes = path, num_classes
        # MXNet fills the last batch from the beginning of a part, which it cannot do twice (and
        # without round_batch it does not tell how many images there are). Parts have near-equal
        # numbers of bytes.
        largest = max(1, count(path) // workers.count // 2)
        batch_size = min(batch_size, largest)
        self._options = _iter_options(image_shape, batch_size, augmentation, workers)

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


def _iter_options(image_shape, batch_size, augmentation, workers=None):
    mean, std = augmentation.mean, augmentation.std
    return {
        "data_shape": tuple(image_shape),
        "batch_size": batch_size,
        "num_parts": workers.count if workers else 1,
        "part_index": workers.rank if workers else 0,
        "verbose": False,
        "prefetch_buffer": 1,  # of more, MXNet never gives back some when the file is closed
        **{f"mean_{c}": m for c, m in zip("rgb", mean)},
        **{f"std_{c}": s for c, s in zip("rgb", std)},
    }


def _first_bad(path):
    """Find the record that MXNet's threads could not decode; they do not say which it was."""
    for number, record in enumerate(walk(path)):
        try:
            header, image = recordio.unpack(record)
        except (struct.error, ValueError):
            return f"record {number} is too short to be an image"
        if header.flag > 1:
            return f"record {number} holds a vector of labels"
        try:
            mx.image.imdecode(image).wait_to_read()
        except (mx.MXNetError, ValueError):
            return f"record {number} is not an image"
    return "holds a record that is not an image of --image-shape"

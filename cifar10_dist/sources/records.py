"""Images in MXNet's RecordIO files: decoded once if they fit in memory, else at each use."""

import ctypes
import io
import os
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np
from mxnet import recordio
from PIL import Image, ImageFile, ImageOps, JpegImagePlugin

from sources.image_set import ImageSet
from sources.transform import PIECE, centre

SMALL = 3 * 64 * 64  # values; images with fewer are decoded by one thread
GAPS = 1000  # an index is checked for missing records in its widest gaps


def walk(path):
    """Yield the offset and the bytes of each record of a file.

    Raises
    ------
    UsageError
        If the file cannot be read, is empty or cut short, or is not RecordIO.
    """
    number = 0
    try:
        open(path, "rb").close()  # MXNet would read a folder as an empty file
        file = recordio.MXRecordIO(path, "r")
        offset = _tell(file)
        for record in iter(file.read, None):
            yield offset, record
            offset = _tell(file)
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


def find_records(path):
    """Return the offsets of all records: of the index file if it is right, else by a walk."""
    index = Path(path).with_suffix(".idx")
    if index.is_file():
        try:
            file = recordio.MXIndexedRecordIO(str(index), path, "r")
            offsets = np.unique(list(file.idx.values()))
            if offsets[0] == 0 and _covers_file(file, offsets, os.path.getsize(path)):
                return offsets
        except (OSError, ValueError, IndexError, mx.MXNetError):
            pass  # the index or the file is damaged: the walk finds out which
    return np.array([offset for offset, _ in walk(path)])


def record_files(text):
    """Return the files that ``--data-train`` names, in order.

    Parameters
    ----------
    text : str
        A file, a folder of ``.rec`` files (taken by name), or several of these, as MXNet writes
        them, with ``;`` between them.
    """
    files = []
    for path in [text] if os.path.exists(text) else filter(None, text.split(";")):
        found = sorted(map(str, Path(path).glob("*.rec"))) if os.path.isdir(path) else [path]
        if not found:
            raise UsageError(f"{path}: a folder without .rec files")
        files += found
    if not files:
        raise UsageError(f"{text}: names no file")
    return files


class RecordImages:
    """The images of some files, read and decoded at each access.

    ``images[numbers]``, with an array of record numbers, returns a list of arrays of uint8, shape
    (C, height, width), each of its own size. The records of the first file are counted first.

    (MXNet's ``ImageRecordIter`` is not used: it would have to be opened again in every epoch, to
    get a new seed, and never frees its last batches.)

    Raises
    ------
    UsageError
        If a file or a record of it cannot be read, or an image is smaller than ``image_shape``.
    """

    def __init__(self, paths, image_shape, num_examples=None):
        self.paths, self.image_shape = record_files(paths), tuple(image_shape)
        offsets = [find_records(path) for path in self.paths]
        self._ends = np.cumsum([len(part) for part in offsets])  # numbers at which files end
        self._offsets = np.concatenate(offsets)
        if num_examples and num_examples > len(self._offsets):
            raise UsageError(f"--num-examples {num_examples}: {paths} has {len(self._offsets)}")
        self._offsets = self._offsets[:num_examples]
        self._files = [recordio.MXRecordIO(path, "r") for path in self.paths]
        self._lock = threading.Lock()
        # Pillow decodes without Python's lock; for small images threads cost more than they gain.
        is_small = np.prod(self.image_shape) < SMALL
        self._map = map if is_small else ThreadPoolExecutor(_num_threads()).map

    def __len__(self):
        return len(self._offsets)

    def __getitem__(self, numbers):
        contents = [self.read(number)[1] for number in numbers]
        return list(self._map(self._decode, contents, numbers))

    def name_of(self, number):
        """Return the place of a record, for messages: ``x.rec: record 3``, counted in its file."""
        file = self._file_of(number)
        return f"{self.paths[file]}: record {number - (self._ends[file - 1] if file else 0)}"

    def decoded_bytes(self, whole=False):
        """Return the bytes of all images, of ``image_shape`` or (``whole``) the first's shape."""
        return len(self) * int(np.prod(self[[0]][0].shape if whole else self.image_shape))

    def read(self, number):
        """Return label and encoded image of a record."""
        try:
            with self._lock:
                file = self._files[self._file_of(number)]
                _seek(file, self._offsets[number])
                record = file.read()
            header, content = recordio.unpack(record)
        except mx.MXNetError:
            raise self._bad(number, "cannot be read") from None
        except (struct.error, ValueError):
            raise self._bad(number, "is too short to be an image") from None
        if header.flag > 1:
            raise self._bad(number, "holds a vector of labels")
        return float(np.ravel(header.label)[0]), content

    def _decode(self, content, number):
        """Return the image in a record's content, uint8 of shape (3, height, width)."""
        _, height, width = self.image_shape
        ImageFile.LOAD_TRUNCATED_IMAGES = False  # import gluoncv lets half pictures pass
        try:
            image = Image.open(io.BytesIO(content))
            if image.mode[0] in "IF":
                raise self._bad(number, "has more than 8 bits a channel")
            image = np.asarray(_turned(image).convert("RGB"))
        except Image.DecompressionBombError:
            raise self._bad(number, "has too many pixels") from None
        except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises for broken images
            is_cut = "truncated" in str(error).lower()
            raise self._bad(number, "is cut short" if is_cut else "is not an image") from None
        if image.shape[0] < height or image.shape[1] < width:
            size = f"{image.shape[0]}x{image.shape[1]}"
            raise self._bad(number, f"is {size}, smaller than --image-shape {height}x{width}")
        return np.array(image.transpose(2, 0, 1), order="C")

    def _file_of(self, number):
        return int(np.searchsorted(self._ends, number, side="right"))

    def _bad(self, number, what):
        return UsageError(f"{self.name_of(number)} {what}")


class RecordLabels:
    """The labels of a :class:`RecordImages`, read at each use."""

    def __init__(self, images, num_classes):
        self._images, self._num_classes = images, num_classes

    def __len__(self):
        return len(self._images)

    def __getitem__(self, numbers):
        labels = np.array([self._images.read(number)[0] for number in numbers])
        # The loss would use a wrong label without an error.
        bad = (labels != labels.astype(int)) | (labels < 0) | (labels >= self._num_classes)
        if bad.any():
            raise UsageError(
                f"{self._images.name_of(np.asarray(numbers)[bad][0])} has label "
                f"{labels[bad][0]:g}, outside --num-classes {self._num_classes}"
            )
        return labels.astype(np.int32)


def decode(images, labels, whole=False):
    """Return the decoded images of a file; None if whole images have different sizes.

    Parameters
    ----------
    images : RecordImages
    labels : RecordLabels
    whole : bool
        Keep the whole image, for random crops; else its centre, of ``image_shape``.

    Returns
    -------
    ImageSet or None
    """
    shape = images[[0]][0].shape if whole else images.image_shape
    arrays = np.empty((len(images),) + shape, np.uint8)
    for start in range(0, len(images), PIECE):
        numbers = range(start, min(start + PIECE, len(images)))
        for number, image in zip(numbers, images[numbers]):
            if whole and image.shape != shape:
                return None
            arrays[number] = centre(image, shape)
    return ImageSet(arrays, labels[range(len(images))])


def _turned(image):
    """Return an image as its EXIF says to show it; only of JPEG, as in MXNet's own readers."""
    if isinstance(image, JpegImagePlugin.JpegImageFile) and "exif" in image.info:
        ImageOps.exif_transpose(image, in_place=True)
    return image


def _covers_file(file, offsets, size):
    """Return whether an index has all records: one fills each of the widest gaps, and the last."""
    ends = np.append(offsets[1:], size)
    for number in [*np.argsort(ends - offsets)[-GAPS:], -1]:
        _seek(file, offsets[number])
        if file.read() is None or _tell(file) != ends[number]:
            return False
    return True


def _seek(file, offset):
    offset = ctypes.c_size_t(int(offset))
    mx.base.check_call(mx.base._LIB.MXRecordIOReaderSeek(file.handle, offset))


def _tell(file):
    offset = ctypes.c_size_t()
    mx.base.check_call(mx.base._LIB.MXRecordIOReaderTell(file.handle, ctypes.byref(offset)))
    return offset.value


def _num_threads():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

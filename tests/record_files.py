"""Small RecordIO files to read."""

import io

import numpy as np
from mxnet import recordio
from PIL import Image


def write(path, labels, index=False, size=32, body=None):
    """Write PNG images whose every pixel is their own number; return the path."""
    with_index = [str(path.with_suffix(".idx"))] if index else []
    kind = recordio.MXIndexedRecordIO if index else recordio.MXRecordIO
    file = kind(*with_index, str(path), "w")
    for number, label in enumerate(labels):
        header = recordio.IRHeader(0, label, number, 0)
        record = recordio.pack(header, png(number % 256, size)) if body is None else body
        file.write_idx(number, record) if index else file.write(record)
    file.close()
    return str(path)


def png(value, size=32):
    """Encode an image whose every byte is the same (without OpenCV, which needs libGL)."""
    buffer = io.BytesIO()
    Image.fromarray(np.full((size, size, 3), value, np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def write_pictures(path, sizes, kind="PNG"):
    """Write images of noise, (height, width) each, of which those of one size are the same."""
    file = recordio.MXRecordIO(str(path), "w")
    for number, size in enumerate(sizes):
        buffer = io.BytesIO()
        noise = np.random.RandomState(0).randint(0, 256, size + (3,)).astype(np.uint8)
        Image.fromarray(noise).save(buffer, kind)
        file.write(recordio.pack(recordio.IRHeader(0, number % 256, number, 0), buffer.getvalue()))
    file.close()
    return str(path)

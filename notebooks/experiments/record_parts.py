"""One worker's part of a RecordIO file, as MXNet's older examples read it, and what is in it."""

import mxnet as mx
import numpy as np


def open_part(prefix, batch_size, num_workers, rank):
    """Open ``PREFIX.rec``, images of 32 x 32 pixels, as one worker of several."""
    return mx.io.ImageRecordIter(
        path_imgrec=f"{prefix}.rec",
        path_imgidx=f"{prefix}.idx",
        data_shape=(3, 32, 32),
        batch_size=batch_size,
        shuffle=True,
        num_parts=num_workers,  # store.num_workers
        part_index=rank,  # store.rank
        verbose=False,
    )


def count_epochs(part, num_epochs):
    """Read some epochs of images whose labels are their numbers.

    Returns
    -------
    list of tuple
        Of each epoch, how many batches it has, and how many different images.
    """
    found = []
    for _ in range(num_epochs):
        batches = [batch.label[0].asnumpy() for batch in part]
        found.append((len(batches), len(np.unique(batches))))
        part.reset()
    return found

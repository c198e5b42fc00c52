"""What is drawn while an example is loaded depends on the example, not on who loads it.

This module knows no store, and must not: multiprocessing keeps its function until Python ends, and
a store that is not deleted before ends the process with SIGABRT.
"""

import random
import signal
from multiprocessing.util import register_after_fork

import mxnet as mx
import numpy as np
from mxnet import gluon


class Seeded(gluon.data.Dataset):
    """A data set by places; before an example is loaded, the generators are seeded by its place.

    In the main process MXNet's generator is left alone, among threads every generator.
    """

    def __init__(self, dataset, seed, rank, draws_here, with_processes):
        self._dataset, self._seed, self._rank = dataset, seed, rank
        self._is_seeded, self._seeds_mxnet = draws_here or with_processes, with_processes
        if with_processes:
            register_after_fork(self, Seeded.leave_signals)

    def leave_signals(self):
        """Let TERM end a process of the pool: the handler that it has inherited is the parent's.

        With a handler that goes on, the parent would wait for ever for the end of its pool.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def __getitem__(self, place):
        epoch, index, step = place
        if self._is_seeded:  # always of four words
            random.seed(2**96 + (self._seed << 64) + (epoch << 32) + index)
            np.random.seed(random.getrandbits(32))
        if self._seeds_mxnet and step is not None:
            mix = np.random.RandomState([self._seed, epoch, step, self._rank, 1])  # no step's own
            mx.random.seed(int(mix.randint(2**31)))
        return self._dataset[index]

    def __len__(self):
        return len(self._dataset)

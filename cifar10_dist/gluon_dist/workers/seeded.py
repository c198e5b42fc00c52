"""Random numbers of transforms depend on the example, not on the process that loads it.

This module must not hold a store: multiprocessing keeps its function until Python ends, and a store
that is not deleted before then ends the process with SIGABRT.
"""

import random
import signal
from multiprocessing.util import register_after_fork

import mxnet as mx
import numpy as np
from mxnet import gluon


class Seeded(gluon.data.Dataset):
    """A data set that seeds the generators before it loads an example.

    Its keys are ``(epoch, index, step)``; the step is None but for the first example of a batch. In
    the main process MXNet's generator is not seeded, and with threads no generator is.
    """

    def __init__(self, dataset, seed, rank, draws_here, with_processes):
        self._dataset, self._seed, self._rank = dataset, seed, rank
        self._is_seeded, self._seeds_mxnet = draws_here or with_processes, with_processes
        if with_processes:
            register_after_fork(self, Seeded.leave_signals)

    def leave_signals(self):
        """Let TERM end a process of the pool, which has inherited its parent's handler.

        With a handler that does not end it, the parent would wait for its pool for ever.
        """
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def __getitem__(self, key):
        epoch, index, step = key
        if self._is_seeded:  # always of four words
            random.seed(2**96 + (self._seed << 64) + (epoch << 32) + index)
            np.random.seed(random.getrandbits(32))
        if self._seeds_mxnet and step is not None:
            # The 1: other numbers than those of the training step.
            mix = np.random.RandomState([self._seed, epoch, step, self._rank, 1])
            mx.random.seed(int(mix.randint(2**31)))
        return self._dataset[index]

    def __len__(self):
        return len(self._dataset)

"""How long this worker computes in each step, and how long it then waits for sums.

MXNet computes in the background: Python queues a step long before it is computed, and must not wait
for it. So a thread waits instead. It notes two times of each step: when backward has written the
gradients of the first layer, which come last, and when the sums over all workers have arrived.
"""

import math
import queue
import threading
import time

import mxnet as mx

from trainers.worker_trainer import WorkerTrainer

MOST_SUMS = 8  # that are looked at: all of a large network's would take Python 0.2 ms a step


class TimedTrainer(WorkerTrainer):
    """A :class:`WorkerTrainer` that times its steps if there are other workers to wait for.

    Parameters are those of :class:`WorkerTrainer`.
    """

    _clock = None

    def __init__(self, params, *args, **kwargs):
        super().__init__(params, *args, **kwargs)
        self._in_order = [param for param in params.values() if param.grad_req != "null"]

    def measure_steps(self):
        """Return how long each step since the last call took this worker."""
        return self._clock.take() if self._clock else super().measure_steps()

    def _init_params(self):
        super()._init_params()
        if self._kvstore is None or self._kvstore.num_workers == 1:
            return
        # One number of a gradient is enough: what copies it waits for the whole gradient.
        self._last_written = [_first_number(grad) for grad in self._in_order[0].list_grad()]
        every = self._in_order[:: -(-len(self._in_order) // MOST_SUMS)]
        sums = [_first_number(param.list_grad()[0]) for param in every]
        self._summed = [number for number in sums if number.dtype == sums[0].dtype]
        self._clock = StepClock()

    def _allreduce_grads(self):
        if self._clock is None:
            super()._allreduce_grads()
            return
        self._clock.note([number.copy() for number in self._last_written])
        super()._allreduce_grads()
        self._clock.note([mx.nd.add_n(*self._summed)])


class StepClock:
    """A thread that notes when arrays are computed: two times for each step."""

    def __init__(self):
        self._queue, self._times, self._error = queue.Queue(), [], None
        threading.Thread(target=self._run, daemon=True).start()

    def note(self, arrays):
        """Note when these are computed: copies of a step's gradients, then what reads its sums."""
        self._raise_error()
        self._queue.put(arrays)

    def take(self):
        """Wait for the steps since the last call; return them as ``measure_steps`` does."""
        self._queue.join()
        self._raise_error()
        times, self._times = self._times, []
        ready, summed = times[::2], times[1::2]
        begun = [math.nan, *summed]  # zip ends with the shortest
        return [(r - b, s - r) for b, r, s in zip(begun, ready, summed)]

    def _run(self):
        while True:
            try:
                for array in self._queue.get():
                    array.wait_to_read()
                self._times.append(time.monotonic())
            except mx.MXNetError as error:
                self._error = error
            self._queue.task_done()

    def _raise_error(self):
        """Raise what has failed in the background: MXNet tells it once, and told the thread."""
        if self._error:
            raise self._error


def _first_number(array):
    return array.reshape(-1)[:1]

"""How long this worker computes in each step, and how long it then waits for sums.

MXNet computes in the background: Python queues a step long before it is computed, and must not wait
for it. So a thread waits instead. It notes two times of each step: when backward has written the
gradients of the first layer, which come last, and when the sums over all workers have arrived.
"""

import math
import queue
import threading
import time

from gluon_dist.exchange.exchange import Exchange

import mxnet as mx

MOST_SUMS = 8  # that are looked at: all of a large network's would take Python 0.2 ms a step


class Timed(Exchange):
    """Another exchange, whose steps are timed.

    Parameters
    ----------
    exchange : Exchange
        With other workers to wait for.
    """

    def __init__(self, exchange):
        self._exchange = exchange

    def move_gradients(self, params):
        """Let the exchange do so."""
        self._params = params
        self._exchange.move_gradients(params)
        self.attached = self._exchange.attached

    def connect(self, workers):
        """Connect the exchange, and start the clock."""
        self._exchange.connect(workers)
        # One number of a gradient is enough: what copies it waits for the whole gradient.
        self._last_written = [_first_number(grad) for grad in self._params[0].list_grad()]
        every = self._params[:: -(-len(self._params) // MOST_SUMS)]
        sums = [_first_number(param.list_grad()[0]) for param in every]
        self._summed = [number for number in sums if number.dtype == sums[0].dtype]
        self._clock = StepClock()

    def add_up(self):
        """Let the exchange do so, and note when."""
        self._exchange.rescale = self.rescale
        self._clock.note([number.copy() for number in self._last_written])
        self._exchange.add_up()
        self._clock.note([mx.nd.add_n(*self._summed)])

    def explain(self):
        """Say what the exchange says."""
        return self._exchange.explain()

    def measure_steps(self):
        """Return how long each step since the last call took this worker."""
        return self._clock.take()


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
        """Wait for the arrays of each note in turn, and note the time."""
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

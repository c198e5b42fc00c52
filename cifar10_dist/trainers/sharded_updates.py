"""Updates that the workers of a host share: each makes those of some parameters, for all.

Every worker would make the same updates of all parameters. The first stage of ZeRO (Rajbhandari et
al. 2020, arXiv 1910.02054), PyTorch's ZeroRedundancyOptimizer, divides them among the workers: each
adds up the gradients of its parameters, updates these and hands them to the others. The weights are
the same to the last bit, and the optimizer's state exists once.
"""

import mxnet as mx
import numpy as np
from saving.state import MOVING, leaves

from trainers.shared_memory import SharedMemoryTrainer

CACHE_LINE = 64  # bytes: where oneDNN's vectors like to start


def can_shard(optimizer, dtype):
    """Tell whether the update of a parameter depends on nothing that others' updates change.

    Parameters
    ----------
    optimizer : mxnet.optimizer.Optimizer
    dtype : str
        float16 skips an update if any gradient of any worker is infinite.
    """
    return dtype != "float16" and not any(hasattr(optimizer, name) for name in MOVING)


class ShardedTrainer(SharedMemoryTrainer):
    """A :class:`shared_memory.SharedMemoryTrainer` whose workers share the updates.

    It is for :meth:`step`, which leaves the sums of those gradients only that this worker updates
    with.
    """

    shares_states = True

    def __init__(self, params, *others, memory):
        super().__init__(params, *others, memory=memory)
        in_order = [param for spans in self._spans for param, _, _ in spans]
        learned = {self._param2idx[param.name]: param for param in in_order}
        data = [param.data() for param in in_order]
        owners = _divide([array.size for array in data], memory.count)
        self._learned = learned
        self._own = {index for index, rank in zip(learned, owners) if rank == memory.rank}
        self._updated = dict(zip(learned, self._share(data)))  # weights, from who updates them
        self._states = {}

    def create_state(self, index, weight):
        """Return a parameter's state, which all workers have in common and ask for together."""
        create = super().create_state
        for spans in () if self._states else self._spans:
            indices = [self._param2idx[param.name] for param, _, _ in spans]
            states = [create(i, self._learned[i].data()) for i in indices]
            shared = iter(self._share([leaf for state in states for leaf in leaves(state)]))
            self._states.update((i, _like(state, shared)) for i, state in zip(indices, states))
        return self._states[index]

    def _share(self, arrays):
        """Return arrays with the same values in shared memory; all workers write the same."""
        sizes = [array.size * np.dtype(array.dtype).itemsize for array in arrays]
        ends = np.cumsum([-(-size // CACHE_LINE) * CACHE_LINE for size in sizes])
        memory = self._memory.array(max([1, *ends]), "uint8", rows=1)[0]
        shared = []
        for array, size, begin in zip(arrays, sizes, [0, *ends]):
            part = memory[begin : begin + size].view(array.dtype).reshape(array.shape)
            values = array.asnumpy()
            if values.any():  # else the memory has them, and a page that nobody touches is none
                part[...] = values
            shared.append(mx.nd.from_numpy(part, zero_copy=True))
        return shared

    def _allreduce_grads(self):
        """Add up and update a bucket as soon as it is there, the last layers' first."""
        (updater,) = self._updaters
        for index, param in self._learned.items():
            if not param.data()._fresh_grad:  # MXNet's Trainer refuses it, too
                raise UserWarning(f"{param.name}: backward has not reached it since the last step")
            param.data()._fresh_grad = False
            if index not in updater.states:
                updater.states[index] = self.create_state(index, param.data())
                updater.states_synced[index] = True
            param.data().wait_to_read()  # the copy of the last update, which may change from now on
        for place in reversed(range(len(self._buckets))):
            (bucket,), rows = self._buckets[place], self._rows[place]
            bucket.wait_to_read()
            self._memory.barrier()
            own = []
            for param, start, stop in self._spans[place]:
                index = self._param2idx[param.name]
                if index in self._own:
                    self._memory.add_up_own(rows, start, stop)
                    own.append((index, param.grad(), param.data()))
            if own:
                updater(*zip(*own))
            for index, _, weight in own:
                weight.copyto(self._updated[index])

    def _update(self, ignore_stale_grad=False):
        mx.nd.waitall()  # for what this worker updates, and its state
        self._memory.barrier()
        others = [index for index in self._learned if index not in self._own]
        for index in others:
            self._updated[index].copyto(self._learned[index].data())
        self._optimizer._update_count(others)
        self._end_step()


def _divide(sizes, count):
    """Return for each size which of so many workers takes it: all get about as much."""
    loads, owners = [0] * count, [0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        owners[place] = loads.index(min(loads))
        loads[owners[place]] += sizes[place]
    return owners


def _like(state, arrays):
    """Put arrays in the place of those of an optimizer's state."""
    if isinstance(state, (tuple, list)):
        return tuple(_like(part, arrays) for part in state)
    return None if state is None else next(arrays)

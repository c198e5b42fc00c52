"""A worker's part of one step, as a loader yields it."""

from typing import Any, List, Sequence, Tuple, Union

from gluon_dist.common import protocols

import mxnet as mx
from mxnet import gluon

Part = Union[mx.nd.NDArray, Tuple[mx.nd.NDArray, ...]]


class Batch(List[mx.nd.NDArray]):
    """This worker's part of a step: the list ``[data, label]`` that Gluon's own DataLoader gives.

    The list is empty if this worker has no example in the step. It has one array if the data set
    has single items.

    Parameters
    ----------
    content : list or NDArray
        What ``batchify_fn`` has made.
    size : int
        The number of examples of this worker; an attribute, too.
    global_size : int
        The number of examples of all workers: what ``Trainer.step`` takes; an attribute, too.

    Examples
    --------
    >>> data = mx.gluon.data.ArrayDataset(mx.nd.arange(5), mx.nd.arange(5) * 10)
    >>> batch = next(iter(gd.DataLoader(data, batch_size=3, shuffle=False)))
    >>> batch.size, batch.global_size
    (3, 3)
    >>> for x, y in batch.split([mx.cpu(0), mx.cpu(1)]):
    ...     print(x.context, x.asnumpy(), y.asnumpy())
    cpu(0) [0. 1.] [ 0. 10.]
    cpu(1) [2.] [20.]
    """

    def __init__(self, content: object, size: int, global_size: int) -> None:
        self._has_items = isinstance(content, (list, tuple))
        super().__init__(content if isinstance(content, (list, tuple)) else [content])
        self.size, self.global_size = size, global_size

    def split(self, ctx: Union[protocols.Context, Sequence[protocols.Context]]) -> List[Part]:
        """Return a near-equal share of this batch on each device.

        Parameters
        ----------
        ctx : mxnet.Context or sequence of mxnet.Context

        Returns
        -------
        list of tuple of mxnet.nd.NDArray
            ``(data, label)`` for each device that has examples. If there are fewer examples than
            devices, the last devices have none. If the data set has single items: arrays, not
            tuples.

        Raises
        ------
        TypeError, ValueError
            If ``batchify_fn`` made something that cannot be cut along its first axis.
        """
        devices = list(ctx) if isinstance(ctx, Sequence) else [ctx]
        if not devices:
            raise ValueError("ctx: no device")
        content = self if self._has_items else self[0]
        return self._cut(content, devices[: self.size])

    def _cut(self, content: object, devices: Sequence[mx.Context]) -> List[Any]:
        """Cut an array, or each of a list of them."""
        if isinstance(content, (list, tuple)):
            return list(zip(*[self._cut(item, devices) for item in content]))
        if not isinstance(content, mx.nd.NDArray):
            kind = type(content).__name__
            raise TypeError(f"batchify_fn made a {kind}: split takes arrays, in lists or tuples")
        if len(content) != self.size:
            raise ValueError(
                f"batchify_fn made an array of shape {content.shape}: split cuts the first axis, "
                f"and there are {self.size} examples"
            )
        return gluon.utils.split_and_load(content, devices, even_split=False)

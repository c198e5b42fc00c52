"""What the workers of a job do together: add up, gather and hand out numbers, arrays, parameters.

All workers must make the same calls in the same order. Before each they compare what they call and
pass, by a few bytes. Where they differ, all of them raise a ValueError that says how; else they
could wait for each other for ever.

They need servers that add up. Those of ``dist_sync`` do not once a Trainer with
``update_on_kvstore=True`` has sent them its optimizer: then each operation raises a UsageError.
"""

import hashlib
from itertools import zip_longest
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    List,
    Literal,
    TypeVar,
    Union,
    overload,
)

from gluon_dist.common import protocols
from gluon_dist.workers import group
from gluon_dist.workers.collectives import LONGEST
from gluon_dist.workers.values import combine, form_of, from_array, to_array
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np

if TYPE_CHECKING:  # NumPy has it from 1.21
    from numpy.typing import NDArray as Array

OPS = "sum", "mean", "max", "min"

Op = Literal["sum", "mean", "max", "min"]
Number = TypeVar("Number", bool, int, float)
Whole = TypeVar(
    "Whole",
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
)
Scalar = TypeVar("Scalar", bound=np.generic)
Tensor = TypeVar("Tensor", bound=protocols.NDArray)


@overload
def all_reduce(x: int, op: Literal["mean"]) -> float: ...
@overload
def all_reduce(x: int, op: Literal["sum", "max", "min"] = "sum") -> int: ...
@overload
def all_reduce(x: float, op: Op = "sum") -> float: ...
@overload
def all_reduce(x: Whole, op: Literal["mean"]) -> np.float64: ...
@overload
def all_reduce(x: Scalar, op: Op = "sum") -> Scalar: ...
@overload
def all_reduce(x: "Array[Whole]", op: Literal["mean"]) -> "Array[np.float64]": ...
@overload
def all_reduce(x: "Array[Scalar]", op: Op = "sum") -> "Array[Scalar]": ...
@overload
def all_reduce(x: Tensor, op: Op = "sum") -> Tensor: ...
def all_reduce(x: object, op: str = "sum") -> object:
    """Return the sum, mean, maximum or minimum of a number or array over all workers.

    The default is the sum. Horovod's ``allreduce`` gives the mean by default, and takes MXNet's
    arrays only.

    Parameters
    ----------
    x : int, float, NumPy scalar, numpy.ndarray or mxnet.nd.NDArray
        Any shape; at most 64 bits a number. The same kind, type and shape on all workers.
    op : {"sum", "mean", "max", "min"}
        What is computed, element by element.

    Returns
    -------
    int, float, NumPy scalar, numpy.ndarray or mxnet.nd.NDArray
        The kind, type, shape and device of ``x``, and the same bits on all workers. Sums of whole
        numbers are exact, and their means are float64. Floats are added in float64, in the order of
        the ranks, and rounded once.

    Raises
    ------
    ValueError
        If the workers make different calls, or ``op`` is none of the four.
    TypeError
        If ``x`` is of another kind or type, or sparse; or if arrays of bool are to be added up.
    OverflowError
        If a sum of whole numbers does not fit in the type of the array.

    Examples
    --------
    >>> right, seen = gd.all_reduce(np.array([12, 16]))  # counts of this worker
    >>> float(right / seen)  # the accuracy of all workers
    0.75
    >>> gd.all_reduce(0.5, "max")
    0.5
    """
    if op not in OPS:
        raise ValueError(f"all_reduce: op {op!r}: choose from {', '.join(OPS)}")
    values, form = to_array("all_reduce", x)
    if op == "sum" and values.dtype == bool and not isinstance(x, bool):
        raise TypeError('all_reduce: arrays of bool do not add up: pass x.astype("int32")')
    job = group.workers()
    compare(job, "all_reduce", f"op={op!r}", form)
    if isinstance(x, int):
        numbers = job.collectives.all_gather(values).tolist()
        results: Dict[str, Callable[[List[Any]], object]]
        results = {"sum": sum, "max": max, "min": min, "mean": lambda n: sum(n) / len(n)}
        return results[op](numbers)
    flat, parts = values.reshape(-1), []
    step = max(2 * LONGEST // (values.itemsize * job.count), 1)  # a message each
    for start in range(0, flat.size, step):
        parts.append(combine(job.collectives.all_gather(flat[start : start + step]), op))
    is_mean_of_whole = op == "mean" and values.dtype.kind != "f"
    result = np.empty(values.shape, np.float64 if is_mean_of_whole else values.dtype)
    if parts:
        result.reshape(-1)[:] = np.concatenate(parts)
    return from_array(x, result)


@overload
def all_gather(x: bool) -> "Array[np.bool_]": ...  # type: ignore[overload-overlap]
@overload
def all_gather(x: int) -> "Array[np.int64]": ...
@overload
def all_gather(x: float) -> "Array[np.float64]": ...
@overload
def all_gather(x: Scalar) -> "Array[Scalar]": ...
@overload
def all_gather(x: "Array[Scalar]") -> "Array[Scalar]": ...
@overload
def all_gather(x: Tensor) -> Tensor: ...
def all_gather(x: object) -> object:
    """Return the values of all workers along a new first axis, in the order of the ranks.

    Horovod's ``allgather`` has no new axis: it concatenates along the first one, whose length may
    differ from worker to worker.

    Parameters
    ----------
    x : int, float, NumPy scalar, numpy.ndarray or mxnet.nd.NDArray
        Any shape; at most 64 bits a number. The same kind, type and shape on all workers.

    Returns
    -------
    numpy.ndarray or mxnet.nd.NDArray
        Shape ``(size(), *x.shape)``, with the type of ``x``. The values are exact copies. Python's
        numbers give an ndarray of int64, float64 or bool, shape ``(size(),)``.

    Raises
    ------
    ValueError
        If the workers make different calls.
    TypeError
        If ``x`` is of another kind or type, or sparse.

    Examples
    --------
    >>> gd.all_gather(0.5).tolist()  # one number a worker
    [0.5]
    >>> gd.all_gather(np.zeros((2, 3))).shape  # (workers, 2, 3)
    (1, 2, 3)
    """
    values, form = to_array("all_gather", x)
    job = group.workers()
    compare(job, "all_gather", form)
    rows = job.collectives.all_gather(values)
    return from_array(x, rows) if isinstance(x, mx.nd.NDArray) else rows


@overload
def broadcast(x: Number, root: int = 0) -> Number: ...
@overload
def broadcast(x: Scalar, root: int = 0) -> Scalar: ...
@overload
def broadcast(x: "Array[Scalar]", root: int = 0) -> "Array[Scalar]": ...
@overload
def broadcast(x: Tensor, root: int = 0) -> Tensor: ...
def broadcast(x: object, root: int = 0) -> object:
    """Return one worker's value on all workers.

    As Horovod's ``broadcast``, where ``root`` is called ``root_rank``.

    Parameters
    ----------
    x : int, float, NumPy scalar, numpy.ndarray or mxnet.nd.NDArray
        Any shape; at most 64 bits a number. The same kind, type and shape on all workers. The
        function does not change it.
    root : int
        The rank of the worker whose value all get.

    Returns
    -------
    int, float, NumPy scalar, numpy.ndarray or mxnet.nd.NDArray
        An exact copy, of the kind, type, shape and device of ``x``.

    Raises
    ------
    ValueError
        If the workers make different calls, or there is no worker ``root``.
    TypeError
        If ``x`` is of another kind or type, or sparse.

    Examples
    --------
    >>> seed = gd.broadcast(np.random.randint(2**31))  # worker 0 draws it for all
    >>> gd.broadcast(7)
    7
    """
    values, form = to_array("broadcast", x)
    job = group.workers()
    root = _checked_root("broadcast", root, job)
    compare(job, "broadcast", f"root={root}", form)
    return from_array(x, job.collectives.broadcast(values, root))


def barrier() -> None:
    """Wait until all workers have made this call, and until the servers have what they pushed.

    Horovod's MXNet package has no such function.

    Raises
    ------
    ValueError
        If the workers make different calls.

    Examples
    --------
    >>> if gd.rank() == 0:
    ...     pass  # write a file
    >>> gd.barrier()  # now all workers may read it
    """
    job = group.workers()
    compare(job, "barrier")
    job.collectives.barrier()


def broadcast_parameters(
    params: protocols.Items[Union[protocols.Parameter, protocols.NDArray]],
    root: int = 0,
) -> None:
    """Copy one worker's parameters to all devices of all workers.

    :class:`Trainer` does this with its weights. Use this function for other parameters, or without
    a Trainer. Call it before the first step: where servers update the weights, they keep their own.

    Horovod's function of this name writes to one device, calls ``root`` ``root_rank``, and waits
    for a parameter without values until it has some. This one refuses such a parameter.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict, or dict of str to Parameter or NDArray
        ``net.collect_params()``: weights, and BatchNorm's running statistics. Names, types and
        shapes must be the same on all workers.
    root : int
        The rank of the worker whose values all get; those of its first device.

    Raises
    ------
    ValueError
        If a parameter has no values yet (its layer does not know the size of its input), or is
        sparse; if the workers make different calls; if there is no worker ``root``.
    TypeError
        If ``params`` is something else, or holds numbers of another type.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(10, in_units=784)
    >>> net.initialize()  # other random weights on each worker
    >>> gd.broadcast_parameters(net.collect_params())  # those of worker 0 on all
    """
    if not hasattr(params, "items"):
        raise TypeError(
            f"broadcast_parameters: pass net.collect_params(), not a {type(params).__name__}"
        )
    job = group.workers()
    root = _checked_root("broadcast_parameters", root, job)
    mx.nd.waitall()  # hybridized with static_shape, reading statistics does not wait for backward
    copies = {name: _copies_of(name, param) for name, param in sorted(params.items())}
    forms = [f"{name} {form_of(arrays)}" for name, arrays in copies.items()]
    compare(job, "broadcast_parameters", f"root={root}", *forms)
    for name, arrays in copies.items():
        if not arrays:
            raise ValueError(
                f"broadcast_parameters: {name} has no values yet: call net.initialize(), and tell "
                "its layer the size of its input (in_units, in_channels) or run net on a batch"
            )
    opened = [to_array("broadcast_parameters", arrays[0])[0] for arrays in copies.values()]
    content = [np.ascontiguousarray(values).reshape(-1).view(np.uint8) for values in opened]
    content = job.collectives.broadcast(np.concatenate([np.empty(0, np.uint8), *content]), root)
    ends = np.cumsum([values.nbytes for values in opened])
    for arrays, values, part in zip(copies.values(), opened, np.split(content, ends[:-1])):
        values = part.copy().view(values.dtype).reshape(values.shape)
        copied = from_array(arrays[0], values)
        for array in arrays:  # `array[:] =` fails on weights in oneDNN's own layout
            copied.copyto(array)


def compare(job: Workers, function: str, *arguments: str) -> None:
    """Raise a ValueError on all workers unless all of them make this call, with these words.

    Parameters
    ----------
    job : Workers
    function : str
    arguments : str
        How each argument looks.
    """
    if job.count == 1:
        return
    text = "\n".join([function, *arguments])
    digest = np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8).digest(), np.uint8)
    if (job.collectives.all_gather(digest) == digest).all():
        return
    texts = job.all_gather_texts(text)
    rank, other = next((r, other) for r, other in enumerate(texts) if other != texts[0])
    (name, *passed), (other_name, *others) = texts[0].split("\n"), other.split("\n")
    if name != other_name:
        raise ValueError(
            f"worker 0 calls {name}, worker {rank} {other_name}: all must make the same calls"
        )
    pairs = zip_longest(passed, others, fillvalue="nothing more")
    mine, theirs = next(pair for pair in pairs if pair[0] != pair[1])
    raise ValueError(f"{name}: worker 0 passes {mine}, worker {rank} {theirs}")


def _checked_root(function: str, root: int, job: Workers) -> int:
    if root not in range(job.count):
        raise ValueError(f"{function}: root {root!r}: the workers are 0 to {job.count - 1}")
    return int(root)


def _copies_of(name: str, param: Any) -> List[mx.nd.NDArray]:
    """Return a parameter's arrays, one for each device; none if it has no values yet."""
    if isinstance(param, mx.nd.NDArray):
        return [param]
    if not isinstance(param, mx.gluon.Parameter):
        raise TypeError(
            f"broadcast_parameters: {name}: pass a Parameter or an NDArray, not a "
            f"{type(param).__name__}"
        )
    if param._stype != "default":
        raise ValueError(f"broadcast_parameters: {name} is {param._stype}: only dense ones travel")
    return [] if param._data is None else param.list_data()

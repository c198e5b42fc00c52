"""Numbers and arrays of any kind, to NumPy arrays that are sent, and back."""

from functools import reduce
from typing import TYPE_CHECKING, Any, Sequence, Tuple

import mxnet as mx
import numpy as np

if TYPE_CHECKING:  # NumPy has it from 1.21
    from numpy.typing import NDArray as Array

BFLOAT16 = np.dtype([("bfloat16", np.uint16)])  # as MXNet shows it


def to_array(function: str, x: Any) -> Tuple["Array[Any]", str]:
    """Return the array to send, and words for the kind, type and shape of the value."""
    if isinstance(x, mx.nd.NDArray):
        if x.stype != "default":
            raise TypeError(f'{function}: {x.stype} cannot travel: pass x.tostype("default")')
        is_half = x.dtype == BFLOAT16
        values = (x.astype("float32") if is_half else x).asnumpy()
        words = f"NDArray {'bfloat16' if is_half else values.dtype} {values.shape}"
    elif isinstance(x, (bool, int, float)):
        kind = next(kind for kind in (bool, int, float) if isinstance(x, kind))
        if kind is int and not -(2**63) <= x < 2**63:
            raise ValueError(f"{function}: {x} does not fit in 64 bits")
        values = np.array(x, np.int64 if kind is int else kind)
        words = kind.__name__
    elif isinstance(x, np.generic):
        values, words = np.array(x), f"{x.dtype} scalar"
    elif isinstance(x, np.ndarray):
        values, words = np.array(x), f"{x.dtype} {x.shape}"
    else:
        raise TypeError(
            f"{function}: a {type(x).__name__} cannot travel: pass a number, a numpy.ndarray or "
            "an NDArray"
        )
    if values.dtype.kind not in "biuf" or values.itemsize > 8:
        raise TypeError(
            f"{function}: {values.dtype} cannot travel: pass bool, whole numbers or floats of at "
            "most 64 bits"
        )
    return values, words


def from_array(x: object, values: "Array[Any]") -> Any:
    """Return the value of which :func:`to_array` made an array; float64 stays float64."""
    if isinstance(x, mx.np.ndarray):
        return mx.np.array(values, values.dtype, ctx=x.context)
    if isinstance(x, mx.nd.NDArray):
        result = mx.nd.array(values, x.context, values.dtype)
        return result.astype(BFLOAT16) if x.dtype == BFLOAT16 else result
    if isinstance(x, np.ndarray):
        return values
    return values.item() if isinstance(x, (int, float)) else values[()]


def combine(rows: "Array[Any]", op: str) -> "Array[Any]":
    """Return the sum, mean, maximum or minimum of rows, the first row first."""
    if op in ("max", "min"):
        return reduce(np.maximum if op == "max" else np.minimum, rows)
    if op == "mean" or rows.dtype.kind == "f":
        total = reduce(np.add, rows.astype(np.float64))
        return total / len(rows) if op == "mean" else total
    limits = np.iinfo(rows.dtype)
    low, high = (sum(map(int, f(rows, axis=1))) for f in (np.min, np.max))
    if low >= limits.min and high <= limits.max:
        return reduce(np.add, rows)
    total = reduce(np.add, rows.astype(object))  # in Python's whole numbers
    if total.min() < limits.min or total.max() > limits.max:
        raise OverflowError(
            f'all_reduce: a sum does not fit in {rows.dtype}: pass x.astype("int64") or floats'
        )
    return total.astype(rows.dtype)


def form_of(arrays: Sequence[mx.nd.NDArray]) -> str:
    """Return the words for the type and shape of a parameter."""
    if not arrays:
        return "(no values yet)"
    dtype = "bfloat16" if arrays[0].dtype == BFLOAT16 else np.dtype(arrays[0].dtype)
    return f"{dtype} {arrays[0].shape}"

"""What the public functions need of MXNet's objects. MXNet has no types of its own.

A type checker takes every name of ``mxnet`` for Any: it would accept a str for an argument of the
type ``mx.nd.NDArray``. The signatures of the public functions have these protocols instead.
"""

from typing import Iterable, List, Protocol, Sequence, Tuple, TypeVar, Union

T_co = TypeVar("T_co", covariant=True)


class NDArray(Protocol):
    """An ``mxnet.nd.NDArray``."""

    @property
    def context(self) -> object: ...

    def asnumpy(self) -> object: ...


class Parameter(Protocol):
    """An ``mxnet.gluon.Parameter``."""

    @property
    def grad_req(self) -> str: ...

    def list_data(self) -> List[object]: ...


class Values(Protocol[T_co]):
    """A dict, or an ``mxnet.gluon.ParameterDict``."""

    def values(self) -> Iterable[T_co]: ...


class Items(Protocol[T_co]):
    """The same, where names count."""

    def items(self) -> Iterable[Tuple[str, T_co]]: ...


class Block(Protocol):
    """An ``mxnet.gluon.Block``."""

    def collect_params(self) -> object: ...


class Optimizer(Protocol):
    """An ``mxnet.optimizer.Optimizer``."""

    @property
    def learning_rate(self) -> float: ...


class KVStore(Protocol):
    """An ``mxnet.kvstore.KVStore``."""

    @property
    def rank(self) -> int: ...

    @property
    def num_workers(self) -> int: ...


class EvalMetric(Protocol):
    """An ``mxnet.metric.EvalMetric``."""

    def get(self) -> object: ...

    def reset(self) -> None: ...


class Context(Protocol):
    """An ``mxnet.Context``."""

    @property
    def device_type(self) -> str: ...

    @property
    def device_id(self) -> int: ...


Params = Union[Values[Parameter], Sequence[Parameter]]

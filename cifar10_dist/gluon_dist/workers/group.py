"""The store, the rank and the devices of this process."""

from typing import Any, List, Optional, Sequence, Tuple

from gluon_dist.common.messages import counted
from gluon_dist.common.split import split_range
from gluon_dist.setup import environment
from gluon_dist.setup.patches import stores
from gluon_dist.workers.horovod_store import register_stores
from gluon_dist.workers.workers import Workers

import mxnet as mx

_workers: Optional[Workers] = None


def store(kind: Optional[str] = None) -> mx.kvstore.KVStore:
    """Return the key-value store of this process; the first call makes it, if nobody has.

    Parameters
    ----------
    kind : str, optional
        One of the kinds of ``mx.kv.create``, or ``"horovod"``. Default: ``"device"`` without a
        launcher; under one ``"dist_sync"``, or ``"horovod"`` if the job has no servers.

    Returns
    -------
    mxnet.kvstore.KVStore
        The same in every call.

    Raises
    ------
    ValueError
        If an earlier call made a store of another kind.

    Examples
    --------
    >>> store = gd.store()
    >>> store.type, store.num_workers  # without a launcher
    ('device', 1)
    """
    return workers(kind).store


def workers(kind: Optional[str] = None) -> Workers:
    """Return the workers of the job, by the store of this process."""
    global _workers
    if _workers is None:
        register_stores()
        # One that the program has made itself: a second distributed one would wait for ever.
        made = next((store for store in list(stores) if "dist" in store.type), None)
        _workers = Workers(made or mx.kv.create(kind or _default_kind()))
    if kind is not None and not _is_of(_workers.store.type, kind):
        raise ValueError(
            f"store({kind!r}): this process has a store of kind {_workers.store.type!r}: ask for "
            "the kind in the first call"
        )
    return _workers


def workers_of(store: Any) -> Workers:
    """Return the workers that a store connects: a KVStore, its kind, or None for the process's.

    Raises
    ------
    ValueError
        If it is a second distributed store of this process: MXNet has one.
    """
    global _workers
    if store is None or isinstance(store, str):
        return workers(store)
    store = getattr(store, "first", store)  # of several with one connection
    if _workers is None:
        _workers = Workers(store)
    elif store is not _workers.store and store.num_workers > 1:
        raise ValueError("this process has a distributed store already: gluon_dist.store()")
    return _workers if store is _workers.store else Workers(store)


def rank() -> int:
    """Return the number of this worker; 0 without a launcher.

    As Horovod's ``rank``, but there is no ``init()``: the first call connects this worker to its
    job, by :func:`store`.

    Returns
    -------
    int
        In ``[0, size())``.

    Examples
    --------
    >>> if gd.rank() == 0:
    ...     print("Printed once, by worker 0")
    Printed once, by worker 0
    """
    return int(workers().rank)


def size() -> int:
    """Return the number of workers in the job; 1 without a launcher.

    As Horovod's ``size``, without ``init()``.

    Returns
    -------
    int
        At least 1. It does not change while the job runs.

    Examples
    --------
    >>> gd.size()  # without a launcher
    1
    """
    return int(workers().count)


def local_rank() -> int:
    """Return the number of this worker among the workers on its host; 0 without a launcher.

    As Horovod's ``local_rank``. The launcher has set it: this call makes no store.

    Returns
    -------
    int
        In ``[0, local_size())``.

    Examples
    --------
    >>> gd.local_rank()  # without a launcher
    0
    """
    return environment.local_rank()


def local_size() -> int:
    """Return the number of workers on this host; 1 without a launcher.

    As Horovod's ``local_size``. The launcher has set it: this call makes no store.

    Returns
    -------
    int
        In ``[1, size()]``.

    Examples
    --------
    >>> gd.local_size()  # without a launcher
    1
    """
    return environment.local_workers()


def devices(gpus: Optional[Sequence[int]] = None) -> List[mx.Context]:
    """Return the devices of this worker: its share of the GPUs on its host, or the CPU.

    Parameters
    ----------
    gpus : sequence of int, optional
        The numbers of the GPUs to take instead, from 0. An empty list means the CPU.

    Returns
    -------
    list of mxnet.Context
        At least one. If a host has fewer GPUs than workers, several workers share a GPU.

    Raises
    ------
    ValueError
        If MXNet does not see one of ``gpus``.

    Examples
    --------
    >>> gd.devices(gpus=[])
    [cpu(0)]
    >>> net = mx.gluon.nn.Dense(10)
    >>> net.initialize(ctx=gd.devices())
    """
    available = mx.context.num_gpus()
    wanted = share_gpus(available, local_size(), local_rank()) if gpus is None else gpus
    missing = [number for number in wanted if not 0 <= number < available]
    if missing:
        seen = counted(available, "GPU")
        raise ValueError(f"gpus {missing[0]}: this machine has {seen} that MXNet sees")
    return [mx.gpu(number) for number in wanted] or [mx.cpu()]


def share_gpus(available: int, workers: int, local_rank: int) -> Tuple[int, ...]:
    """Return the GPUs of one of several workers on a host: near-equal parts."""
    if available < workers:  # several workers to one GPU
        return tuple(range(available))[local_rank % max(available, 1) :][:1]
    start, stop = split_range(available, workers, local_rank)
    return tuple(range(start, stop))


def _default_kind() -> str:
    if environment.num_ring_workers() > 1:
        return "horovod"
    if not environment.is_launched():
        return "device"
    return "dist_sync" if environment.num_servers() else "horovod"


def _is_of(kind: str, wanted: str) -> bool:
    """Return whether a store is of a kind; ``dist`` and the like are names of ``dist_sync``."""
    synchronous = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device")
    return kind == wanted or (kind in synchronous and wanted in synchronous)

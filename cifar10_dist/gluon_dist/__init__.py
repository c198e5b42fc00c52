"""What any Gluon program for MXNet 1.9.1 needs to train on many devices and workers, and right.

Import this before mxnet. The import itself does one thing: it registers a finder. When mxnet is
imported after it, the process is made ready for it (threads, libraries, NumPy's old names), a
server or scheduler of a job starts to serve, and in a worker faults of MXNet are corrected.
:func:`explain` lists all of that.

The examples in the docstrings begin with::

    import gluon_dist as gd
    import mxnet as mx
"""

from importlib import import_module
from typing import TYPE_CHECKING, List

from gluon_dist.contract import VERSION as __version__
from gluon_dist.setup.finder import register as _register

_register()

_HOMES = {
    "Batch": "workers.batch",
    "Checkpoint": "checkpoint.job",
    "Trainer": "exchange.trainer",
    "UsageError": "common.errors",
    "backward": "exchange.freshness",
    "all_gather": "workers.operations",
    "all_reduce": "workers.operations",
    "average_statistics": "workers.statistics",
    "barrier": "workers.operations",
    "broadcast": "workers.operations",
    "broadcast_parameters": "workers.operations",
    "DataLoader": "workers.loader",
    "devices": "workers.group",
    "explain": "setup.changes",
    "local_rank": "workers.group",
    "local_size": "workers.group",
    "rank": "workers.group",
    "size": "workers.group",
    "store": "workers.group",
    "sync_metric": "workers.metric",
}

if TYPE_CHECKING:  # the same for who reads types
    from gluon_dist.checkpoint.job import Checkpoint as Checkpoint
    from gluon_dist.common.errors import UsageError as UsageError
    from gluon_dist.exchange.freshness import backward as backward
    from gluon_dist.exchange.trainer import Trainer as Trainer
    from gluon_dist.setup.changes import explain as explain
    from gluon_dist.workers.batch import Batch as Batch
    from gluon_dist.workers.group import devices as devices
    from gluon_dist.workers.group import local_rank as local_rank
    from gluon_dist.workers.group import local_size as local_size
    from gluon_dist.workers.group import rank as rank
    from gluon_dist.workers.group import size as size
    from gluon_dist.workers.group import store as store
    from gluon_dist.workers.loader import DataLoader as DataLoader
    from gluon_dist.workers.metric import sync_metric as sync_metric
    from gluon_dist.workers.operations import all_gather as all_gather
    from gluon_dist.workers.operations import all_reduce as all_reduce
    from gluon_dist.workers.operations import barrier as barrier
    from gluon_dist.workers.operations import broadcast as broadcast
    from gluon_dist.workers.operations import broadcast_parameters as broadcast_parameters
    from gluon_dist.workers.statistics import average_statistics as average_statistics

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(__all__)

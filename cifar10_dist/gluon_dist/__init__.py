"""What any Gluon program for MXNet 1.9.1 needs to train on many devices and workers, and right.

Import this before mxnet. The import itself does one thing: it registers a finder. When mxnet is
imported after it, the process is made ready for it (threads, libraries, NumPy's old names), a
server or scheduler of a job starts to serve, and in a worker faults of MXNet are corrected.
:func:`explain` lists all of that.
"""

from importlib import import_module

from gluon_dist.contract import VERSION as __version__
from gluon_dist.setup.finder import register as _register

_register()

_HOMES = {
    "DataLoader": "workers.loader",
    "devices": "workers.group",
    "explain": "setup.changes",
    "local_rank": "workers.group",
    "local_size": "workers.group",
    "rank": "workers.group",
    "size": "workers.group",
    "store": "workers.group",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name):
    """Load a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})

"""All that this package changes of a process and of MXNet: a table of small functions."""

import inspect
from types import ModuleType
from typing import Callable, NamedTuple

from gluon_dist.setup import (
    environment,
    exceptions,
    order,
    patches,
    process,
    same_parameters,
    server_optimizers,
    shared_store,
)
from gluon_dist.setup.parameter_server import serve_if_told

MXNET = "MXNet 1.9.1"


class Change(NamedTuple):
    """A function that changes something; its docstring says what, and then why."""

    make: Callable[..., object]
    version: str  # what the change is for


# In every process, before MXNet is executed. The last one never returns in a server.
BEFORE = (
    Change(process.set_threads, MXNET),
    Change(process.remove_port, MXNET),
    Change(process.keep_freed_memory, "glibc"),
    Change(process.load_libraries, "mxnet-cu112 1.9.1"),
    Change(process.restore_numpy_names, "NumPy 1.20 and later, with MXNet 1.9.1 or GluonCV 0.10.5"),
    Change(process.keep_setuptools_out, "Python 3.8 to 3.11"),
    Change(serve_if_told, MXNET),
)
FASTER = (process.keep_setuptools_out,)  # only saves time, and a program may need setuptools
# As long as it is executed: a context manager.
DURING = Change(process.unneeded_modules_hidden, MXNET)
# In a worker of a job, once it has been executed. Each function takes the module mxnet.
AFTER = (
    Change(exceptions.end_on_exceptions, "every version of Python"),
    Change(exceptions.note_failed_exit, MXNET),
    Change(patches.wait_for_weights, MXNET),
    Change(patches.finish_queued_work, MXNET),
    Change(patches.tell_unused_store, MXNET),
    Change(patches.send_classes_by_value, MXNET),
    Change(order.keep_order, MXNET),
    Change(shared_store.share_connection, MXNET),
    Change(same_parameters.compare_parameters, MXNET),
    Change(server_optimizers.keep_servers_up_to_date, MXNET),
    Change(patches.refuse_horovod_beside_servers, "Horovod 0.28"),
    Change(patches.warn_of_stale_gradients, MXNET),
)
# Only where a program asks for it.
ASKED = (
    Change(exceptions.tell_mistakes_in_a_line, "every version of Python"),
    Change(patches.keep_first_convolution, "MXNet 1.9.1 with oneDNN 2.4"),
)
GROUPS = {
    "Before MXNet is imported:": BEFORE,
    "While it is imported:": (DURING,),
    "Then, in a worker of a job:": AFTER,
    "Where a program asks for it:": ASKED,
}


def make_ready(is_stranger: bool = False) -> None:
    """Make the changes before MXNet; not those that only save time in a stranger's program."""
    for change in BEFORE:
        if not (is_stranger and change.make in FASTER):
            change.make()


def correct(mxnet: ModuleType) -> None:
    """Make the changes of a worker, once MXNet is imported."""
    if environment.role() == "worker":
        for change in AFTER:
            change.make(mxnet)


def explain() -> None:
    """Print all that this package changes of the process and of MXNet, why, and for which version.

    Importing ``gluon_dist`` changes nothing yet. The changes are made when ``mxnet`` is first
    imported after it.

    Examples
    --------
    >>> gd.explain()  # doctest: +ELLIPSIS
    Before MXNet is imported:
      set_threads (MXNet 1.9.1)
    ...
    """
    for title, changes in GROUPS.items():
        print(title)
        for change in changes:
            what, _, why = (inspect.getdoc(change.make) or "").partition("\n\n")
            print(f"  {change.make.__name__} ({change.version})\n    {what}")
            print("".join(f"      {line}\n" for line in why.splitlines()), end="")

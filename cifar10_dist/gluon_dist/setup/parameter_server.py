"""The roles that hold no data: servers and the scheduler, without the Python half of MXNet.

``import mxnet`` turns a process that has one of these roles into it, but first prepares Python
functions for thousands of operators. A server adds up arrays and needs none of
them, so that it is started here with the same calls to MXNet's library. Only ``dist_async``, and a
Trainer with ``update_on_kvstore``, send an optimizer, which is Python's: then they import the rest.
"""

import collections
import ctypes
import os
import pickle
import sys
from importlib import util

from gluon_dist.setup import environment
from gluon_dist.setup.exceptions import end_on_exceptions, end_with_traceback
from gluon_dist.setup.rendezvous import serve_rendezvous
from gluon_dist.setup.server_optimizers import CONTROL, Copies

ROLES = ("server", "scheduler")
ADVICE = "put its classes in a module of their own, or use update_on_kvstore=False"


def serve_if_told():
    """Be the server or scheduler that DMLC_ROLE asks for, until the job is over; then leave.

    For a worker this returns at once. Without servers the scheduler is Horovod's rendezvous.
    """
    role = environment.role()
    if role == "scheduler" and environment.num_servers() == 0:
        serve_rendezvous()
    package = util.find_spec("mxnet")
    if role not in ROLES or package is None:
        return
    path = os.path.join(package.submodule_search_locations[0], "libmxnet.so")
    if not os.path.exists(path):  # not from a wheel: import mxnet knows where it is
        return
    library = ctypes.CDLL(path)
    library.MXGetLastError.restype = ctypes.c_char_p
    store = ctypes.c_void_p()
    _check(library, library.MXKVStoreCreate(b"dist", ctypes.byref(store)))
    held = []  # the library uses these after the call
    received = collections.Counter()
    _forget_unfinished_imports()
    if not environment.ignores_server_errors():
        end_on_exceptions()  # else an update that fails leaves sums of gradients for weights

    @ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    def control(command, content, _):
        if command != CONTROL:
            print(f"a server does not know command {command}", file=sys.stderr, flush=True)
            return
        with environment.in_role("worker"):  # or the import would start a second server
            import mxnet

        try:
            found = pickle.loads(content)
            if not held:
                held.append(Copies(mxnet, mxnet.kvstore.KVStore(store)))
            if not isinstance(found, dict):  # of a worker that has not imported gluon_dist
                found = {"store": 0, "optimizer": found, "changes": {}}
            is_new = received[content] % environment.num_workers() == 0  # each worker sends it
            if found["optimizer"] is None or is_new:
                held[0].take(**found)
            received[content] += 1
        except Exception as error:
            failed = "a server cannot update the weights with the optimizer that it was sent"
            end_with_traceback(type(error), error, error.__traceback__, f"{failed}: {ADVICE}")

    _check(library, library.MXKVStoreRunServer(store, control, None))
    sys.stdout.flush()
    os._exit(0)  # the store is closed: nothing must try to close it again


def _forget_unfinished_imports():
    """Forget modules whose import is unfinished: the server imports them again.

    An optimizer may be of the module whose ``import mxnet`` has led here.
    """
    for name, module in list(sys.modules.items()):
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            del sys.modules[name]


def _check(library, status):
    if status:
        raise RuntimeError(library.MXGetLastError().decode())

"""What a worker corrects in MXNet, as soon as that is imported: faults that hang or spoil a job.

- A Trainer hands out worker 0's weights in its first step, without waiting until they are there.
  With ``update_on_kvstore=False`` the next push puts gradients in their place on the servers, and
  a worker that is late takes the sum of these gradients for its weights.
- At its exit MXNet drops what is still queued. With it go the last pushes of a program that ends
  right after ``trainer.step``, for which the other workers wait.
- An optimizer is sent to the servers by the names of its classes. A class of the script is
  ``__main__.Warm`` then, which no server has: there ``__main__`` is stopped at its first import.
  cloudpickle sends such a class itself; a class of a module still goes by its name.
- With ``ignore_stale_grad=True`` a worker without an example in a batch pushes the gradient of an
  earlier step, and skips the update that the others make. This is not mended but told.
"""

import atexit
import base64
import functools
import pickle
import sys
import warnings
from importlib.machinery import PathFinder

from ground.endings import end_with_traceback

try:
    import cloudpickle
except ImportError:  # not everywhere: a server then ends with the name that it does not find
    cloudpickle = pickle

STALE = (
    "{}: no new gradient on this worker, and ignore_stale_grad: it has pushed an earlier one, and "
    "skips the update. Unless all workers do, their weights differ from now on. A worker without "
    "an example in a batch can take any example with weight 0."
)


class AfterMXNet:
    """A finder that corrects mxnet once it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Find mxnet alone, with a loader that does the rest."""
        spec = PathFinder.find_spec(name) if name == "mxnet" else None
        if spec is None:
            return None
        load = spec.loader.exec_module

        def load_and_correct(module):
            load(module)
            correct(module)

        spec.loader.exec_module = load_and_correct
        return spec


def correct_mxnet():
    """Correct mxnet now, if it has been imported, or as soon as it is."""
    if "mxnet" in sys.modules:
        correct(sys.modules["mxnet"])
    else:
        sys.meta_path.insert(0, AfterMXNet)


def correct(mxnet):
    """Make all corrections."""
    wait_for_weights(mxnet.kvstore.KVStore)
    finish_queued_work(mxnet.nd.waitall)
    warn_of_stale_gradients(mxnet.gluon.Trainer)
    mxnet.kvstore.kvstore.pickle = ByValue


def wait_for_weights(store_class):
    """Let ``broadcast`` return once the values are here."""
    broadcast = store_class.broadcast

    @functools.wraps(broadcast)
    def broadcast_and_wait(self, key, value, out, priority=0):
        broadcast(self, key, value, out, priority)
        for array in out if isinstance(out, list) else [out]:
            array.wait_to_read()

    store_class.broadcast = broadcast_and_wait


def finish_queued_work(waitall):
    """Do what is queued before MXNet shuts down: of two exit handlers the later runs first."""

    def finish():
        try:
            waitall()
        except Exception as error:  # of an operator whose result nobody has asked for
            end_with_traceback(type(error), error, error.__traceback__)

    atexit.register(finish)


def warn_of_stale_gradients(trainer_class):
    """Let a Trainer of several workers say when ``ignore_stale_grad`` makes them differ."""
    update = trainer_class._update

    @functools.wraps(update)
    def update_and_warn(self, ignore_stale_grad=False):
        if ignore_stale_grad and self._distributed and not self._update_on_kvstore:
            learned = (p for p in self._params if p.grad_req != "null")
            stale = [p.name for p in learned if not all(d._fresh_grad for d in p.list_data())]
            if stale:
                warnings.warn(STALE.format(stale[0]), stacklevel=3)
        update(self, ignore_stale_grad)

    trainer_class._update = update_and_warn


class ByValue:
    """Takes the place of the module `pickle` in ``mxnet.kvstore.kvstore``."""

    loads = staticmethod(pickle.loads)

    @staticmethod
    def dumps(optimizer, protocol):
        """Pickle in plain ASCII: more a command to the servers cannot hold."""
        text = base64.b64encode(cloudpickle.dumps(optimizer)).decode()
        return pickle.dumps(_Result(pickle.loads, _Result(base64.b64decode, text)), protocol)


class _Result:
    """Is unpickled as what ``function(argument)`` returns."""

    def __init__(self, function, argument):
        self.function, self.argument = function, argument

    def __reduce__(self):
        return self.function, (self.argument,)

"""What a worker corrects in MXNet once it is imported: faults that spoil a job, or let it hang."""

import atexit
import base64
import functools
import pickle
import signal
import sys
import warnings
import weakref

from gluon_dist.setup import environment, finder
from gluon_dist.setup.exceptions import Refused, end_if_failed, end_with_traceback
from gluon_dist.setup.order import arrays_of

try:
    import cloudpickle
except ImportError:  # not everywhere: a server then ends with the name that it does not find
    cloudpickle = pickle

UNUSED = (
    "gluon_dist: this worker trained alone: the program made a dist store, but its Trainer does "
    "not use it: gluon.Trainer(..., kvstore=store)"
)
stores = weakref.WeakSet()  # of this process
STALE = (
    "{}: no new gradient on this worker, and ignore_stale_grad: it has pushed an earlier one, and "
    "skips the update. Unless all workers do, their weights differ from now on. A worker without "
    "an example in a batch can take any example with weight 0."
)


def wait_for_weights(mxnet):
    """Let KVStore.broadcast return once the values are here.

    A Trainer hands out worker 0's weights in its first step, without waiting until they are there.
    With ``update_on_kvstore=False`` the next push puts gradients in their place on the servers, and
    a worker that is late takes the sum of these gradients for its weights.
    """
    store_class = mxnet.kvstore.KVStore
    broadcast = store_class.broadcast

    @functools.wraps(broadcast)
    def broadcast_and_wait(self, key, value, out, priority=0):
        broadcast(self, key, value, out, priority)
        for array in arrays_of(out):
            array.wait_to_read()

    store_class.broadcast = broadcast_and_wait


def finish_queued_work(mxnet):
    """Add an exit handler that waits until all that is queued is done, then closes all stores.

    At its exit MXNet drops what is still queued. With it go the last pushes of a program that ends
    right after ``trainer.step``, for which the other workers wait. And a store that something holds
    longer than MXNet lives (a signal handler, a cache of ``typing``) ends a program that was right
    with status 134. (Of two exit handlers the later runs first.)
    """
    begin = mxnet.kvstore.KVStore.__init__

    @functools.wraps(begin)
    def begin_and_note(self, handle):
        begin(self, handle)
        stores.add(self)

    mxnet.kvstore.KVStore.__init__ = begin_and_note

    def finish():
        if any("dist" in store.type for store in stores):  # which would wait for other workers
            end_if_failed()
        try:
            mxnet.nd.waitall()
        except Exception as error:  # of an operator whose result nobody has asked for
            end_with_traceback(type(error), error, error.__traceback__)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as at Python's own end: see is_in_exit
        startup = sys.modules.get("gluon_dist_startup")
        if startup:
            startup.tell_exit()
        for store in list(stores):
            store.__del__()
            store.handle = None  # so that nothing is left for a second time

    atexit.register(finish)


def tell_unused_store(mxnet):
    """Add an exit handler that says so if the Trainers of a program did not use its dist store.

    ``gluon.Trainer`` without ``kvstore=`` trains each worker alone, also beside such a store.
    """
    trainer_class = mxnet.gluon.Trainer
    update, alone = trainer_class._update, []

    @functools.wraps(update)
    def update_and_note(self, *args, **kwargs):
        if not self._distributed:
            alone[:] = [True]
        update(self, *args, **kwargs)

    def tell():
        made = [store for store in stores if "dist" in store.type]
        is_used = any(hasattr(store, "unsettled") for store in made)  # something was pushed
        if alone and made and not is_used and environment.num_workers() > 1:
            print(UNUSED, file=sys.stderr, flush=True)

    trainer_class._update = update_and_note
    atexit.register(tell)


def warn_of_stale_gradients(mxnet):
    """Let Trainer._update warn when ``ignore_stale_grad`` makes the workers differ.

    A worker without an example in a batch then pushes the gradient of an earlier step, and skips
    the update that the others make. This is told. Where servers update, MXNet pushes the weights
    in place of such a gradient; here zeros, and without ``ignore_stale_grad`` it is an error as in
    one process.
    """
    trainer_class = mxnet.gluon.Trainer
    update, reduce = trainer_class._update, trainer_class._allreduce_grads

    def arrays(of):
        """Return the weights and gradients of each device where the servers update, else none."""
        if not (of._distributed and of._update_on_kvstore) or hasattr(of, "exchange"):
            return []
        learned = [p for p in of._params if p.grad_req != "null" and p._stype == "default"]
        return [pair for p in learned for pair in zip(p.list_data(), p.list_grad())]

    @functools.wraps(reduce)
    def reduce_fresh(self):
        for data, grad in arrays(self):
            if not data._fresh_grad:
                grad[:] = 0
        reduce(self)

    @functools.wraps(update)
    def update_and_warn(self, ignore_stale_grad=False):
        is_plain = self._distributed and not hasattr(self, "exchange")  # that settles it
        if ignore_stale_grad and is_plain and not self._update_on_kvstore:
            learned = (p for p in self._params if p.grad_req != "null")
            stale = [p.name for p in learned if not all(d._fresh_grad for d in p.list_data())]
            if stale:
                warnings.warn(STALE.format(stale[0]), stacklevel=3)
        update(self, ignore_stale_grad)
        for data, _ in arrays(self):
            data._fresh_grad = False

    trainer_class._update, trainer_class._allreduce_grads = update_and_warn, reduce_fresh


def refuse_horovod_beside_servers(mxnet):
    """Let ``hvd.init()`` end the worker with a line where the job has servers.

    Nothing tells Horovod its rank there: each worker is rank 0 of 1, and trains alone.
    """
    if environment.num_servers() == 0:
        return

    def refuse(self, *args, **kwargs):
        raise Refused("this program uses Horovod: start the job with -s 0, without servers")

    def replace(module):
        module.HorovodBasics.init = refuse

    sys.meta_path.insert(0, finder.After("horovod.common.basics", replace))


def send_classes_by_value(mxnet):
    """Let KVStore.set_optimizer send classes of the script itself.

    An optimizer is sent to the servers by the names of its classes. A class of the script is
    ``__main__.Warm`` then, which no server has: there ``__main__`` is stopped at its first import.
    cloudpickle sends such a class itself; a class of a module still goes by its name.
    """
    mxnet.kvstore.kvstore.pickle = ByValue


class ByValue:
    """Takes the place of the module `pickle` in ``mxnet.kvstore.kvstore``."""

    loads = staticmethod(pickle.loads)

    @staticmethod
    def dumps(optimizer, protocol):
        """Pickle in plain ASCII: more a command to the servers cannot hold."""
        try:
            text = base64.b64encode(cloudpickle.dumps(optimizer)).decode()
        except (AttributeError, pickle.PicklingError) as error:
            if cloudpickle is not pickle:
                raise
            why = f"the servers cannot take the optimizer: {error}"
            raise Refused(f"{why}; pip install cloudpickle, which sends such classes") from None
        return pickle.dumps(_Result(pickle.loads, _Result(base64.b64decode, text)), protocol)


class _Result:
    """Is unpickled as what ``function(argument)`` returns."""

    def __init__(self, function, argument):
        self.function, self.argument = function, argument

    def __reduce__(self):
        return self.function, (self.argument,)


def keep_first_convolution(mxnet, plain):
    """Let a convolution of images compute in float32, by an operator that does not cast.

    After ``amp.init`` in bfloat16 every convolution casts. For three channels oneDNN has no good
    code in bfloat16, and what it writes makes the BatchNorm after it ten times as slow: a sixth of
    ResNet-18's step.
    """
    cast = mxnet.sym.Convolution

    def convolution(data, *args, **kwargs):
        is_first = data.list_arguments() == [data.name]  # there is no weight before it
        return (plain if is_first else cast)(data, *args, **kwargs)

    mxnet.sym.Convolution = mxnet.sym.op.Convolution = convolution

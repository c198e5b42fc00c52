"""Gradients in two bits each: what ``Trainer(compression_params=...)`` refuses on ``dist_sync``.

Every weight of every worker gets 0 or ± the threshold pushed, and keeps the rest for its next
gradient (Strom 2015; MXNet's own way of it: mxnet.apache.org/api/faq/gradient_compression). That is
2 bits for 32: the pushes shrink 16 times. What comes back is the sum, in 32 bits as ever. Both ways
together shrink from 32 + 32 to 2 + 32 bits, 1.88 times.
"""

from ground.failure import UsageError
from trainers.worker_trainer import Exchange

SMALLEST = 1e-6  # MXNet tells the servers the threshold in six decimals


class TwoBits(Exchange):
    """Adds gradients up by a push followed by a pull, which MXNet compresses.

    MXNet's Trainer uses ``pushpull``, which says ``Compression not supported with PushPull``.

    Parameters
    ----------
    params : mxnet.gluon.ParameterDict
    """

    def __init__(self, params):
        self._params = [params[name] for name in sorted(params)]  # as the Trainer numbers them

    def connect(self, store, first_key):
        """Take the store; the Trainer has made a key for each parameter."""
        self._store = store

    def add_up(self):
        """Push and pull every gradient."""
        for key, param in enumerate(self._params):
            if param.grad_req != "null":
                self._store.push(key, param.list_grad(), priority=-key)
                self._store.pull(key, param.list_grad(), priority=-key)

    def explain(self):
        """Say what to expect."""
        return [
            "gradients in 2 bits: pushes are 16 times smaller, pulls are not, so that both "
            "together shrink 1.88 times at most"
        ]


def compression_params(kind, threshold, global_batch_size):
    """Describe the compression as MXNet wants it.

    Parameters
    ----------
    kind : {'2bit'}
    threshold : float
        As in MXNet's examples, of gradients summed over a batch. Here they are divided by
        ``global_batch_size`` before they are pushed, and so is the threshold.
    global_batch_size : int

    Returns
    -------
    dict
        Of ``type`` and ``threshold``, a multiple of a millionth: with more decimals the workers
        would keep back other amounts than the servers add.
    """
    pushed = round(threshold / global_batch_size, 6)
    if pushed < SMALLEST:
        raise UsageError(
            f"--gc-threshold {threshold:g}: divided by the batch of all workers, "
            f"{global_batch_size}, it must be at least {SMALLEST:f}"
        )
    return {"type": kind, "threshold": f"{pushed:f}"}

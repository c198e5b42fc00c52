"""The members of a Trainer that the rest of the program may use."""

import mxnet as mx


class JobTrainer(mx.gluon.Trainer):
    """A Trainer of one worker of a job. All workers make the same calls.

    Ways of training inherit from this class and add no public members: the training loop, the
    reports and the checkpoints use only these.

    Attributes
    ----------
    devices : list of mxnet.Context
        The devices of this worker.
    learned : list of mxnet.gluon.Parameter
        The parameters with gradients, sorted by name.
    learning_rate : float
        The rate of the last update that this worker knows of.
    unsaved : str or None
        What :meth:`collect_state` leaves out, in words for the user.
    """

    unsaved = None

    def __init__(self, params, optimizer, *args, **kwargs):
        super().__init__(params, optimizer, *args, **kwargs)
        self.devices = self._contexts
        self.learned = [param for param in self._params if param.grad_req != "null"]

    @property
    def loss_scale(self):
        """The factor that keeps small gradients of float16 above zero; 1 otherwise."""
        scaler = getattr(self, "_amp_loss_scaler", None)
        return scaler.loss_scale if scaler else 1

    def loss_divisor(self, batch):
        """Return what to divide the losses of a batch by, before backward.

        It is the number of examples of all workers. In float16 it is smaller by ``loss_scale``, by
        which :meth:`step` divides the gradients.
        """
        return batch.global_size / self.loss_scale

    def step(self, batch_size=1, ignore_stale_grad=False):
        """Exchange the gradients of a batch with the other workers, and update the weights.

        ``batch_size`` is 1 where the losses were divided by :meth:`loss_divisor`.
        """
        super().step(batch_size, ignore_stale_grad)

    def pull_weights(self, workers):
        """Get the weights ready for an evaluation; nothing to do if the workers update."""

    def measure_staleness(self, workers):
        """Return how late the gradients of all workers were since the last call.

        Returns
        -------
        dict
            ``staleness_mean`` and ``staleness_max``, in updates by other workers; empty if no
            gradient comes late.
        """
        return {}

    def measure_steps(self):
        """Return how long each step since the last call took this worker.

        Returns
        -------
        list of tuple
            Seconds of computing, from the sums of the step before to this step's gradients (NaN in
            the first step), and of waiting for their sums. Empty if no other worker is waited for.
        """
        return []

    def explain(self):
        """Return lines for the user on what this way of training does."""
        return []

    def collect_state(self):
        """Return what a checkpoint needs besides the weights, to continue the training.

        Returns
        -------
        facts : dict or None
            Plain numbers, for JSON; None if there is nothing to save.
        arrays : dict of NDArray
            Copies on the CPU that do not change any more; MXNet may still be copying them.
        """
        return None, {}

    def restore_state(self, facts, arrays):
        """Restore what :meth:`collect_state` returned, before the first step.

        What another way of training, or another optimizer, has saved is ignored. The arrays are
        NumPy's here.
        """

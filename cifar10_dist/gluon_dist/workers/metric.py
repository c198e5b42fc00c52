"""Metrics over the examples of all workers."""

from typing import TypeVar

from gluon_dist.common import protocols
from gluon_dist.workers import group
from gluon_dist.workers.operations import compare

from mxnet.metric import F1, MCC, CompositeEvalMetric, EvalMetric, PearsonCorrelation

SUMS = "sum_metric", "num_inst", "global_sum_metric", "global_num_inst"

Metric = TypeVar("Metric", bound=protocols.EvalMetric)


def sync_metric(metric: Metric) -> Metric:
    """Return the metric that was passed. From now on its results are those of all workers.

    ``get()`` and ``get_global()`` add up over the workers. So do ``get_name_value()`` and printing
    the metric, which call them. All workers must make these calls together, also a worker that saw
    no example. ``update()`` and ``reset()`` stay with each worker. Metrics that average over
    batches (RMSE, MAE, F1, …) average over the batches of all workers. Horovod has no such
    function.

    Parameters
    ----------
    metric : mxnet.metric.EvalMetric
        A metric whose sums and counts can be added up, or a CompositeEvalMetric of such metrics.
        Others may be added to the composite later.

    Returns
    -------
    mxnet.metric.EvalMetric
        The same object.

    Raises
    ------
    ValueError
        If its state cannot be added up: PCC; F1, MCC and PearsonCorrelation with
        ``average="micro"``; any other class that overrides ``reset``, as it keeps more than the
        sums. Also in ``get()``, if the workers make different calls.
    TypeError
        If ``metric`` is no EvalMetric.

    Examples
    --------
    >>> metric = gd.sync_metric(mx.metric.Accuracy())
    >>> metric.update(mx.nd.array([0, 1]), mx.nd.array([[0.9, 0.1], [0.8, 0.2]]))
    >>> metric.get()
    ('accuracy', 0.5)
    """
    if not isinstance(metric, EvalMetric):
        raise TypeError(
            f"sync_metric: pass an EvalMetric, such as mx.metric.create('acc'), not a "
            f"{type(metric).__name__}"
        )
    if isinstance(metric, (_OfAllWorkers, _CompositeOfAllWorkers)):
        return metric
    if isinstance(metric, CompositeEvalMetric):
        for child in metric.metrics:
            sync_metric(child)
    elif not _adds_up(metric):
        raise ValueError(
            f"sync_metric: what {type(metric).__name__} ({metric.name}) keeps does not add up over "
            "workers: gather its inputs with all_gather, or use average='macro' where it has it"
        )
    kind = type(metric)
    mixin = _CompositeOfAllWorkers if isinstance(metric, CompositeEvalMetric) else _OfAllWorkers
    # A class of its own, not a method of the instance: that of a deep copy would be the original's.
    metric.__class__ = type(kind.__name__, (mixin, kind), {"__module__": kind.__module__})
    return metric


class _OfAllWorkers:
    """Computes from the sums of all workers, and puts its own back."""

    _is_of_all = False

    def get(self):
        return self._of_all(super().get)

    def get_global(self):
        return self._of_all(super().get_global)

    def _of_all(self, get):
        """Return what ``get`` gives for the sums of all workers."""
        if self._is_of_all:  # get_global() of some metrics calls get()
            return get()
        job, own = group.workers(), [getattr(self, name) for name in SUMS]
        compare(job, f"get of the metric {self.name}")
        total = own if job.count == 1 else job.all_reduce([float(value) for value in own]).tolist()
        self._is_of_all = True
        try:
            self._set(total)
            return get()
        finally:
            self._set(own)
            self._is_of_all = False

    def _set(self, values):
        for name, value in zip(SUMS, values):
            setattr(self, name, value)


class _CompositeOfAllWorkers:
    """A composite whose later metrics are of all workers, too."""

    def add(self, metric):
        super().add(metric)
        sync_metric(self.metrics[-1])


def _adds_up(metric):
    """Return whether a metric's state is sums only, over examples or over batches."""
    resets = next(kind for kind in type(metric).__mro__ if "reset" in vars(kind))
    if resets in (F1, MCC, PearsonCorrelation):
        return getattr(metric, "_average" if resets is MCC else "average", None) == "macro"
    return resets is EvalMetric

"""Metrics of the examples of all workers; between real workers they are tested by operate.py."""

from gluon_dist import sync_metric

import mxnet as mx
import pytest

TIME_BUDGET_S = 5
ADDED_UP = "acc top_k_acc perplexity mae mse rmse ce nll_loss loss f1 mcc pearsonr torch caffe"
MICRO = {"average": "micro"}


class OwnState(mx.metric.EvalMetric):
    def reset(self):
        super().reset()
        self.seen = []


@pytest.mark.parametrize(
    "metric",
    [
        mx.metric.PCC(),
        mx.metric.F1(**MICRO),
        mx.metric.MCC(**MICRO),
        mx.metric.PearsonCorrelation(**MICRO),
        OwnState("own"),
        mx.metric.create(["acc", mx.metric.PCC()]),
    ],
    ids=lambda metric: metric.name,
)
def test_a_metric_that_does_not_add_up_is_refused(metric):
    with pytest.raises(ValueError, match=r"^sync_metric: what \w+ \(\w+\) keeps does not add up"):
        sync_metric(metric)


def test_every_other_metric_of_mxnet_is_taken_and_stays_the_same_object():
    options = {"perplexity": {"ignore_label": 0}, "top_k_acc": {"top_k": 2}}
    known = {type(mx.metric.create(n, **options.get(n, {}))) for n in ADDED_UP.split()}
    refused = {mx.metric.PCC, mx.metric.CompositeEvalMetric, mx.metric.CustomMetric}
    classes = {c for c in vars(mx.metric).values() if isinstance(c, type)}
    assert {c for c in classes if issubclass(c, mx.metric.EvalMetric)} == (
        known | refused | {mx.metric.EvalMetric}
    )
    for name in ADDED_UP.split():
        metric = mx.metric.create(name, **options.get(name, {}))
        assert sync_metric(metric) is metric and sync_metric(metric) is metric
        assert metric.get_config()["metric"] == type(metric).__mro__[2].__name__


def test_a_name_is_no_metric():
    with pytest.raises(TypeError, match=r"pass an EvalMetric.* not a str$"):
        sync_metric("acc")

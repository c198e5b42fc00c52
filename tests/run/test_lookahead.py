"""An average of the weights that the training ends at."""

import mxnet as mx
import pytest

from run.lookahead import Lookahead
from run.trainer import PlannedTrainer

TIME_BUDGET_S = 10


def one_weight(value):
    param = mx.gluon.Parameter("p", shape=(1,))
    param.initialize(mx.init.Constant(value))
    return param


def test_a_training_ends_at_the_average_it_took_on_the_way():
    param = one_weight(0)
    lookahead = Lookahead([param], period=2, num_steps=5)
    for step, value in enumerate((1.0, 2.0, 3.0, 4.0, 5.0), 1):
        param.set_data(mx.nd.array([value]))
        lookahead.step(step)
    kept = 0.95**2 * (4 / 5) ** 3  # at step 4; step 2 begins the average, step 5 ends at it
    assert param.data().asscalar() == pytest.approx(kept * 2 + (1 - kept) * 4)


def test_the_average_goes_by_the_step_also_where_there_were_more_updates():
    """As in a training that goes on with larger batches: its optimizer has counted smaller ones."""
    param = one_weight(1)
    sgd, store = mx.optimizer.SGD(begin_num_update=700), mx.kv.create("local")
    lookahead = Lookahead([param], 2, 6)
    trainer = PlannedTrainer([param], sgd, store, None, lambda step: 0.1, 0, lookahead)
    found = []
    for _ in range(6):
        with mx.autograd.record():
            param.data().sum().backward()
        trainer.step(1)
        found.append(param.data().asscalar())
    kept = 0.95**2 * (4 / 6) ** 3
    average = kept * 0.8 + (1 - kept) * 0.6  # at step 4, of step 2's average
    assert found == pytest.approx([0.9, 0.8, 0.7, average, average - 0.1, average])
    assert sgd.num_update == 706

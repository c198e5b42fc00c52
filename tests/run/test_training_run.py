"""What surrounds the steps of a training: which batches are left, what is saved, the end."""

import time

from gluon_dist.checkpoint.files import find, write
from gluon_dist.checkpoint.manifest import Manifest
from gluon_dist.checkpoint.session import Session
from gluon_dist.workers.workers import Workers

import mxnet as mx
import numpy as np
import pytest
from explicit import ExplicitTrainer
from mxnet.gluon import nn

from command_line.parse import parse_args
from loader import TrainLoader
from run.resume import Start
from run.training_run import STEPS_AHEAD, TrainingRun
from training import CrossEntropy, forward_backward

TIME_BUDGET_S = 10
IMAGES = np.random.RandomState(0).randint(0, 256, (46, 3, 8, 8)).astype(np.uint8)
LOADER = TrainLoader(IMAGES, np.arange(46) % 4, batch_size=4)  # 12 steps an epoch
FACTS = {"steps_per_epoch": len(LOADER), "options": {}}


def small_network(*layers):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3 * 8 * 8), *layers)
    net.initialize()
    return net


@pytest.fixture
def begin():
    """A function that makes a :class:`TrainingRun` as the program does, of one worker."""
    sessions = []

    def create(*flags, net=None, epoch=0, step=0):
        args = parse_args(["--num-epochs", "3", "--disp-batches", "1000", *map(str, flags)])
        sessions.append(Session(args.model_prefix).__enter__())
        create.stopper = sessions[-1].stopper
        net = net or small_network()
        trainer = ExplicitTrainer(net.collect_params(), mx.optimizer.SGD(learning_rate=0.1))
        start, workers = Start(FACTS, epoch, step), Workers(mx.kv.create("local"))
        return TrainingRun(args, start, net, trainer, workers, sessions[-1]), net, trainer

    yield create
    for session in sessions:
        session.__exit__(None, None, None)


def take(run, net, trainer, batch):
    """A step of the training loop."""
    outputs = forward_backward(net, CrossEntropy(), [batch.data], [batch.label], batch.size)
    trainer.step(1)
    run.step_done(outputs, [batch.label])


def follow(training, epoch):
    """The labels of the batches of an epoch, each trained on."""
    run, net, trainer = training
    seen = []
    for batch in run.batches(LOADER, epoch):
        take(run, net, trainer, batch)
        seen.append(batch.label.asnumpy().tolist())
    return seen


def labels_of(epoch):
    return [batch.label.asnumpy().tolist() for batch in LOADER.batches(epoch)]


@pytest.mark.parametrize(
    "layers, accuracy, is_told",
    [([nn.BatchNorm], 0, True), ([nn.BatchNorm], 0.9, False), ([], 0, False)],
)
def test_a_first_test_far_below_the_training_is_explained(
    begin, capsys, monkeypatch, layers, accuracy, is_told
):
    monkeypatch.setattr(LOADER, "labels", np.zeros(46, int))
    training = begin(net=small_network(*(layer(in_channels=4) for layer in layers)))
    for epoch in range(2):
        follow(training, epoch)
        assert not training[0].save_if_stopped(epoch)
        training[0].epoch_done(epoch, {"accuracy": accuracy, "loss": 1.0})
    assert capsys.readouterr().out.count("BatchNorm's running averages") == is_told


def test_the_first_epoch_goes_on_where_the_checkpoint_was_and_the_next_is_whole(begin):
    training = begin(epoch=1, step=5)
    assert follow(training, 1) == labels_of(1)[5:]
    assert follow(training, 2) == labels_of(2)


def test_a_request_ends_the_epoch_after_the_step_and_saves_there(begin, tmp_path):
    prefix = tmp_path / "model"
    run, net, trainer = begin("--model-prefix", prefix)
    for number, batch in enumerate(run.batches(LOADER, 0)):
        take(run, net, trainer, batch)
        begin.stopper.is_requested = number == 2
    assert number == 2 and run.save_if_stopped(0) and run.finish() == 75
    (entry,) = find(prefix)
    assert (entry.epoch, entry.step) == (0, 3)


@pytest.mark.parametrize(
    "flags, saved", [((), [3, 2, 1]), (("--save-period", 2), [3, 2]), (("--keep", 1), [3])]
)
def test_every_so_many_epochs_are_saved_the_last_always_and_as_many_kept(
    begin, tmp_path, flags, saved
):
    prefix = tmp_path / "model"
    write(str(prefix), Manifest(9, run="1999"), None, {"arg:w": mx.nd.ones(1)}, {})  # another's
    training = begin("--model-prefix", prefix, *flags)
    for epoch in range(3):
        follow(training, epoch)
        assert not training[0].save_if_stopped(epoch)
        training[0].epoch_done(epoch, {})
    assert training[0].finish() == 0
    assert [entry.epoch for entry in find(prefix)] == [*saved, 9]


def test_an_epoch_that_nobody_stopped_is_not_saved_before_its_test(begin, tmp_path):
    training = begin("--model-prefix", tmp_path / "model")
    follow(training, 0)
    assert not training[0].save_if_stopped(0) and not find(tmp_path / "model")


def test_a_test_is_due_every_so_many_epochs_and_after_the_last(begin):
    run, _, _ = begin("--test-period", 2)
    assert [run.is_test_due(epoch) for epoch in range(3)] == [False, True, True]


@pytest.mark.parametrize(
    "epoch, accuracy, is_over", [(0, 0.79, False), (0, 0.8, True), (2, 0.1, True)]
)
def test_a_training_is_over_after_the_last_epoch_and_once_the_target_is_reached(
    begin, capsys, epoch, accuracy, is_over
):
    run, _, _ = training = begin("--target-accuracy", 0.8, epoch=epoch)
    follow(training, epoch)
    assert not run.save_if_stopped(epoch)
    run.epoch_done(epoch, {"accuracy": accuracy, "loss": 1.0})
    assert run.is_over == is_over
    assert f"Epoch {epoch}: Test_acc {accuracy:f}\n" in capsys.readouterr().out
    assert run.finish() == 0


def test_a_step_draws_the_same_numbers_after_a_restart(begin):
    def draws(step):
        training = begin(net=small_network(nn.Dropout(0.5)), epoch=1, step=step)
        drawn = []
        for batch in training[0].batches(LOADER, 1):
            drawn.append(mx.nd.random.uniform(shape=3).asnumpy().tolist())
            take(*training, batch)
        return drawn

    undisturbed = draws(0)
    assert draws(7) == undisturbed[7:] and len({tuple(x) for x in undisturbed}) == len(LOADER)


class Slow(mx.operator.CustomOp):
    """Hands its input on, after a while."""

    finished = 0

    def forward(self, is_train, req, in_data, out_data, aux):
        time.sleep(0.2)
        Slow.finished += 1
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("slow")
class SlowProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, shapes, dtypes):
        return Slow()


class SlowNetwork(mx.gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(4, in_units=3 * 8 * 8)

    def hybrid_forward(self, F, x):
        return F.Custom(self.dense(x), op_type="slow")


def test_python_queues_only_a_few_steps_ahead(begin):
    """What is queued must be computed before a request to stop, and takes memory meanwhile."""
    net, ahead = SlowNetwork(), []
    net.initialize()
    run, _, trainer = begin(net=net)
    for batch in run.batches(LOADER, 0):
        take(run, net, trainer, batch)
        ahead.append(len(ahead) + 1 - Slow.finished)
    assert len(ahead) == 12 and 0 < max(ahead) <= STEPS_AHEAD + 1, ahead

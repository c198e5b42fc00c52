"""gd.Trainer learns what one process would, in float64 and by hand, for any number of workers."""

import functools
import inspect
import sys

import gluon_dist as gd

import mxnet as mx
import numpy as np
import pytest
from mxnet.contrib.amp.loss_scaler import LossScaler

from launching import launch
from programs import learn_by_every_trainer as program
from programs import learn_late as program_late
from programs.learn_by_every_trainer import FROZEN, HUGE, MAX_NORM, SIZES, first, rate

TIME_BUDGET_S = 60
X, Y, Z = (array.astype("float64") for array in (program.X, program.Y, program.Z))
STEPS = range(len(SIZES))
REFUSED_LATE = [
    "update_on_kvstore=False: with dist_async servers update: leave it out",
    "compression_params: not with dist_async: it needs dist_sync",
    "dist_async: its servers have one optimizer, of the first Trainer",
    "dist_async: create gluon_dist.Trainer itself, not a class of it",
    "dist_async: the servers have the learning rate: use an lr_scheduler",
    "dist_async: workers do not see sums of gradients: use step()",
    "dist_async: servers update: use step()",
]


def rows(step, pieces=1):
    start = sum(SIZES[:step])
    return slice(start, start + sum(SIZES[step : step + pieces]))


def begin(*shapes):
    return [
        first(shape, rank=0) for units, inputs in shapes for shape in ((units, inputs), (units,))
    ]


def gradients(params, x, y):
    """Of the squared distance, summed over examples, of a layer of tanh and a plain one."""
    w1, b1, w2, b2 = params
    hidden = np.tanh(x @ w1.T + b1)
    out = hidden @ w2.T + b2 - y
    back = (out @ w2) * (1 - hidden**2)
    return [back.T @ x, back.sum(0), out.T @ hidden, out.sum(0)]


class Sgd:
    def __init__(self, momentum=0.9, wd=0.0, nesterov=False):
        self.momentum, self.wd, self.nesterov, self.speed = momentum, wd, nesterov, {}

    def __call__(self, number, w, g, lr):
        move = -lr * (g + self.wd * w)
        speed = self.speed[number] = self.momentum * self.speed.get(number, 0) + move
        return w + (self.momentum * speed + move if self.nesterov else speed)


class Adam:
    def __init__(self, wd=0.0):
        self.wd, self.state = wd, {}

    def __call__(self, number, w, g, lr):
        g = g + self.wd * w
        m, v, t = self.state.get(number, (0, 0, 0))
        m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2, t + 1
        self.state[number] = m, v, t
        return w - lr * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)


class Own:
    def __init__(self):
        self.state = {}

    def __call__(self, number, w, g, lr):
        squares, largest = self.state.get(number, (0, 0))
        squares = 0.8 * squares + 0.2 * g**2
        largest = np.maximum(largest, squares)
        self.state[number] = squares, largest
        return w - lr * g / (0.1 + np.sqrt(largest))


def updated(update, params, grads, lr, numbers=None):
    numbers = range(len(params)) if numbers is None else numbers
    moved = [
        update(n, w, g, lr) if n in numbers else w for n, (w, g) in enumerate(zip(params, grads))
    ]
    return moved


def learn(update, steps=STEPS, params=None, max_norm=None, without=(), pieces=1, frozen=()):
    params = begin((5, 4), (3, 5)) if params is None else params
    for step in steps:
        part = rows(step, pieces)
        size = part.stop - part.start
        grads = [g / size for g in gradients(params, X[part], Y[part])]
        if max_norm:
            norm = np.sqrt(sum((g**2).sum() for g in grads))
            grads = [g * min(1, max_norm / norm) for g in grads]
        if step not in without:
            still = {
                n
                for layer, fixed in enumerate(frozen)
                if step in fixed
                for n in (2 * layer, 2 * layer + 1)
            }
            params = updated(update, params, grads, rate(step), set(range(4)) - still)
    return params


def pair():
    (w, b), (v, c) = begin((1, 4)), begin((4, 2))
    judge, maker = Adam(), Sgd(0.5)
    for step in STEPS:
        x, z, size = X[rows(step)], Z[rows(step)], SIZES[step]
        made = z @ v.T + c
        right, wrong = x @ w.T + b - 1, made @ w.T + b
        grads = (right.T @ x + wrong.T @ made) / size, (right + wrong).sum(0) / size
        w, b = updated(judge, (w, b), grads, rate(step))
        back = (made @ w.T + b - 1) @ w
        v, c = updated(maker, (v, c), (back.T @ z / size, back.sum(0) / size), rate(step))
    return [w, b, v, c]


def branched(lr=None):
    params, update = begin((3, 4), (3, 3)), Sgd(0.9, 0.1)
    for step in STEPS:
        (w, b, v, c), part = params, rows(step)
        x, y = X[part], Y[part]
        through = np.array([program.through_head(row) for row in range(part.start, part.stop)])[
            :, None
        ]
        body = x @ w.T + b
        out = np.where(through, body @ v.T + c, body) - y
        back, head = np.where(through, out @ v, out), out * through
        grads = [back.T @ x, back.sum(0), head.T @ body, head.sum(0)]
        numbers = range(4 if through.any() else 2)  # no decay where nothing was computed
        params = updated(
            update, params, [g / SIZES[step] for g in grads], lr or rate(step), numbers
        )
    return params


def both():
    fast, slow = Sgd(0.9), Sgd(0)
    return learn(lambda n, *values: (fast if n < 2 else slow)(n, *values))


def estimated():
    """Its loss is the mean of three distances."""
    params, update = begin((5, 4), (3, 5)), Sgd()
    for step in range(4):
        part = slice(12 * (step % 2), 12 * (step % 2) + 12)
        grads = [g / 3 / 12 for g in gradients(params, X[part], Y[part])]
        params = updated(update, params, grads, rate(step))
    return params


BY_HAND = {
    "sgd": lambda: learn(Sgd(0.9, 0.1)),
    "nag": lambda: learn(Sgd(0.9, 0.1, nesterov=True)),
    "adam": lambda: learn(Adam()),
    "adam-wd": lambda: learn(Adam(0.1)),
    "scheduled": lambda: learn(Sgd()),
    "own": lambda: learn(Own()),
    "pair": pair,
    "clipped": lambda: learn(Sgd(), max_norm=MAX_NORM, without=[HUGE]),
    "branched": branched,
    "added": lambda: learn(Sgd(), STEPS[::2], pieces=2),
    "frozen": lambda: learn(Sgd(0.9, 0.1), frozen=[range(*steps) for steps in FROZEN]),
    "scaled": lambda: learn(Sgd(), without=[HUGE]),
    "unscaled": lambda: learn(Sgd(), max_norm=MAX_NORM, without=[HUGE]),
    "went-on": lambda: learn(Adam()),
    "named-otherwise": lambda: learn(Sgd()),
    "begun-again": lambda: learn(Sgd()),
    "both": both,
    "estimated": estimated,
    "inferred-first": lambda: [first(shape, rank=0) for shape in ((16, 16, 3, 3), (16,))],
}
HALVES = {
    "fp16": lambda: learn(Sgd()),
    "fp16-divided": lambda: learn(Sgd()),
    "fp16-clipped": lambda: learn(Sgd(0)),
}


def run(folder, workers, kind, *settings):
    words = ("tests/programs/learn_by_every_trainer.py", kind, folder / "found.npz", *settings)
    env = {"OMP_NUM_THREADS": "1"}
    servers = 0 if kind == "horovod" else 1
    job = launch(folder, "-n", workers, "-s", servers, sys.executable, *words, env=env)
    assert job.status == 0, job.text()
    assert "skips the update" not in job.text()  # what MXNet's Trainer would do
    return np.load(folder / "found.npz")


@functools.lru_cache(maxsize=None)
def by_hand(name):
    return np.concatenate([array.ravel() for array in {**BY_HAND, **HALVES}[name]()])


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    return run(tmp_path_factory.mktemp("two"), 2, "dist_sync")


def assert_learned(found):
    """See that each setting ended, in each way to add up, with the parameters of the oracle."""
    names = [name for name in found.files if "/" in name]
    assert {name.split("/")[0] for name in names} >= set(BY_HAND)
    distances = {name: np.abs(found[name] - by_hand(name.split("/")[0])).max() for name in names}
    assert {name: d for name, d in distances.items() if not d < bound(name)} == {}


def bound(name):
    """Of the distance: float16 rounds more; Adam divides gradients near zero by themselves."""
    return 1e-3 if "fp16" in name else 5e-5 if name[:4] in ("adam", "went") else 2e-6


def test_two_workers_learn_in_every_setting_what_one_process_would(two_workers):
    assert_learned(two_workers)
    assert {name.split("/")[0] for name in two_workers.files} >= set(HALVES)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_learns_the_same(workers, tmp_path):
    assert_learned(run(tmp_path, workers, "dist_sync"))


@pytest.mark.horovod
@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_workers_of_horovod_learn_the_same(workers, tmp_path):
    assert_learned(run(tmp_path, workers, "horovod"))


@pytest.mark.parametrize("name", ["2bit", "2bit-again"])
def test_what_does_not_fit_in_two_bits_is_sent_later(two_workers, name):
    sums = 40 * np.array(program.SMALL) * (1 + 2)
    late = np.abs(-two_workers[name] - sums)
    assert late.max() <= 2 * 0.5 + 1e-4 and late.max() > 0.01


def test_what_a_store_or_other_workers_do_not_allow_is_refused_in_a_line(two_workers):
    half, threshold, shapes, arrays = two_workers["refused"]
    advice = "give this one {'type': '2bit', 'threshold': 0.5}, too"
    assert half == threshold and half.endswith(advice) and half.startswith("compression_params: ")
    assert "worker 1" in shapes and "\n" not in shapes, shapes
    assert arrays.startswith("npx.set_np(): ") and "\n" not in arrays, arrays


def learn_late(folder, workers):
    words = sys.executable, "tests/programs/learn_late.py", folder / "found.npy"
    job = launch(folder, "-n", workers, "-s", 1, *words, env={"OMP_NUM_THREADS": "1"})
    assert job.status == 0, job.text()
    refused = [
        line.split("refused: ")[1] for line in job.stdout.splitlines() if "refused: " in line
    ]
    return np.load(folder / "found.npy"), refused


def test_one_worker_of_dist_async_learns_what_one_process_would_and_refuses_the_rest(tmp_path):
    found, refused = learn_late(tmp_path, 1)
    wanted = np.concatenate([array.ravel() for array in branched(program_late.LR)])
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert refused == REFUSED_LATE


@pytest.mark.long
def test_two_workers_of_dist_async_learn_something(tmp_path):
    found, refused = learn_late(tmp_path, 2)
    assert np.isfinite(found).all() and refused == REFUSED_LATE
    assert not np.allclose(found, np.concatenate([a.ravel() for a in begin((3, 4), (3, 3))]))


REFUSED = {
    "update_on_kvstore=True: here workers update: leave it out": {"update_on_kvstore": True},
    "compression_params: type '1bit' is not 'fp16' or '2bit'": {
        "compression_params": {"type": "1bit"}
    },
    "compression_params: type None is not 'fp16' or '2bit'": {
        "compression_params": {"threshold": 1}
    },
    "compression_params: the threshold 0 must be at least 0.000001: MXNet tells the servers six "
    "decimals": {"compression_params": {"type": "2bit", "threshold": 0}},
    "optimizer 'sdg': not one of": {"optimizer": "sdg"},
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_a_trainer_cannot_do_is_refused_in_a_line(line):
    options = {"optimizer": "sgd", "kvstore": mx.kv.create("local"), **REFUSED[line]}
    with pytest.raises(ValueError) as caught:
        gd.Trainer(layer(mx.gluon.nn.Dense(1)), **options)
    assert str(caught.value).startswith(line) and "\n" not in str(caught.value)


def test_sparse_gradients_are_refused_with_the_name_of_their_parameter():
    params = layer(mx.gluon.nn.Embedding(3, 2, sparse_grad=True, prefix="words_"))
    with pytest.raises(ValueError, match=r"words_weight: sparse .*: leave out sparse_grad=True"):
        gd.Trainer(params, "sgd", kvstore=mx.kv.create("local"))


def test_a_step_before_shapes_are_known_is_refused():
    trainer = gd.Trainer(layer(mx.gluon.nn.Dense(1)), "sgd", kvstore=mx.kv.create("local"))
    with pytest.raises(ValueError, match=r"weight: its shape is not known yet, .*: say in_units"):
        trainer.step(1)


def test_a_step_that_would_add_up_again_is_refused():
    params = layer(mx.gluon.nn.Dense(1, in_units=1))
    trainer = gd.Trainer(params, "sgd", kvstore=mx.kv.create("local"))
    trainer.allreduce_grads()
    with pytest.raises(ValueError, match=r"after allreduce_grads\(\) comes update\(\), not step"):
        trainer.step(1)


def test_an_overflow_at_the_smallest_scale_leaves_no_gradient_behind():
    """It would be added up again where a worker has no example in the next step."""
    params = layer(mx.gluon.nn.Dense(1, in_units=1))
    trainer = gd.Trainer(params, "sgd", kvstore=mx.kv.create("local"))
    trainer._amp_loss_scaler, trainer._amp_original_scale = LossScaler(), 1
    trainer._amp_loss_scaler._loss_scale = trainer._amp_loss_scaler._next_loss_scale = 1
    for param in params.values():
        param.grad()[:], param.data()._fresh_grad = np.inf, True
    trainer.step(1)
    assert not any(param.data()._fresh_grad for param in params.values())


def layer(block):
    block.initialize()
    return block.collect_params()


def test_the_handler_in_the_docstring_is_the_one_that_is_tried():
    lines = inspect.getsource(program.StepOfAll).splitlines()
    code = [line for line in lines if line.strip() and '"""' not in line]
    assert len(code) == 3 and "\n".join(code) in inspect.getdoc(gd.Trainer).replace("\n    ", "\n")

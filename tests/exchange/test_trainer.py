"""gd.Trainer learns what one process would, in float64 and by hand, for any number of workers."""

import functools
import sys

import numpy as np
import pytest

from launching import launch
from programs import learn_by_every_trainer as program
from programs import learn_late as program_late
from programs.learn_by_every_trainer import FROZEN, HUGE, MAX_NORM, SIZES, first, rate

TIME_BUDGET_S = 60
X, Y, Z = (array.astype("float64") for array in (program.X, program.Y, program.Z))
STEPS = range(len(SIZES))


def rows(step, pieces=1):
    start = sum(SIZES[:step])
    return slice(start, start + sum(SIZES[step : step + pieces]))


def begin(*shapes):
    return [first(shape, rank=0) for units, inputs in shapes for shape in ((units, inputs), (units,))]


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
    moved = [update(n, w, g, lr) if n in numbers else w for n, (w, g) in enumerate(zip(params, grads))]
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
            still = {n for layer, fixed in enumerate(frozen) if step in fixed for n in (2 * layer, 2 * layer + 1)}
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
        through = np.array([program.through_head(row) for row in range(part.start, part.stop)])[:, None]
        body = x @ w.T + b
        out = np.where(through, body @ v.T + c, body) - y
        back, head = np.where(through, out @ v, out), out * through
        grads = [back.T @ x, back.sum(0), head.T @ body, head.sum(0)]
        numbers = range(4 if through.any() else 2)  # no decay where nothing was computed
        params = updated(update, params, [g / SIZES[step] for g in grads], lr or rate(step), numbers)
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
    return np.load(folder / "found.npz")


@functools.lru_cache(maxsize=None)
def by_hand(name):
    return np.concatenate([array.ravel() for array in {**BY_HAND, **HALVES}[name]()])


@pytest.mark.parametrize("kind", ["dist_sync", pytest.param("horovod", marks=pytest.mark.horovod)])
@pytest.mark.parametrize("workers", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 3))])
def test_every_setting_learns_what_one_process_would(workers, kind, tmp_path):
    found, wrong = run(tmp_path, workers, kind), []
    assert {name.split("/")[0] for name in found.files} >= set(BY_HAND)
    for name in found.files:
        if name == "2bit":
            continue
        bound = 2e-3 if "fp16" in name else 5e-5 if "adam" in name else 2e-6
        difference = np.abs(found[name] - by_hand(name.split("/")[0])).max()
        if not difference < bound:
            wrong.append((name, difference))
    assert not wrong


def learn_late(folder, workers):
    words = sys.executable, "tests/programs/learn_late.py", folder / "found.npy"
    job = launch(folder, "-n", workers, "-s", 1, *words, env={"OMP_NUM_THREADS": "1"})
    assert job.status == 0, job.text()
    refused = [line.split("refused: ")[1] for line in job.stdout.splitlines() if "refused: " in line]
    return np.load(folder / "found.npy"), refused


def test_one_worker_of_dist_async_learns_what_one_process_would_and_refuses_the_rest(tmp_path):
    found, refused = learn_late(tmp_path, 1)
    wanted = np.concatenate([array.ravel() for array in branched(program_late.LR)])
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    assert refused == REFUSED_LATE


def test_two_workers_of_dist_async_learn_something(tmp_path):
    found, refused = learn_late(tmp_path, 2)
    assert np.isfinite(found).all() and refused == REFUSED_LATE
    assert not np.allclose(found, np.concatenate([a.ravel() for a in begin((3, 4), (3, 3))]))


def test_what_is_not_sent_in_two_bits_is_sent_later(two):
    gradients = np.array([-0.4, -0.11, 0, 0.02, 0.3, 0.49])
    late = two["2bit"] + 40 * gradients * (1 + 2)  # of worker 0 and of worker 1, twice as large
    assert np.abs(late).max() < 2 * 0.5 + 1e-4

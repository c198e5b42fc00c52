"""The same parameters and the same evaluation for any number of workers and devices.

The oracle trains on one device in float64, and shares no code with the program but the source of
its random numbers.
"""

import functools
import math
import sys

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd

from launching import launch
from programs import exact
from sampler import epoch_permutation

TIME_BUDGET_S = 120


def run_exact(workers, kind, folder):
    program = (sys.executable, "tests/programs/exact.py", kind, str(folder / "found.npz"))
    servers = 0 if kind == "horovod" else 1
    job = launch(folder, "-n", workers, "-s", servers, *program, env={"OMP_NUM_THREADS": "1"})
    assert job.status == 0, job.stdout + job.stderr
    return np.load(folder / "found.npz")


@functools.lru_cache(maxsize=None)
def by_hand(length, optimizer):
    """Train in float64 for twenty steps, all of a batch at once; return the parameters."""
    net = exact.small_network([mx.cpu()], dtype="float64")
    params = [p for _, p in sorted(net.collect_params().items())]
    first = [np.zeros(p.shape) for p in params]
    second = [np.zeros(p.shape) for p in params]
    per_epoch = math.ceil(length / exact.GLOBAL_BATCH)
    for step in range(exact.STEPS):
        data, label = batch_by_hand(length, *divmod(step, per_epoch))
        with autograd.record():
            loss = -mx.nd.pick(mx.nd.log_softmax(net(data)), label).mean()
        loss.backward()
        rate = exact.RATE[optimizer] * (1 + math.cos(math.pi * (step + 1) / (exact.STEPS + 1))) / 2
        for param, m, v in zip(params, first, second):
            weight = param.data().asnumpy()
            gradient = param.grad().asnumpy() + 0.001 * weight
            if optimizer == "sgd":
                m[:] = 0.9 * m - rate * gradient
                param.set_data(mx.nd.array(weight + m, dtype="float64"))
            else:
                m[:] = 0.9 * m + 0.1 * gradient
                v[:] = 0.999 * v + 0.001 * gradient**2
                rate_t = rate * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
                param.set_data(
                    mx.nd.array(weight - rate_t * m / (np.sqrt(v) + 1e-8), dtype="float64")
                )
    return np.concatenate([p.data().asnumpy().ravel() for p in params])


def batch_by_hand(length, epoch, step):
    """Gather, flip and crop one example after the other."""
    start = step * exact.GLOBAL_BATCH
    chosen = epoch_permutation(length, exact.SEED, epoch)[start : start + exact.GLOBAL_BATCH]
    draws = exact.TRANSFORM.draw(length, exact.SEED, epoch)
    images = []
    for example in chosen:
        top, left, flip = draws[example]
        image = exact.IMAGES[example][..., ::-1] if flip else exact.IMAGES[example]
        images.append(np.pad(image, ((0, 0), (1, 1), (1, 1)))[:, top : top + 8, left : left + 8])
    data = np.array(images) / 255.0
    return mx.nd.array(data, dtype="float64"), mx.nd.array(exact.LABELS[chosen], dtype="float64")


def evaluated_by_hand(parameters=None):
    """Accuracy, top-2 accuracy, mean loss and number of the first examples, in float64."""
    net = exact.small_network([mx.cpu()], dtype="float64")
    if parameters is not None:
        params = [p for _, p in sorted(net.collect_params().items())]
        ends = np.cumsum([np.prod(p.shape) for p in params])
        for param, values in zip(params, np.split(parameters, ends[:-1])):
            param.set_data(mx.nd.array(values.reshape(param.shape), dtype="float64"))
    scores = net(mx.nd.array(exact.IMAGES / 255.0, dtype="float64")).asnumpy()
    loss = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(49), exact.LABELS]
    right = np.argsort(-scores, axis=1)[:, :2] == exact.LABELS[:, None]
    top_1, top_2 = right[:, 0], right.any(axis=1)
    return [[top_1[:n].mean(), top_2[:n].mean(), loss[:n].mean(), n] for n in exact.TESTS]


def assert_evaluated(got, wanted):
    wanted = np.array(wanted)
    assert (got[:, [0, 1, 3]] == wanted[:, [0, 1, 3]]).all()  # counts, divided
    np.testing.assert_allclose(got[:, 2], wanted[:, 2], rtol=1e-5)


LONG, RING = pytest.mark.long, pytest.mark.horovod


@pytest.mark.parametrize(
    "workers, kind",
    [
        (1, "dist_sync"),
        (2, "dist_sync"),
        pytest.param(3, "dist_sync", marks=LONG),
        pytest.param(4, "dist_sync", marks=LONG),
        pytest.param(2, "horovod", marks=RING),
        pytest.param(3, "horovod", marks=[RING, LONG]),
    ],
)
def test_any_number_of_workers_gives_the_parameters_and_the_evaluation_of_one(
    workers, kind, tmp_path
):
    found = run_exact(workers, kind, tmp_path)
    assert set(exact.SETTINGS) < set(found.files)
    for name, (length, _, optimizer, _) in exact.SETTINGS.items():
        wanted = by_hand(length, optimizer)
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-5, err_msg=name)
    assert_evaluated(found["evaluations"], evaluated_by_hand())


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 3])
def test_asynchronous_training_is_evaluated_exactly(workers, tmp_path):
    found = run_exact(workers, "dist_async", tmp_path)
    assert_evaluated(found["evaluations"], evaluated_by_hand(found["async"]))

"""Where the time of a training step goes, on a batch that lies on the device."""

import time

import mxnet as mx
from mxnet import autograd

PARTS = "forward", "backward", "update"


def time_parts(net, loss, trainer, x, y, num_steps, wait):
    """Take some steps; return the mean ms of each part of one.

    Parameters
    ----------
    wait : bool
        Whether to wait for the work of each part before looking at the clock. If not, the time of
        a part is that of its calls, and ``"waiting"`` is the time of one wait after the last step.

    Returns
    -------
    dict of str to float
        The parts add up to the mean time of a step.
    """
    ms = dict.fromkeys([*PARTS, "waiting"], 0.0)

    def look(part):
        nonlocal last
        if wait or part == "waiting":
            mx.nd.waitall()
        now = time.perf_counter()
        ms[part] += 1000 * (now - last) / num_steps
        last = now

    mx.nd.waitall()
    last = time.perf_counter()
    for _ in range(num_steps):
        with autograd.record():
            losses = loss(net(x), y) / len(y)
        look("forward")
        losses.backward()
        look("backward")
        trainer.step(1)
        look("update")
    look("waiting")
    return ms


def measure(cases, loss, num_steps=20, num_rounds=12):
    """Time several cases in alternation; of each, keep the fastest round.

    Other programs can only slow a round down.

    Parameters
    ----------
    cases : dict of str to tuple
        Network, images, labels, and whether to wait after each part.

    Returns
    -------
    dict of str to dict
        As of :func:`time_parts`, in the order of the cases.
    """
    sgd = {"learning_rate": 1e-4}
    nets = {name: case[0] for name, case in cases.items()}
    trainers = {n: mx.gluon.Trainer(net.collect_params(), "sgd", sgd) for n, net in nets.items()}
    rounds = {name: [] for name in cases}
    for number in range(num_rounds + 1):
        for name, (net, x, y, wait) in cases.items():
            ms = time_parts(net, loss, trainers[name], x, y, num_steps, wait)
            if number:  # the first steps are slower
                rounds[name].append(ms)
    return {name: min(times, key=lambda ms: sum(ms.values())) for name, times in rounds.items()}

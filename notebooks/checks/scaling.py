"""The checks of the exercises on scaling, and a stranger's metrics to read."""

import mxnet as mx
import numpy as np
from roofline import BUCKETS, DEVICES, LINKS, NETWORKS, REACHED

from checks import compare, exercise, fault_of_type, function

STRANGER = {  # of one epoch of a job on four hosts
    "seconds_computing": [61.2, 60.4, 97.9, 62.0],
    "seconds_waiting": [42.0, 42.8, 5.3, 41.2],
}


def show_stranger():
    """Print the stranger's metrics."""
    for name, values in STRANGER.items():
        for rank, value in enumerate(values):
            print(f'"{name}_worker_{rank}": {value}')


@exercise("07", 2)
def check_slow(slow, mended_s):
    """Compare a diagnosis with the stranger's metrics."""
    fault = fault_of_type(slow, 0) or fault_of_type(mended_s, 1.0)
    if fault:
        return fault
    computing, waiting = (np.array(values) for values in STRANGER.values())
    if slow != computing.argmax():
        return f"worker {slow} is not the one that computes longest and waits least"
    others = np.delete(computing, slow).max()  # the next slowest then sets the pace
    right = abs(mended_s - others - waiting[slow]) < 0.5
    hint = "the next slowest sets the pace, and the exchange is still to come"
    return "" if right else hint


@exercise("07", 1, like=function)
def check_plan(plan):
    """Compare an answer with a search through the links, from the slowest."""
    cases = [("ResNet-50", "T4", 32, 2), ("BERT base", "V100", 64, 4), ("VGG-16", "A100", 16, 8)]
    for case in cases:
        try:
            link, share = plan(*case)
        except Exception as error:
            return f"plan{case} raised {type(error).__name__}: {error}"
        name, wanted = _search(*case)
        if link != name:
            return f"plan{case} must choose {name}, not {link}"
        if not np.isclose(share, wanted, rtol=1e-3):
            return f"plan{case} must predict {wanted:.4f}, not {share}"
    return ""


def _search(network, device, batch_size, workers):
    weights, flop = NETWORKS[network]
    computing = batch_size * flop / (REACHED * DEVICES[device].flops)
    shares = {}
    for name, (rate, latency) in LINKS.items():
        exchange = 8 * weights * (workers - 1) / workers / rate + 2 * latency
        after = computing + exchange / BUCKETS  # the last bucket comes after backward
        before = computing / 3 + computing * 2 / 3 / BUCKETS + exchange
        shares[name] = computing / max(after, before)
    return next((name, share) for name, share in shares.items() if share >= 0.9)


@exercise("07", 3, like=function)
def check_sent(sent):
    """Compare a loop with what MXNet's own store lets through."""
    cases = []
    for seed, threshold in enumerate((0.5, 0.25, 1.0)):
        gradients = np.random.RandomState(seed).randint(-8, 9, 12) / 8  # exact in float32
        cases.append(((gradients.tolist(), threshold), _through_store(gradients, threshold)))
    return compare(sent, cases)


def _through_store(gradients, threshold):
    store, pulled = mx.kv.create("device"), mx.nd.zeros(1)
    store.set_gradient_compression({"type": "2bit", "threshold": threshold})
    store.init(0, pulled)
    values = []
    for gradient in gradients:
        store.push(0, mx.nd.array([gradient]))
        store.pull(0, out=pulled)
        values.append(float(pulled.asscalar()))
    return values

"""Push the same gradient five times in two bits: what arrives? Usage: two_bits.py STORE"""

import sys

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx

GRADIENTS, THRESHOLD, PUSHES = (0.3, 1.2, -0.1), 0.5, 5


def main():
    kind = sys.argv[1]
    store = mx.kv.create(kind)
    try:
        store.set_gradient_compression({"type": "2bit", "threshold": THRESHOLD})
    except Exception as error:  # MXNet raises nothing more special
        print(f"{kind}: {error}")
        return
    store.init(0, mx.nd.zeros(3))
    if "async" in kind:  # its servers update: they take away what is pushed
        store.set_optimizer(mx.optimizer.SGD(learning_rate=1))
    print(f"{kind}: {arrived(store, 'async' in kind)}")
    if "dist" in kind:
        store._barrier()  # nobody leaves while others still need the servers


def arrived(store, is_weight):
    """Return what each push adds up to, for each of the gradients."""
    pulled, rows = mx.nd.zeros(3), []
    for _ in range(PUSHES):
        before = pulled.asnumpy()
        store.push(0, mx.nd.array(GRADIENTS))
        store.pull(0, out=pulled)
        rows.append(before - pulled.asnumpy() if is_weight else pulled.asnumpy())
    return [[round(float(value), 6) + 0.0 for value in column] for column in zip(*rows)]


if __name__ == "__main__":
    exit_with(main, "two_bits.py")

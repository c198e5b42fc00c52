"""A worker pushes ones to a server and pulls what it keeps; each process tells if it imports MXNet.

Run as ``push_once.py KIND`` with the kind of the store.
"""

import sys


def tell(event, names):
    if event == "import" and names[0] == "mxnet.gluon":
        print("imports mxnet", flush=True)


sys.addaudithook(tell)

from gluon_dist.common.failure import exit_with  # noqa: E402

import mxnet as mx  # noqa: E402


def main():
    store = mx.kv.create(sys.argv[1])
    if sys.argv[1] == "dist_async":
        store.set_optimizer(mx.optimizer.SGD(learning_rate=0.25))
    ones = mx.nd.ones((3,))
    store.init(0, ones)
    store.push(0, ones)
    store.pull(0, out=ones)
    print("pulled", ones.asnumpy().tolist(), flush=True)


exit_with(main, "push_once.py")

"""What programs do with a dist store: `right` prints what went wrong.

`refused` and `lost` print what was refused; `alone` has a Trainer that does not use the store;
`short` prints what went wrong with batches of several sizes on dist_async. `gd` after it: calls of
gluon_dist, on the same store, come before.
"""

import sys

import mxnet as mx
from mxnet import autograd, gluon

nd = mx.nd


def one_step(net, trainer, head):
    """Train one of two heads by a step of size 4."""
    with autograd.record():
        loss = net[head](nd.ones((2, 3))).sum()
    loss.backward()
    trainer.step(4, ignore_stale_grad=True)


def two_heads(store, **options):
    """Return two heads and their Trainer."""
    net = gluon.nn.Sequential()
    net.add(*(gluon.nn.Dense(1, in_units=3, use_bias=False) for _ in range(2)))
    net.initialize(mx.init.One())
    scheduler = mx.lr_scheduler.FactorScheduler(1, 0.5)
    scheduler.base_lr = 0.1
    options.update(learning_rate=0.1, lr_scheduler=scheduler)
    return net, gluon.Trainer(net.collect_params(), "sgd", options, store)


def right(store):
    """Yield the names of what is wrong."""
    shape, sums = (300, 300), []
    for key in range(100, 110):
        store.init(key, nd.zeros(shape))
    for repeat in range(3):
        for key in range(100, 110):
            store.push(key, nd.ones(shape) * 7)  # which the next one replaces
            store.push(key, nd.ones(shape) * (repeat + 1))
            out, later = nd.zeros(shape), nd.zeros(shape)
            store.pull(key, out=out)
            store.push(key, nd.ones(shape) * 50)
            store.pull(key, out=later)
            sums.append((out, 2 * (repeat + 1)))
            sums.append((later, 100))
    if any((out.asnumpy() != wanted).any() for out, wanted in sums):
        yield "second push"
    pushed, begun = nd.ones(4), nd.ones(4)
    store.init(110, begun)
    store.push(110, pushed)
    store.pull(110, out=nd.zeros(4))
    nd.waitall()
    if pushed.sum().asscalar() != 4 or begun.sum().asscalar() != 4:
        yield "pushed array"
    copies = [nd.zeros(4), nd.zeros(4)]
    store.broadcast([111], [nd.ones(4)], out=[copies])
    if any(copy.sum().asscalar() != 4 for copy in copies):
        yield "broadcast"
    net, trainer = two_heads(store)
    rates = []
    for step in range(4):
        one_step(net, trainer, step % 2)
        rates.append(trainer.learning_rate)
    if rates != [0.1, 0.05, 0.025, 0.0125]:
        yield "rate"
    first, second = (head.weight.data().asnumpy()[0, 0] for head in net)
    if abs(first - 0.875) > 1e-6 or abs(second - 0.9375) > 1e-6:
        yield f"stale {first} {second}"


def refused(store):
    """Yield calls that cannot be right."""
    store.init(1, nd.zeros(4))
    store.init("mine", nd.zeros(4))
    names = "ab" if store.rank else "ba"
    yield lambda: store.init(list(names), [nd.zeros(4)] * 2)
    yield lambda: store.init(1, nd.zeros(4))
    yield lambda: store.push(2, nd.zeros(4))
    yield lambda: store.pull("other", out=nd.zeros(4))
    yield lambda: store.init(100_000, nd.zeros(4))
    yield lambda: store.push(1, nd.zeros((4, 1)).tostype("row_sparse"))
    other = mx.kv.create("dist_sync")
    other.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    yield lambda: store.push(1, nd.zeros(4))


def lost(store):
    """Yield what a store of kind dist_async cannot add up."""
    store.init(1, nd.zeros(4))
    yield lambda: store.push(1, nd.zeros(4))


def short(store):
    """Yield the weight that is wrong: each of six updates takes the mean gradient, 1, from 8."""
    net = gluon.nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(mx.init.Constant(8))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1}, store)
    for size in ((4, 2, 4), (4, 4, 1))[store.rank]:
        with autograd.record():
            loss = net(nd.ones((size, 1))).sum()
        loss.backward()
        trainer.step(size)
    nd.waitall()
    store._barrier()
    trainer._kvstore.pull(0, out=net.weight.data())
    if net.weight.data().asscalar() != 2:
        yield net.weight.data().asscalar()


if __name__ == "__main__":
    made = mx.kv.create("dist_async" if sys.argv[1] in ("lost", "short") else "dist_sync")
    if "gd" in sys.argv:
        import gluon_dist

        gluon_dist.barrier()
    if sys.argv[1] in ("right", "short"):
        print("wrong:", *globals()[sys.argv[1]](made), sep="; ", flush=True)
    elif sys.argv[1] == "alone":
        one_step(*two_heads("device"), 0)
    else:
        for call in (lost if sys.argv[1] == "lost" else refused)(made):
            try:
                call()
                print("passed", flush=True)
            except Exception as error:
                print("refused:", error, flush=True)

"""A program that changes rate, decay, batch size and factors of an optimizer while servers update.

    changes.py sgd|both [scheduler | array | names | stores | texts] [/ one more such way]

`both`: two networks with a Trainer each, of different optimizers, on one store; with `names` each
Trainer gets the kind of the store, with `stores` each a store; with `texts` the program itself uses
the store, too, with keys of both kinds.
`scheduler`: the rate is an attribute of a scheduler that the program moves, as GluonCV's scripts
did; it also reads the rate, for which the scheduler counts its calls. `array`: it is in an array,
as Keras keeps it.
"""

import sys

STEPS, BASE = 8, 0.05


def rate(step):
    return BASE * (1 + step % 3)


def decay(step):
    return 0.1 if step < 4 else 0.4


def size(step):
    return 20 if step % 4 else 13


def lr_mult(name, step):
    if name == "w":
        return 1 if step < 5 else 0.5
    return 0 if step < 3 else 1  # the bias is frozen at first


def wd_mult(name):
    return 2 if name == "w" else 0


def main(way):
    import mxnet as mx
    from examples import examples
    from mxnet import autograd, gluon

    class Moved(mx.lr_scheduler.LRScheduler):
        """Gives the rate that the program has set; counts how often it was asked."""

        asked = 0

        def __call__(self, num_update):
            self.asked += 1
            return self.now if "scheduler" in way else float(self.array.asscalar())

    store = mx.kv.create("dist_sync")
    kinds = ["sgd", "adam"] if "both" in way else way[:1]
    nets, trainers = [], []
    scheduler = Moved(BASE) if {"scheduler", "array"} & {*way} else None
    if scheduler:
        scheduler.now, scheduler.array = BASE, mx.nd.array([BASE])
    for kind in kinds:
        net = gluon.nn.Dense(1, in_units=3)
        net.initialize(mx.init.Zero())
        net.weight.wd_mult, net.bias.wd_mult = wd_mult("w"), wd_mult("b")
        options = {"momentum": 0.9} if kind == "sgd" else {}
        optimizer = mx.optimizer.create(
            kind, learning_rate=rate(0), wd=decay(0), lr_scheduler=scheduler, **options
        )
        where = store
        if "names" in way:
            where = "dist_sync"
        elif "stores" in way:
            where = mx.kv.create("dist")
        nets.append(net)
        trainers.append(gluon.Trainer(net.collect_params(), optimizer, kvstore=where))
    mine = mx.nd.zeros(2)
    if "texts" in way:
        store.init("metric", mine)
        store.init(7, mine)
    loss = gluon.loss.L2Loss()
    for step in range(STEPS):
        x, y, count = examples(step, store.num_workers, store.rank, size(step))
        for net, trainer in zip(nets, trainers):
            net.weight.lr_mult, net.bias.lr_mult = lr_mult("w", step), lr_mult("b", step)
            trainer.optimizer.wd = decay(step)
            if scheduler:
                if "scheduler" in way:
                    scheduler.now = rate(step)
                scheduler.array[:] = rate(step)
                assert abs(trainer.learning_rate - rate(step)) < 1e-6
            else:
                trainer.set_learning_rate(rate(step))
            with autograd.record():
                losses = loss(net(mx.nd.array(x)), mx.nd.array(y))
            losses.backward()
            trainer.step(count)
        if "texts" in way:
            for key in "metric", 7:
                store.push(key, mx.nd.ones(2) * (store.rank + step))
                store.pull(key, out=mine)
                wanted = sum(rank + step for rank in range(store.num_workers))
                assert (mine.asnumpy() == wanted).all(), (key, step, mine)
    values = [v for n in nets for v in (*n.weight.data().asnumpy()[0], *n.bias.data().asnumpy())]
    print("weights", *values, flush=True)


if __name__ == "__main__":
    for words in " ".join(sys.argv[1:]).split("/"):
        main(words.split())

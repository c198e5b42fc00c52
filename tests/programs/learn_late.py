"""Learn by ``dist_async``, print what its Trainer refuses; argv: file for the parameters."""

import sys

import gluon_dist as gd
from gluon_dist.common.failure import exit_with

import learn_by_every_trainer as every
import mxnet as mx
import numpy as np

LR = 0.05


class Setting(every.Setting):
    """Which tries what is refused as soon as it has its Trainer."""

    def trainer(self, net, *options):
        wrong = {"update_on_kvstore": False}, {"compression_params": {"type": "fp16"}}
        for more in wrong:
            refuse(gd.Trainer, net, *options, **more)
        trainer = super().trainer(net, *options)
        refuse(gd.Trainer, net, *options)
        refuse(every.Servers, net, *options)
        refuse(trainer.set_learning_rate, 1)
        refuse(trainer.allreduce_grads)
        refuse(trainer.update, 1)
        return trainer


def refuse(function, *args, **options):
    try:
        function(*args, **options)
    except ValueError as error:
        if gd.rank() == 0:
            print("refused:", error, flush=True)


def main():
    gd.store("dist_async")
    nets = every.branched(Setting("shared"), learning_rate=LR)
    params = [param for net in nets for param in net.collect_params().values()]
    for param in params:  # which a pull of the weights has not replaced
        assert (param.grad() != param.data()).asnumpy().any(), param.name
    nets[0].weight._trainer.pull_weights()
    mx.nd.waitall()
    found = every.flat([param.data().asnumpy() for param in params])
    if gd.rank() == 0:
        np.save(sys.argv[1], found)
    gd.barrier()


if __name__ == "__main__":
    exit_with(main, "learn_late.py")

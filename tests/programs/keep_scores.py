"""The training program; each worker also keeps what it was scored on, ``scores-RANK.npz``.

argv: the folder for these files, then the program's own flags.
"""

import sys

import mxnet_setup  # noqa: F401  first

import numpy as np

import cifar10_dist
from command_line.parse import parse_args
from ground import failure
from run.run import Run

kept = []


class KeepingRun(Run):
    def step_done(self, batch, outputs, labels):
        kept.extend((out.asnumpy(), y.asnumpy()) for out, y in zip(outputs, labels))
        super().step_done(batch, outputs, labels)

    def finish(self):
        scores, labels = map(np.concatenate, zip(*kept))
        np.savez(f"{sys.argv[1]}/scores-{self._workers.rank}.npz", scores=scores, labels=labels)
        return super().finish()


def main():
    args = parse_args(sys.argv[2:])
    with KeepingRun(args) as run:
        return cifar10_dist.train(args, run)


if __name__ == "__main__":
    failure.run(main, "keep_scores.py")

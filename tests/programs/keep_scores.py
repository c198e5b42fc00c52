"""The training program; each worker also keeps what it was scored on, ``scores-RANK.npz``.

argv: the folder for these files, then the program's own flags.
"""

import os
import sys

import gluon_dist  # noqa: F401  first
from gluon_dist.common.failure import exit_with

import numpy as np

import cifar10_dist
from run.training_run import TrainingRun

kept = []


class KeepingRun(TrainingRun):
    def step_done(self, outputs, labels):
        kept.extend((out.asnumpy(), y.asnumpy()) for out, y in zip(outputs, labels))
        super().step_done(outputs, labels)

    def finish(self):
        scores, labels = map(np.concatenate, zip(*kept))
        np.savez(
            f"{sys.argv[1]}/scores-{os.environ['LAUNCH_WORKER_ID']}.npz",
            scores=scores,
            labels=labels,
        )
        return super().finish()


cifar10_dist.TrainingRun = KeepingRun
if __name__ == "__main__":
    exit_with(lambda: cifar10_dist.main(sys.argv[2:]), "keep_scores.py")

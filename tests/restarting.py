"""Short trainings that are interrupted and resumed, and compared with uninterrupted ones."""

import contextlib
import io
import sys

from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np
import pytest
import train_tiny

from cifar10_dist import main
from launching import PROGRAMS, Job

PROGRAM = str(PROGRAMS / "train_tiny.py")
# Four epochs of six steps; a global batch of 48 for one to four workers.
# fmt: off
OPTIONS = (
    "--data", "synthetic", "--num-examples", "280", "--num-epochs", "4", "--lr-schedule", "cosine",
    "--random-crop", "1", "--pad-size", "4", "--random-mirror", "1", "--disp-batches", "1",
)
# fmt: on
GLOBAL_BATCH = 48
SLOW = {"TINY_PAUSE": "0.6"}  # the program's environment, to hit it within a step
ENVIRONMENT = {"OMP_NUM_THREADS": "1"}


def training(folder, prefix, *options, workers=0, launch=(), env=None, through_shell=False):
    """Start a training; return the :class:`launching.Job`.

    `workers` is 0 for a process without a launcher; `launch` are options of the launcher;
    `through_shell` lets the shell of each worker read the command.
    """
    batch = ("--batch-size", GLOBAL_BATCH // max(workers, 1), "--model-prefix", prefix)
    options, env = (*OPTIONS, *batch, *options), {**ENVIRONMENT, **(env or {})}
    if not workers:
        return Job(folder, *options, env=env, program=PROGRAM)
    command = (sys.executable, PROGRAM, *options)
    if through_shell:
        command = (" ".join(map(str, command)),)
    servers = 0 if "horovod" in options else 1
    return Job(folder, "-n", workers, "-s", servers, *launch, *command, env=env)


def train_here(prefix, *options, status=0):
    """Train to the end in this process, which costs no import; return what was printed."""
    words = (*OPTIONS, "--batch-size", GLOBAL_BATCH, *options)
    words += ("--model-prefix", prefix) if prefix else ()
    printed = io.StringIO()
    with contextlib.ExitStack() as held:
        patch = held.enter_context(pytest.MonkeyPatch.context())
        train_tiny.shrink(patch.setattr)
        held.enter_context(contextlib.redirect_stdout(printed))
        held.enter_context(contextlib.redirect_stderr(printed))
        try:
            ended = main([str(word) for word in words]) or 0
        except UsageError as error:  # which the program prints so
            print(f"error: {error}")
            ended = 2
    assert ended == status, printed.getvalue()
    return printed.getvalue()


def finished(job, status=0):
    """Wait for the end of a job and see that it is the right one; return the job."""
    job.finish(240)
    assert job.status == status, job.text()
    return job


def params(prefix, tag="0004"):
    """The parameters in a file, by name."""
    return {name: x.asnumpy() for name, x in mx.nd.load(f"{prefix}-{tag}.params").items()}


def state(prefix, tag="0004"):
    """The arrays of the optimizer's state in a file, by name."""
    with np.load(f"{prefix}-{tag}.state") as arrays:
        return {name: arrays[name] for name in arrays.files}


def assert_same(prefix, other, tag="0004", has_state=True):
    """Assert that two trainings ended in the same place, to the last bit.

    `has_state` tells whether the optimizer keeps arrays of its own.
    """
    for read, has_any in ((params, True), (state, has_state)):
        ours, theirs = read(prefix, tag), read(other, tag)
        assert ours.keys() == theirs.keys() and bool(ours) == has_any
        wrong = [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()]
        assert not wrong, wrong

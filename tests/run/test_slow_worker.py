"""A job reports its straggler: which worker, and how long the other workers wait for it."""

import json
import sys

from gluon_dist.exchange.step_times import StepClock

import mxnet as mx
import numpy as np
import pytest

from launching import PROGRAMS, launch
from run.slow_worker import LEAST_STEPS, SlowWorker

TIME_BUDGET_S = 30
SHORT = "--data synthetic --network resnet --num-layers 8 --batch-size 16 --num-examples 1100"
SHORT += " --num-epochs 1"
LINE = "as long as the others for a step: all wait for it"


@pytest.mark.long
@pytest.mark.parametrize("way", ["auto", "servers"])
def test_a_slow_worker_is_told_once_and_the_others_wait_for_it(tmp_path, way):
    program = (sys.executable, PROGRAMS / "slow_one.py", *SHORT.split())
    job = launch(tmp_path, "-n", 2, *program, "--allreduce", way, "--log-dir", tmp_path)
    assert job.status == 0 and ("shared memory" in job.stdout) == (way == "auto"), job.text()
    assert job.text().count(LINE) == 1 and "warning: worker 1 takes" in job.stderr
    row = json.loads((tmp_path / "metrics.jsonl").read_text())
    computed, waited = (
        np.array([row[f"seconds_{what}_worker_{rank}"] for rank in range(2)])
        for what in ("computing", "waiting")
    )
    assert computed[1] > 1.3 * computed[0] and waited[0] > 2 * waited[1] > 0
    assert computed + waited == pytest.approx(row["seconds_training"], rel=0.05)


def told(judge, *seconds):
    """The line after steps that took each worker this long."""
    rows = np.array([SlowWorker().add([value] * LEAST_STEPS) for value in seconds])
    judge.add([seconds[0]] * LEAST_STEPS)
    return judge.judge(rows)


def test_a_slow_worker_is_told_once_and_so_is_its_recovery():
    judge = SlowWorker()
    assert told(judge, 1, 1, 1.29) is None
    assert told(judge, 1, 1, 1, 1.6) == f"worker 3 takes 1.6 times {LINE}"
    assert told(judge, 1, 1, 1, 1.9) is told(judge, 1, 1, 1, 1.2) is None
    assert told(judge, 1.5, 1, 1, 1).startswith("worker 0 takes 1.5 times")
    assert told(judge, 1, 1, 1, 1.05) == "worker 0 keeps up with the others again"
    assert told(judge, 1, 1, 1, 1) is None
    assert told(judge, 1.5, 1, 1, 1).startswith("worker 0 takes 1.5 times")


def test_steps_of_short_epochs_are_judged_together():
    """Too few steps, too little time, then both are enough; with the next it begins anew."""
    workers = [SlowWorker(), SlowWorker()]
    for count, of_second, is_told in ((29, 1, False), (1, 1, True), (29, 9, False)):
        rows = np.array([workers[0].add([0.1] * count), workers[1].add([of_second] * count)])
        assert [bool(worker.judge(rows)) for worker in workers] == [is_told] * 2
    assert [worker.add([])[2] for worker in workers] == pytest.approx([29 * 0.1, 29 * 9])
    assert told(SlowWorker(), 0.01, 0.1) is None


def test_one_worker_alone_and_no_steps_are_nothing_to_judge():
    judge = SlowWorker()
    assert judge.judge(np.array([judge.add([])])) is None


def test_equal_workers_on_a_disturbed_machine_are_not_told():
    """Every step of each worker is disturbed for itself: some take three times as long."""
    rng, judge = np.random.RandomState(0), SlowWorker()
    for _ in range(1000):
        first, *others = rng.lognormal(0, 0.5, (3, LEAST_STEPS))
        rows = [judge.add(first), *(SlowWorker().add(steps) for steps in others)]
        assert judge.judge(np.array(rows)) is None


def test_times_are_those_of_the_background_and_of_one_epoch():
    clock = StepClock()
    for _ in range(2):
        for _ in range(3):
            clock.note([mx.nd.zeros(1)])
            clock.note([mx.nd.zeros(1)])
        first, *others = np.array(clock.take())
        assert np.isnan(first[0]) and len(others) == 2 and np.min(others) >= 0


def test_what_fails_in_the_background_ends_the_training():
    """MXNet raises an error at the first call that waits, and only there."""
    clock = StepClock()
    clock.note([mx.nd.random.normal(0, -1, (2, 2))])
    with pytest.raises(mx.MXNetError):
        clock.take()
    with pytest.raises(mx.MXNetError):
        clock.note([])

"""An interrupted and resumed training ends with the parameters of an uninterrupted one."""

import json
import os
import random
import re
import signal
import time

import numpy as np
import pytest

from restarting import SLOW, assert_same, finished, params, training

TIME_BUDGET_S = 130


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Train to the end without a disturbance, once for each number of workers."""
    known = {}

    def train(workers, *options, **more):
        key = workers, options, str(more)
        if key not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            finished(training(folder, folder / "model", *options, workers=workers, **more))
            known[key] = folder / "model"
        return known[key]

    return train


def process_of(job, rank):
    """The process of a worker; without a launcher it is the only one."""
    return job.pid if rank < 0 else job.top(f"worker-{rank}")


HOROVOD = ("--kv-store", "horovod")


@pytest.mark.parametrize(
    "workers, options",
    [
        pytest.param(0, (), marks=pytest.mark.long),
        (2, ()),
        pytest.param(2, HOROVOD, marks=pytest.mark.horovod),
    ],
)
def test_a_training_killed_at_a_random_moment_ends_like_one_that_was_not(
    tmp_path, undisturbed, workers, options
):
    expected = undisturbed(workers)
    options = (*options, "--log-dir", tmp_path / "log")
    job = training(tmp_path, tmp_path / "model", *options, workers=workers)
    epoch = random.randrange(4)
    job.wait_for(f"Epoch[{epoch}] Batch [{random.randint(1, 4)}]")
    time.sleep(random.uniform(0, 0.05))
    os.kill(process_of(job, workers - 1), signal.SIGKILL)
    job.wait()
    more = (*options, "--resume", "auto")
    again = finished(training(tmp_path, tmp_path / "model", *more, workers=workers))
    print(job.text() + again.text())
    resumed = re.search(r"Resumed from .*: (\d+) epochs? done", again.text())
    done = int(resumed[1]) if resumed else 0
    assert done >= epoch - 1  # the last save may have been under way
    assert_same(tmp_path / "model", expected)
    rows = map(json.loads, (tmp_path / "log" / "metrics.jsonl").read_text().splitlines())
    assert [row["epoch"] for row in rows] == [0, 1, 2, 3]


AVERAGED = ("--optimizer", "nag", "--lookahead", "4")


@pytest.mark.long
@pytest.mark.parametrize(
    "workers, options",
    [
        (0, ()),
        (2, AVERAGED),
        (2, ("--gc-type", "fp16")),
        (0, ("--cpus", "2")),
        (0, ("--optimizer", "sgld")),
        pytest.param(2, HOROVOD, marks=pytest.mark.horovod),
    ],
)
def test_a_training_told_to_stop_within_an_epoch_saves_there_and_ends_like_one_that_was_not(
    tmp_path, undisturbed, workers, options
):
    expected = undisturbed(workers, *options)
    job = training(tmp_path, tmp_path / "model", *options, workers=workers, env=SLOW)
    job.wait_for("Epoch[1] Batch [2]")
    os.kill(process_of(job, workers - 1), signal.SIGTERM)
    finished(job, 75)
    assert "SIGTERM: will save and stop within two steps" in job.text()
    assert re.search(r"Stopped and saved \S+/model-0001-0000\d: --resume auto goes on", job.text())
    names = {path.name for path in tmp_path.glob("model*")}
    assert "model-0001.json" in names and "model-0002.json" not in names
    assert len([name for name in names if name.startswith("model-0001-0000")]) == 3, names
    more = (*options, "--resume", "auto")
    said = finished(training(tmp_path, tmp_path / "model", *more, workers=workers)).text()
    assert "Resumed from" in said and "1 epoch and" in said
    assert_same(tmp_path / "model", expected, has_state="sgld" not in options)


@pytest.mark.long
def test_a_training_goes_on_with_another_number_of_workers(tmp_path, undisturbed):
    """Without dropout and BatchNorm, which depend on how the batch is cut."""
    plain = {"env": {"TINY": "plain"}}
    expected = undisturbed(0, **plain)
    job = training(tmp_path, tmp_path / "model", workers=2, env={**plain["env"], **SLOW})
    job.wait_for("Epoch[1] Batch [2]")
    os.kill(job.pid, signal.SIGTERM)  # the launcher tells the workers
    finished(job, 75)
    again = finished(training(tmp_path, tmp_path / "model", "--resume", "auto", workers=3, **plain))
    assert "Resumed from" in again.text() and "1 epoch and" in again.text()
    ours, theirs = params(tmp_path / "model"), params(expected)
    assert theirs and ours.keys() == theirs.keys()
    for name in theirs:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-4)

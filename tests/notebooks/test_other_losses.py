"""What notebook 04 says of losses that are not one an example: in float64, beside one process."""

import sys

import numpy as np
import pytest

from launching import PROGRAMS, launch

TIME_BUDGET_S = 100
PROGRAM = PROGRAMS / "other_losses.py"
KINDS = ("mean", "weighted", "sum", "counts", "penalty", "clip", "divided", "last-layer")


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_three_workers_learn_what_one_process_learns(tmp_path, kind):
    words = "-n", 3, "-s", 1, "--no-prepare", sys.executable, PROGRAM, kind, tmp_path / "job.npz"
    assert launch(tmp_path, *words).status == 0
    assert launch(tmp_path, kind, tmp_path / "one.npz", program=PROGRAM).status == 0
    got, wanted = (np.load(tmp_path / f"{name}.npz") for name in ("job", "one"))
    assert got.files == wanted.files
    for name in got.files:  # the servers add up in float32
        assert got[name].dtype == np.float64
        assert np.allclose(got[name], wanted[name], atol=1e-6), name

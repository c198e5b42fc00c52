"""``--dtype``: which operators compute in 16 bits, and a resumed training in 16 bits."""

import pytest

from launching import PROGRAMS, launch
from processors import needs_avx512
from restarting import assert_same, finished, training

TIME_BUDGET_S = 30


def test_all_convolutions_but_that_of_the_images_are_cast(tmp_path):
    job = launch(tmp_path, program=PROGRAMS / "casts_of_resnet.py")
    assert job.status == 0 and job.stdout == "data, then casts\n", job.text()


@pytest.mark.long
@needs_avx512
def test_a_training_in_bfloat16_goes_on_in_it_and_tells_of_another_type(tmp_path):
    def train(name, epochs, *options):
        words = ("--lr-schedule", "constant", "--num-epochs", epochs, *options)
        return finished(training(tmp_path, tmp_path / name, *words)).stderr

    bfloat16 = ("--dtype", "bfloat16")
    train("whole", 2, *bfloat16)
    train("model", 1, *bfloat16)
    assert "not as saved" not in train("model", 2, *bfloat16, "--resume", "auto")
    assert_same(tmp_path / "model", tmp_path / "whole", "0002")
    changed = train("model", 3, "--resume", "auto")
    assert "not as saved: --dtype float32 (was bfloat16)" in changed

"""How a program ends whose screen takes nothing more."""

import os
import subprocess
import sys

import pytest

from launching import ROOT

TIME_BUDGET_S = 5
PRINTS = "from gluon_dist.common.failure import exit_with; exit_with(lambda: print('x'), 'p')"


def end_of(out):
    """Run a program that prints to a file; return its status and what it said of that."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "cifar10_dist")}
    env.pop("PYTHONUNBUFFERED", None)  # it prints when it ends
    command = [sys.executable, "-c", PRINTS]
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, env=env, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_under_its_output_is_no_failure():
    with open("/dev/full", "w") as full:
        assert end_of(full) == (0, b"")


def test_a_reader_that_has_gone_is_told_of_by_python_itself():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        status, said = end_of(pipe)
    assert status == 120 and b"BrokenPipeError" in said

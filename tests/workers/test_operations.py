"""What operations between workers return, and what they say of mistakes."""

import sys

import pytest

from launching import PROGRAMS, launch

TIME_BUDGET_S = 60
LONG = [("dist_sync", 1), ("dist_sync", 3), ("dist_async", 3)]
CASES = [("dist_sync", 2), *(pytest.param(*case, marks=pytest.mark.long) for case in LONG)]
CASES.append(pytest.param("horovod", 3, marks=pytest.mark.horovod))


@pytest.mark.parametrize("kind, count", CASES)
def test_operations_are_exact_and_mistakes_are_told_by_all_workers(kind, count, tmp_path):
    servers = 0 if kind == "horovod" else 2
    program = (sys.executable, PROGRAMS / "operate.py", kind)
    job = launch(tmp_path, "-n", count, "-s", servers, *program)
    assert job.status == 0, job.text()
    assert job.stdout.count("operations done") == count


def test_one_process_needs_no_launcher(tmp_path):
    job = launch(tmp_path, "device", program=PROGRAMS / "operate.py")
    assert (job.status, job.stdout) == (0, "operations done\n"), job.text()

"""Which worker has failed although it lives: one that cannot get out of its exit."""

import pytest

from gluon_launch.remote.protocol import HUNG_S
from launching import launch, shell

TIME_BUDGET_S = 90
pytestmark = pytest.mark.long

# MXNet's store does so: its destructor waits for the other processes.
STORE = """
import logging, sys, time, traceback
class Store:
    def __del__(self):
        time.sleep(60)
store = Store()
"""


@pytest.mark.parametrize("redirected", ["", " 2>&1"])
def test_a_worker_that_hangs_in_its_exit_after_a_traceback_has_failed(tmp_path, redirected):
    """A progress bar stands in front of it."""
    (tmp_path / "p.py").write_text(
        STORE + "sys.stderr.write('\\r 50%|█████     | 5/10 [00:01<00:01,  9it/s]')\n"
        "raise ValueError('odd')\n"
    )
    job = launch(tmp_path, "-n", 1, "--no-check", f"python {tmp_path}/p.py{redirected}")
    assert job.status == 1
    assert "worker 0 on localhost: printed a traceback" in job.last_words()
    assert "ValueError: odd" in job.last_words()


@pytest.mark.parametrize("report", ["traceback.print_exc()", "logging.exception('retrying')"])
@pytest.mark.parametrize("before", ["", "import signal; signal.signal(2, signal.SIG_DFL)\n"])
def test_a_worker_that_waits_after_an_exception_it_caught_has_not_failed(tmp_path, report, before):
    """Also with SIGINT at its default, as it is in the exit."""
    program = f"{before}try:\n    1 / 0\nexcept ZeroDivisionError:\n    {report}\n"
    ending = f"time.sleep({HUNG_S + 3})\nimport os; os._exit(0)\n"
    (tmp_path / "p.py").write_text(STORE + program + ending)
    command = shell(worker0=f"python {tmp_path}/p.py", other="exit 0")
    job = launch(tmp_path, "-n", 1, "--no-check", command)
    assert job.status == 0, job.text()
    assert "ZeroDivisionError" in job.text()


def test_an_exception_in_a_thread_is_no_failure(tmp_path):
    program = "import threading, time\n"
    program += "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n"
    program += f"time.sleep({HUNG_S + 2})\nprint('done')"
    (tmp_path / "p.py").write_text(program)
    job = launch(tmp_path, "-n", 1, "--no-check", "python", tmp_path / "p.py")
    assert job.status == 0
    assert "ZeroDivisionError" in job.text()


def test_a_server_that_is_idle_after_a_traceback_has_not_failed(tmp_path):
    caught = f"echo 'Traceback (most recent call last):' >&2; sleep {HUNG_S + 4}"
    command = shell(worker0=f"sleep {HUNG_S + 3}", other=caught)
    job = launch(tmp_path, "-n", 1, "--no-check", command)
    assert job.status == 0, job.text()

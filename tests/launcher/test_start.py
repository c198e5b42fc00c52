"""From the start on: ports, marks, time limits, files that look like the library's."""

import pathlib
import re
import signal

import pytest

from launching import SUM_RANKS, Job, free_port, launch, shell

TIME_BUDGET_S = 25


def test_a_stall_prints_the_stacks(tmp_path):
    (tmp_path / "wait.py").write_text("import time\ndef waits():\n    time.sleep(60)\nwaits()\n")
    options = ["--stall-timeout", 6, "--job-dir", tmp_path / "logs"]
    job = launch(
        tmp_path, "-n", 1, "--no-check", *options, f"true; python {tmp_path}/wait.py; true"
    )
    assert job.status == 124
    assert "--stall-timeout: no output from any process for 6 s" in job.last_words()
    assert 'wait.py", line 3 in waits' in (tmp_path / "logs" / "worker-0.log").read_text()


@pytest.mark.long
def test_a_start_that_does_not_complete_names_who_is_missing(tmp_path):
    late = "import os, time\nif os.environ.get('LAUNCH_WORKER_ID') == '1': time.sleep(60)\n"
    (tmp_path / "late.py").write_text(late + pathlib.Path(SUM_RANKS).read_text())
    options = ("-n", 2, "-s", 1, "--no-check", "--start-timeout", 20)
    job = launch(tmp_path, *options, "python", "late.py", cwd=tmp_path)
    assert job.status == 124
    assert "still waiting for worker 1" in job.last_words()


def test_each_try_has_a_mark_of_its_own_and_the_job_one_name(tmp_path):
    command = shell(worker0="env | grep ^LAUNCH_; sleep 0.3; exit 4")
    options = ["--max-restarts", 1, "--min-uptime", 0]
    job = launch(tmp_path, "-n", 1, "--no-check", *options, command)
    assert len(set(re.findall(r"LAUNCH_MARK_\w+(?==worker-0)", job.text()))) == 2
    names = re.findall(r"LAUNCH_JOB=(\w+)", job.out.read_text())
    assert len(names) == 2 and len(set(names)) == 1


@pytest.mark.long
def test_a_port_that_is_taken_meanwhile_makes_the_start_repeat(tmp_path):
    """The first scheduler finds its port taken, as if another program had been faster."""
    thief = (
        "import os, socket\n"
        "if os.environ['DMLC_ROLE'] == 'scheduler' and not os.path.exists('stolen'):\n"
        "    open('stolen', 'w').close()\n"
        "    thief = socket.socket()\n"
        "    thief.bind(('127.0.0.1', int(os.environ['DMLC_PS_ROOT_PORT'])))\n"
        "    thief.listen()\n"
    )
    (tmp_path / "p.py").write_text(thief + pathlib.Path(SUM_RANKS).read_text())
    job = launch(tmp_path, "-n", 2, "-s", 1, "--no-check", "python", "p.py", cwd=tmp_path)
    assert job.status == 0
    assert "starting again" in job.last_words()
    assert job.out.read_text().count("sum 3") == 2


@pytest.mark.long
def test_a_pinned_port_that_is_taken_is_a_mistake(tmp_path):
    port = free_port()
    first = Job(tmp_path, "-n", 1, "--no-check", "--port", port, "echo up; exec sleep 60")
    first.wait_for("[worker 0] up")
    second = launch(tmp_path, "-n", 1, "--no-check", "--port", port, "echo up")
    assert second.status == 2
    assert f"port {port}: Address already in use" in second.last_words()
    first.popen.send_signal(signal.SIGTERM)
    assert first.wait() == 143


def test_files_of_the_folder_do_not_stand_in_for_the_librarys(tmp_path):
    for name in ("json", "random", "socket", "types", "resource"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the library')\n")
    job = launch(tmp_path, "-n", 1, shell(worker0="echo hi", other="exit 0"), cwd=tmp_path)
    assert job.status == 0 and "[worker 0] hi" in job.text(), job.text()

"""What --check finds on this machine."""

from gluon_launch.job.hosts import LOCAL
from gluon_launch.watching.preflight import judge
from launching import launch

TIME_BUDGET_S = 10


def test_the_check_names_the_launcher_that_reached_the_host(tmp_path):
    job = launch(tmp_path, "-n", 1, "--check", "true")
    assert job.status == 0 and "host       local  python" in job.last_words()


def test_a_warning_after_the_answer_of_a_check_is_passed_over():
    """Of the loader, as for a wrong LD_PRELOAD: it comes by another pipe than the answer."""
    lines = ['{"wrong": {}}', "ERROR: ld.so: object 'x.so' from LD_PRELOAD cannot be preloaded"]
    assert judge(LOCAL, {"python": "3.11"}, lines, 0, 0, ()).fixes == []


def test_a_function_of_login_shells_is_told_as_such(tmp_path):
    (tmp_path / ".bash_profile").write_text("module() { echo loaded; }\n")
    env = {"HOME": str(tmp_path)}
    job = launch(tmp_path, "-n", 1, "module load cuda && true", env=env)
    assert job.status == 2 and "module: command not found: a login shell knows it" in job.text()
    job = launch(tmp_path, "-n", 1, "-s", 0, "bash -lc 'module load cuda && true'", env=env)
    assert job.status == 0 and "[worker 0] loaded" in job.text(), job.text()


def test_the_check_looks_where_the_job_will(tmp_path):
    """With its PATH, and from its folder."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("#!/bin/sh\necho hi\n")
    (tmp_path / "bin" / "tool").chmod(0o755)
    path = f"PATH={tmp_path / 'bin'}:/usr/bin:/bin"
    job = launch(tmp_path, "-n", 1, "--env", path, "tool", "x")
    assert job.status == 0 and "[worker 0] hi" in job.text(), job.text()

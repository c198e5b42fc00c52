"""A program that cannot be started: which status, and what is told."""

import os
import resource
import subprocess
import sys

import pytest

from launching import ROOT, launch

TIME_BUDGET_S = 15


def script(folder, first_line, mode=0o755):
    (folder / "x.sh").write_text(first_line + "\nexit 0\n")
    (folder / "x.sh").chmod(mode)
    return folder / "x.sh"


@pytest.mark.parametrize(
    "first_line, mode, status, hint",
    [
        ("#!/bin/sh", 0o644, 126, "not executable"),  # EACCES
        ("exit 0", 0o755, 126, "put its interpreter in front"),  # ENOEXEC
        ("#!/no/such/shell", 0o755, 126, "put its interpreter in front"),  # ENOENT, of another file
        (None, 0, 127, "command not found"),
    ],
)
def test_the_status_is_the_one_a_shell_gives(tmp_path, first_line, mode, status, hint):
    program = script(tmp_path, first_line, mode) if first_line else tmp_path / "x.sh"
    job = launch(tmp_path, "-n", 1, "--no-check", program, "word")
    assert job.status == status, job.text()
    assert hint in job.last_words()


def with_few_files(*arguments, **options):
    return subprocess.run(
        [sys.executable, ROOT / "tools/launch.py", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)),
        **options,
    )


def test_too_many_open_files_is_not_a_missing_command():
    done = with_few_files("-n", "30", "-s", "1", "--no-check", "sleep", "30")
    assert done.returncode == 1, done.stderr
    assert "Too many open files" in done.stderr and "raise `ulimit -n`" in done.stderr
    assert "command not found" not in done.stderr


def test_a_launcher_that_runs_out_of_files_says_so_in_one_line(tmp_path):
    (tmp_path / "ssh").write_text('#!/bin/sh\ncase "$*" in *-G*) ;; *) exec sleep 5;; esac\n')
    (tmp_path / "ssh").chmod(0o755)
    hosts = ",".join(f"127.0.0.{i}" for i in range(1, 40))
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = with_few_files("-n", "1", "-H", hosts, "true", env={**os.environ, "PATH": path})
    assert done.returncode == 2, done.stderr
    assert "[launch] ssh: Too many open files" in done.stderr and "Traceback" not in done.stderr


def test_an_ssh_that_cannot_be_run_is_told_in_one_line(tmp_path):
    (tmp_path / "ssh").write_text("no program\n")
    (tmp_path / "ssh").chmod(0o755)
    env = {"PATH": str(tmp_path)}
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "true", env=env)
    assert job.status == 2
    assert job.text() == "[launch] ssh: Exec format error\n"


@pytest.mark.parametrize("cause", ["ssh: connect to host d1: refused", "SyntaxError: invalid"])
def test_no_greeting_and_no_traceback_hides_the_cause_that_mpirun_passes_on(tmp_path, cause):
    greeting = "Welcome\nTraceback (most recent call last):\n  File x"
    says = f"[ $1 = --version ] && echo Open MPI || printf '{greeting}\n{cause}\n--\nend\n' >&2"
    (tmp_path / "mpirun").write_text(f"#!/bin/sh\n{says}\nexit 1\n")
    (tmp_path / "mpirun").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    job = launch(tmp_path, "-n", 1, "--launcher", "mpi", "-H", "d1,", "true", env=env)
    assert job.status == 255 and f"d1: no connection: {cause}\n" in job.text(), job.text()

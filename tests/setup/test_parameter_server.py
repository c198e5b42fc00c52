"""Servers and the scheduler: they serve without the Python half of MXNet, and end with the job."""

import os
import subprocess
import sys

import pytest

from launching import PROGRAMS, ROOT, launch

TIME_BUDGET_S = 20


def call(*options, **variables):
    """What becomes of a process that asks whether it is to serve."""
    code = "from gluon_dist.setup.parameter_server import serve_if_told\n"
    code += "serve_if_told()\nprint('returned')"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    environment.update(variables, PYTHONPATH=str(ROOT / "cifar10_dist"))
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "kind, kept, importing",
    [("dist_sync", 1.0, {"worker 0"}), ("dist_async", 0.75, {"worker 0", "server 0"})],
)
def test_a_server_imports_mxnet_only_to_update_the_weights(tmp_path, kind, kept, importing):
    program = (sys.executable, PROGRAMS / "push_once.py", kind)
    job = launch(tmp_path, "-n", 1, "-s", 1, *program)
    assert job.status == 0 and f"[worker 0] pulled {[kept] * 3}\n" in job.stdout, job.text()
    lines = [line for line in job.stdout.splitlines() if line.endswith(" imports mxnet")]
    assert {line[1:].split("]")[0] for line in lines} == importing


def test_a_worker_and_a_process_without_a_launcher_return_at_once():
    for variables in ({}, {"DMLC_ROLE": "worker"}):
        assert call(**variables).stdout == "returned\n"


def test_where_mxnet_is_not_installed_a_server_returns_for_the_import_to_say_so():
    assert call("-S", DMLC_ROLE="server").stdout == "returned\n"


def test_a_server_that_cannot_start_says_why():
    done = call(DMLC_ROLE="server")
    assert done.returncode != 0 and "DMLC_" in done.stderr, done

"""Hosts are asked for their GPUs; what does not fit together is told before a job starts."""

import json
import os
import re
import socket
import subprocess
import sys

import pytest

from gluon_launch.job.hosts import Host
from gluon_launch.watching import preflight
from launching import launch

TIME_BUDGET_S = 20
HAS_DRIVER = os.path.exists("/proc/driver/nvidia/gpus")
SMI = "echo 'GPU 0: NVIDIA A100 (UUID: GPU-1)'; echo 'GPU 1: NVIDIA A100 (UUID: GPU-2)'"


@pytest.fixture
def with_smi(tmp_path, monkeypatch):
    """A function that puts an nvidia-smi on PATH."""

    def put(act):
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{act}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return put


def answer(program=""):
    """What the check of a host answers here."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = ("/", "-", program, "-", f"127.0.0.1:{server.getsockname()[1]}", "-")
        command = [sys.executable, "-I", preflight.SOURCE, *words]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


@pytest.mark.skipif(HAS_DRIVER, reason="the driver's own files count")
@pytest.mark.parametrize(
    "act, count", [(SMI, 2), ("echo No devices were found; exit 6", 0), ("exit 0", 0)]
)
def test_nvidia_smi_counts_the_gpus(with_smi, act, count):
    with_smi(act)
    assert answer()["gpus"] == count


@pytest.mark.skipif(HAS_DRIVER, reason="a machine without GPUs is needed")
def test_a_host_without_a_driver_has_no_gpus_and_mxnet_is_not_loaded_for_that():
    found = answer(sys.executable)
    assert found["gpus"] == 0 and found["mxnet"] and found["cuda"] is None


@pytest.mark.skipif(HAS_DRIVER, reason="MXNet without CUDA is needed")
def test_mxnet_without_cuda_on_a_host_with_gpus_is_told(tmp_path, with_smi):
    with_smi(SMI)
    job = launch(tmp_path, "-n", 1, "--check", sys.executable, "x.py")
    assert job.status == 0 and re.search(r" mxnet  gpus  command(.|\n)* 1\.9\.1  2 ", job.stderr)
    assert "localhost has GPUs, but its MXNet has no CUDA: `make setup DEVICE=gpu`" in job.stderr


@pytest.mark.parametrize(
    "said, wrong", [(b"python==3.8\nmxnet==1.9.1\n", None), (None, "python: no answer within 60 s")]
)
def test_mxnet_that_loads_for_long_is_no_reason_to_refuse_a_host(monkeypatch, said, wrong):
    """As with CUDA, from a disk on the network. Nobody waits here: the time is over at once."""

    def run(command, timeout, **_):
        raise subprocess.TimeoutExpired(command, timeout, said)

    monkeypatch.setattr(subprocess, "run", run)
    check = {}
    exec(preflight.SOURCE.read_text().rpartition("\nmain(")[0], check)
    assert check["check_mxnet"]("python", 2)[1] == wrong


def findings(**hosts):
    """What was found on hosts: of each the number of its GPUs, and whether MXNet has CUDA."""
    lines = {
        name: [json.dumps({"wrong": {}, "gpus": gpus, "cuda": cuda})]
        for name, (gpus, cuda) in hosts.items()
    }
    ready = {"python": "3.11"}
    return [preflight.judge(Host(name), ready, said, 0, 0, ()) for name, said in lines.items()]


def test_hosts_that_differ_in_gpus_are_told_in_a_line():
    differing = findings(a=(4, True), b=(4, True), c=(2, True), d=(0, None))
    assert preflight.about_gpus(differing) == [
        "the hosts differ in GPUs: 4 on a, b; 2 on c; none on d"
    ]
    without = findings(a=(4, False), b=(4, False))
    (line,) = preflight.about_gpus(without)
    assert line.startswith("a, b have GPUs, but their MXNet has no CUDA")
    many = findings(**{f"h{n}": (8, True) for n in range(9)}, x=(0, None))
    assert "8 on h0, h1, h2, h3 and 5 more; none on x" in preflight.about_gpus(many)[0]


def test_nothing_is_said_of_hosts_that_are_alike():
    assert preflight.about_gpus(findings(a=(0, None), b=(0, None))) == []
    assert preflight.about_gpus(findings(a=(8, True), b=(8, True), c=(8, None))) == []

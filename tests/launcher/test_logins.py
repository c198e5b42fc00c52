"""Logins that fail or answer in another way, by a program in ssh's place."""

import json
import os
import queue
import re
import shutil
import sys
import types

import pytest

from gluon_launch.remote.protocol import from_wire
from gluon_launch.starting.ways import WAYS
from gluon_launch.watching.connection import Connection
from launching import Job, launch

TIME_BUDGET_S = 20


def test_without_an_ssh_client_one_line_says_so(tmp_path):
    (tmp_path / "bin").mkdir()
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "true", env={"PATH": str(tmp_path / "bin")})
    assert job.status == 2
    assert job.text() == "[launch] ssh is not installed here: apt-get install openssh-client\n"


def false_ssh(folder, *lines):
    """Put a program in front of PATH that takes ssh's place; its ``$last`` is the command."""
    file = folder / "ssh"
    file.write_text("\n".join(["#!/bin/sh", "for last; do :; done", *lines]))
    file.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


NO_SETTINGS = 'for word; do [ "$word" != -G ] || exit 0; done'  # the user's own, which -G asks for


@pytest.mark.long
def test_a_login_that_a_busy_server_drops_is_tried_again(tmp_path):
    dropped = "echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255"
    count = f"echo x >> {tmp_path}/logins; [ $(wc -l < {tmp_path}/logins) -gt 2 ]"
    act = f"{count} || {{ {dropped}; }}"
    env = false_ssh(tmp_path, NO_SETTINGS, act, 'exec sh -c "$last"')
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "--no-check", "echo hi", env=env, cwd="/tmp")
    assert job.status == 0 and "[worker 0 d1] hi" in job.text(), job.text()


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is not installed")
def test_an_ssh_that_is_to_be_silent_still_tells_the_cause(tmp_path):
    (tmp_path / "config").write_text("Host d1\nHostName 127.0.0.1\nPort 1\nLogLevel QUIET\n")
    options = [
        f"--ssh-option={word}" for word in (f"-F{tmp_path}/config", "-oLogLevel=QUIET", "-q")
    ]
    job = launch(tmp_path, "-n", 1, "-H", "d1,", *options, "--no-check", "true")
    assert job.status == 255 and "d1: no connection: ssh: connect to host" in job.last_words()


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("ssh"), reason="ssh is not installed")
def test_a_jump_host_that_cannot_be_reached_is_the_cause(tmp_path):
    jump = "--ssh-option=-oProxyJump=127.0.0.1:1"
    job = launch(tmp_path, "-n", 1, "-H", "d1,", jump, "--no-check", "true")
    assert job.status == 255
    assert "d1: no connection: ssh: connect to host 127.0.0.1 port 1" in job.last_words()


def test_a_greeting_without_an_end_is_passed_over(tmp_path):
    env = false_ssh(tmp_path, "printf title", 'exec sh -c "$last"')
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "--no-check", "echo hi", env=env, cwd="/tmp")
    assert job.status == 0 and "[worker 0 d1] hi" in job.text()


@pytest.mark.parametrize("greeting", ["news", "request", 5, "line", "registration", "exit"])
def test_a_greeting_like_a_report_is_passed_over(tmp_path, greeting):
    text = json.dumps({"report": greeting, "number": 1})
    env = false_ssh(tmp_path, NO_SETTINGS, f"echo '{text}'", 'eval "$last"')
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "--no-check", "true", env=env)
    assert job.status == 0, job.text()


def test_an_input_of_ssh_that_something_else_has_read_is_told(tmp_path):
    env = false_ssh(tmp_path, NO_SETTINGS, "head -c 100 >/dev/null", 'exec sh -c "$last"')
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "true", env=env)
    assert job.status == 255 and "d1: no connection: what was sent first has not" in job.stderr
    assert "hint: something else reads the input that ssh passes on" in job.stderr


def test_names_travel_as_their_bytes(monkeypatch):
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("latin-1"))  # an older locale
    sent = []
    writer = types.SimpleNamespace(put=lambda _, text: sent.append(json.loads(text)))
    connection = types.SimpleNamespace(_writer=writer, _write=None)
    name = "ü".encode().decode("latin-1")
    Connection.order(connection, "start", cwd=name, command=[name], env={"A": name}, stdin="…")
    names = {"cwd": "ü", "command": ["ü"], "env": {"A": "ü"}}
    assert sent == [{**names, "stdin": "…", "order": "start"}] and from_wire("ü") == "ü"


def test_a_login_that_ended_is_given_up_though_something_holds_its_output():
    """As what a ProxyCommand has left behind; the cause is what ssh said."""
    argv = ["sh", "-c", "echo it is denied >&2; sleep 300 & exit 255"]
    connection = Connection("d1", WAYS["ssh"], argv, events := queue.Queue())
    assert events.get(timeout=20)[1]["text"] == "it is denied"
    connection.popen.wait()
    connection.give_up("no answer within 30 s")
    assert events.get(timeout=20)[1] == {"report": "closed", "status": 255}
    assert connection.why_closed() == "d1: no connection: it is denied"


@pytest.mark.long
def test_a_host_that_takes_no_orders_holds_up_nothing(tmp_path):
    """It answers, then reads no more: 300 kB of orders do not fit into the pipe to it."""
    ready = {"hostname": "d1", "python": "3.6", "executable": "p", "processors": 1, "ssh": None}
    ready.update(machine=None, uid=0)
    answers = [{"report": "ready", **ready}, {"report": "port", "port": 9}]
    lines = [f"echo '{json.dumps(answer)}'; sleep 1" for answer in answers]
    env = false_ssh(tmp_path, NO_SETTINGS, *lines, "exec sleep 60")
    job = Job(tmp_path, "-n", 3, "-H", "d1,", "--no-check", "--env", "BIG", "true",
              env={**env, "BIG": "x" * 100_000})  # fmt: skip
    assert job.wait(25) == 255
    assert "not heard of for 10 s" in job.last_words()


@pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")
def test_the_check_tells_that_a_host_has_no_rsync(tmp_path):
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "python3").symlink_to(os.path.realpath(sys.executable))
    for name in ("mkdir", "sh"):
        (tmp_path / "few" / name).symlink_to(shutil.which(name))
    there = f'while [ "$1" != d1 ]; do shift; done; shift; PATH={tmp_path}/few exec /bin/sh -c "$*"'
    env = false_ssh(tmp_path, NO_SETTINGS, there)
    options = ("-n", 1, "-H", "d1,", "--sync-dst-dir", tmp_path / "to", "--check")
    job = launch(tmp_path, *options, "./x.sh", env=env, cwd=tmp_path / "few")
    assert job.status == 2, job.text()
    assert re.search("d1: rsync ended with status .*rsync: not found", job.last_words())
    assert "the host needs rsync: apt-get install rsync" in job.last_words()

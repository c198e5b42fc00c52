"""What is printed, kept in logs, and hidden."""

import fcntl
import json
import os
import re
import subprocess
import sys
import time

import pytest

from gluon_launch.options.plan import plan
from gluon_launch.telling.report import hint
from launch import parse_args
from launching import ROOT, Job, commands, launch, shell

TIME_BUDGET_S = 35
LAUNCH = [sys.executable, str(ROOT / "tools" / "launch.py")]


def test_utf8_and_carriage_returns_keep_their_prefix(tmp_path):
    program = "import sys, time; w = sys.stdout.buffer.write; f = sys.stdout.flush\n"
    program += (
        "w('grün€'.encode()[:-1]); f(); time.sleep(0.3); w('€\\n'.encode()[-2:] + b'\\xff\\n')\n"
    )
    program += "w(b'10%\\r20%\\r'); w(b'99%\\r'); w(b'100%\\r\\nend'); f()\n"
    (tmp_path / "p.py").write_text(program)
    command = ["--no-check", "--show", "worker", "python", tmp_path / "p.py"]
    job = launch(tmp_path, "-n", 1, *command)
    lines = job.out.read_bytes().decode().splitlines()
    assert lines == [f"[worker 0] {text}" for text in ("grün€", "\\xff", "10%", "100%", "end")]


def test_what_waits_for_the_end_of_its_line_is_shown_and_kept(tmp_path):
    act = shell(worker0="printf 10; until [ -e go ]; do sleep 0.1; done; printf '\\r20\\nend'")
    job = Job(tmp_path, "-n", 1, "--no-check", "--job-dir", "logs", act, cwd=tmp_path)
    job.wait_for("[worker 0] 10\n")
    (tmp_path / "go").touch()
    job.finish(30)
    assert (job.status, job.stdout) == (0, "[worker 0] 10\n[worker 0] 20\n[worker 0] end\n")
    assert (tmp_path / "logs" / "worker-0.log").read_bytes() == b"10\r20\nend\n"


def test_only_what_is_asked_for_is_shown_with_its_time(tmp_path):
    options = ("--no-check", "--timestamps", "--show", "worker:1,server:*")
    job = launch(tmp_path, "-n", 2, *options, "echo hi; exit 0")
    lines = [re.sub(r"\d", "0", line[:8]) + line[8:] for line in job.stdout.splitlines()]
    expected = [f"00:00:00 [{who}] hi" for who in ("server 0", "server 1", "worker 1")]
    assert sorted(lines) == expected


def test_the_log_folder_has_a_file_a_process_and_job_json(tmp_path):
    logs = tmp_path / "logs"
    command = shell(worker1="echo hi; exit 5", other="sleep 30")
    launch(tmp_path, "-n", 2, "--no-check", "--job-dir", logs, command)
    names = {"scheduler.log", "server-0.log", "server-1.log", "worker-0.log", "worker-1.log"}
    assert {path.name for path in logs.iterdir()} == names | {"job.json"}
    assert (logs / "worker-1.log").read_text() == "hi\n"
    kept = json.loads((logs / "job.json").read_text())
    assert kept["status"] == 5
    table = {row["name"]: row["status"] for row in kept["attempts"][0]["processes"]}
    assert table["worker-1"] == 5
    assert table["scheduler"] == 143


@pytest.mark.parametrize("options", ["--log-dir a", "--job-dir a --log-dir a", "--job-dir=a"])
def test_the_older_name_of_the_log_folder_works_in_front_of_the_command_only(options):
    args = parse_args(["-n", "1", *options.split(), "train.py", "--log-dir", "b"])
    assert args.job_dir == "a" and args.command == ["train.py", "--log-dir", "b"]
    assert parse_args(["-n", "1", "train.py", "--log-dir", "b"]).job_dir is None


def test_two_jobs_do_not_mix_their_logs(tmp_path):
    """The first one is killed in the end: its lock goes with it."""
    options = ("-n", 1, "--no-check", "--job-dir", tmp_path / "logs")
    first = Job(tmp_path, *options, "echo first; exec sleep 60")
    first.wait_for("[worker 0] first")
    second = launch(tmp_path, *options, "echo second")
    assert second.status == 2
    assert "another job keeps its logs there: name another" in second.last_words()
    assert len(second.text().splitlines()) == 1
    first.popen.kill()
    first.wait()
    assert not first.left(15)
    assert (tmp_path / "logs" / "worker-0.log").read_text() == "first\n"
    assert launch(tmp_path, *options, "true").status == 0


def test_the_lock_of_a_log_folder_holds_between_hosts(tmp_path):
    """So it is on a file: NFS locks folders on each host by itself."""
    with open(tmp_path / "scheduler.log", "ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        job = launch(tmp_path, "-n", 1, "--no-check", "--job-dir", tmp_path, "true")
    assert job.status == 2 and "another job keeps its logs there" in job.last_words()


def test_a_full_disk_ends_the_log_not_the_job(tmp_path):
    (tmp_path / "worker-0.log").symlink_to("/dev/full")
    command = shell(worker0="echo one; sleep 0.2; echo two", other="exit 0")
    job = launch(tmp_path, "-n", 1, "--no-check", "--job-dir", tmp_path, command)
    assert job.status == 0
    assert job.out.read_text().count("[worker 0]") == 2
    assert "No space left on device: this log ends here" in job.last_words()


def test_nobody_sees_a_secret(tmp_path):
    secret = "kB7-very-secret"
    ours = f"DB_PASSWORD:{secret}2"  # as it was typed
    options = ("--env", "TOKEN", "--env-worker", ours, "--job-dir", tmp_path / "l")
    command = "echo I have $TOKEN and $DB_PASSWORD; echo $TOKEN >&2; "
    command += f"until [ -e {tmp_path}/seen ]; do sleep 0.1; done; exit 3"
    job = Job(tmp_path, "-n", 1, "--no-check", *options, command, env={"TOKEN": secret})
    job.wait_for("I have")
    seen = commands()
    (tmp_path / "seen").touch()
    assert ours in seen
    seen = seen.replace(ours, "")
    assert job.wait() == 3
    kept = "".join(path.read_text() for path in (tmp_path / "l").iterdir())
    assert "[worker 0] I have *** and ***" in job.out.read_text()
    assert secret not in seen + kept + job.text()


def test_hiding_a_secret_leaves_job_json_whole(tmp_path):
    """A secret like a part of a number there; one that JSON writes in another way."""
    env = {"TOKEN": str(int(time.time()))[:8], "DB_PASSWORD": 'ab"cd1234'}
    options = ("--no-check", "--job-dir", tmp_path / "l")
    job = launch(tmp_path, "-n", 1, *options, 'echo "$DB_PASSWORD" >&2; exit 3', env=env)
    assert job.status == 3
    kept = (tmp_path / "l" / "job.json").read_text()
    assert json.loads(kept)["started"] > 1e9
    assert "cd1234" not in kept + job.text()


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])  # C: of ASCII alone, as GBK is of its own
def test_a_word_that_is_not_text_is_passed_on_and_kept(tmp_path, locale):
    word = os.fsdecode(b"x\xff")
    (tmp_path / word).write_text("here\n")
    options = ("--no-check", "--job-dir", tmp_path / "l")
    env = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    job = launch(tmp_path, "-n", 1, *options, "cat", word, cwd=tmp_path, env=env)
    assert job.status == 0 and "[worker 0] here" in job.text(), job.text()
    assert json.loads((tmp_path / "l" / "job.json").read_text())["command"] == ["cat", word]
    job = launch(tmp_path, "-n", 1, "--dry-run", "cat", word, env=env)
    assert job.status == 0 and "cat $'x\\377'" in job.out.read_text()


@pytest.mark.parametrize("value, shown", [("", False), ("0", False), ("1", True)])
def test_only_a_number_makes_ps_lite_verbose(value, shown):
    args = parse_args(["-n", "1", "--env", f"PS_VERBOSE={value}", "x"])
    assert plan(args, {}).shows_ps_lite == shown
    assert plan(parse_args(["-n", "1", "x"]), {"PS_VERBOSE": value}).shows_ps_lite == shown


def test_a_dry_run_shows_no_secret_and_touches_no_host():
    options = ["-n", "2", "-H", "d8,d9", "--dry-run", "--env", "API_KEY=abcdef"]
    command = [*LAUNCH, *options, "python", "x.py", "--password", "hunter22", "a b"]
    out = subprocess.run(command, check=True, text=True, capture_output=True, timeout=10).stdout
    assert "abcdef" not in out
    assert "hunter22" not in out
    assert 'API_KEY="$API_KEY" ' in out
    assert "python x.py --password '***' 'a b'" in out


@pytest.mark.long
def test_it_works_inside_a_notebook_cell(tmp_path):
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    line = f"%run {ROOT}/tools/launch.py -n 2 --no-check --show worker --color never echo hello"
    notebook = new_notebook(cells=[new_code_cell(line)])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(output.get("text", "") for output in notebook.cells[0].outputs)
    end, *lines = sorted(printed.splitlines())
    assert lines == ["[worker 0] hello", "[worker 1] hello"] and end.startswith(
        "[launch] 2 workers"
    )


def test_a_closed_pipe_stops_the_job_without_a_traceback(tmp_path):
    command = [*LAUNCH, "-n", "1", "--no-check", "while echo hi; do sleep 0.05; done"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode()
    assert process.returncode == 141
    assert "Traceback" not in said
    assert re.search(
        r"\[launch\] stopped by SIGPIPE after \d+ s: no worker saved on request\n$", said
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-n", "200", "--dry-run", "true"]])
def test_the_head_of_what_is_printed_is_no_mistake(arguments):
    with subprocess.Popen([*LAUNCH, *arguments], stdout=-1, stderr=-1) as process:
        process.stdout.close()  # as `| head` does
        assert process.wait(20) in (0, 141)  # argparse leaves it at 0
        assert not process.stderr.read()


def test_an_interrupt_before_anything_is_started_brings_no_traceback(tmp_path):
    """Here ssh does not answer what its settings are."""
    os.mkfifo(tmp_path / "asked")
    (tmp_path / "ssh").write_text(f"#!/bin/sh\necho >{tmp_path}/asked\nexec sleep 60\n")
    (tmp_path / "ssh").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    job = Job(tmp_path, "-n", 1, "-H", "d1,", "--dry-run", "true", env=env)
    (tmp_path / "asked").read_text()
    job.interrupt()
    assert (job.wait(), job.text(), job.left()) == (130, "", {})


def test_a_full_disk_under_standard_output_stops_nothing(tmp_path):
    command = [*LAUNCH, "-n", "1", "--no-check", shell(worker0="echo hi; sleep 1; exit 3")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 3
    assert "No space left on device: nothing more is shown" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_pipe_whose_writes_are_not_to_block_loses_nothing():
    """As a pipe that a program of Node.js shares."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.write(writing, bytes(1 << 20))
    command = [*LAUNCH, "-n", "1", "--no-check", shell(worker0="echo hi")]
    with subprocess.Popen(command, stdout=writing, stderr=-1, text=True) as process:
        os.close(writing)
        assert "1 worker ended well" in process.stderr.readline()
        with open(reading, "rb") as pipe:
            assert b"\0[worker 0] hi\n" in pipe.read()


def test_a_full_disk_under_a_dry_run_is_told_in_one_line():
    with open("/dev/full", "w") as full:
        command = [*LAUNCH, "-n", "1", "--dry-run", "true"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    line = "launch.py: error: [Errno 28] No space left on device\n"
    assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.parametrize(
    "text, status, word",
    [
        ("ModuleNotFoundError: No module named 'mxnet'", 1, "--check"),
        ("OSError: [Errno 98] Address already in use", 1, "another program has the port"),
        ("mxnet.base.MXNetError: cudaMalloc failed: out of memory", 1, "memory ran out"),
        ("", 137, "memory ran out"),
        ("sh: 1: trian.py: not found", 127, "command not found"),
        ("sh: 1: module: not found", 127, "bash -lc"),
        ("CondaError: Run 'conda init' before 'conda activate'", 1, "bash -lc"),
        ("No space left on device", 1, "the disk is full"),
    ],
)
def test_the_usual_causes_have_a_hint(text, status, word):
    assert word in hint(text, status)

"""What the launcher prints, keeps, passes on and refuses."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gluon_launch.job.environment import process_environment
from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.statuses import UsageError
from gluon_launch.job.variables import OWN, overridden
from gluon_launch.options.plan import plan
from gluon_launch.remote.host import own_address
from gluon_launch.remote.protocol import from_wire
from gluon_launch.telling.report import hint
from gluon_launch.watching.connection import Connection
from gluon_launch.watching.preflight import judge
from launch import parse_args
from launching import ROOT, SUM_RANKS, Job, commands, free_port, launch, shell

TIME_BUDGET_S = 110
LAUNCH = [sys.executable, str(ROOT / "tools" / "launch.py")]
text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
words = st.lists(text)


@given(st.from_regex(r"[^-\0\s][^\0]*", fullmatch=True), words)
def test_the_command_line_of_the_program_is_left_alone(program, rest):
    assert parse_args(["-n", "2", program, *rest]).command == [program, *rest]


@settings(max_examples=3)
@example([])
@given(st.lists(text, min_size=30))
def test_any_words_reach_the_program_as_they_were(rest):
    program = "import os, sys; print([os.fsencode(a) for a in sys.argv[1:]])"
    options = ("-n", "1", "--no-check", "--show", "worker:0")
    command = [*LAUNCH, *options, sys.executable, "-c", program, *rest]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=30)
    assert done.stdout.decode() == f"[worker 0] {[os.fsencode(word) for word in rest]}\n"


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_options_of_the_program_stay_its_own(dashes):
    job = plan(parse_args(["-n", "2", *dashes, "train.py", "-s", "5", "-n", "9", "--sync", "x"]))
    assert job.command == ["train.py", "-s", "5", "-n", "9", "--sync", "x"]
    assert (job.count("worker"), job.count("server")) == (2, 2)


def test_a_plan_leaves_the_parsed_options_as_they_are():
    words = ["-n", "2", "-H", "d1,", "--sync-dst-dir", "~/a", "--check", "--", "x"]
    args = parse_args(words)
    plan(args)
    assert vars(args) == vars(parse_args(words))


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["-n", "0", "x"], "-n/--num-workers: '0' is not a whole number from 1"),
        (["-n", "-3", "x"], "-n"),
        (["-n", "2", "-s", "0", "--p3", "x"], "--p3 is about servers: leave it out with -s 0"),
        (["-n", "2", "-s", "0", "--show", "server:0", "x"], "--show server: there is none"),
        (["-n", "2", "-s", "900", "x"], "-s 900: for 2 workers that is too many"),
        (["-n", "2"], "no command to run"),
        (["-n", "2", ""], "the command begins with an empty word: is a variable not set?"),
        (["-n", "2", "", "train.py"], "the command begins with an empty word"),
        (["-n", "2", "--sync", "d", "x"], "unknown option '--sync'; --help lists the options"),
        (["-n", "2", "--num-server=2", "x"], "'--num-server'; did you mean --num-servers?"),
        (["-n", "2", "--host-ip", "10.0.0.1", "x"], "did you mean --interface?"),
        (["-n", "2", "--launcher", "mesos", "x"], "--launcher mesos: available are local, ssh,"),
        (["-n", "2", "--queue", "q", "x"], "--queue is for --launcher yarn, not local"),
        (["-n", "2", "--worker-memory", "2", "x"], "'2' is not like 2g or 512m"),
        (["-n", "2", "--launcher", "yarn", "--files", "no", "x"], "no: no such file here, to be b"),
        (["-n", "2", "--launcher", "yarn", "--launcher-option=-shell_env A=1", "x"], "--env NAME"),
        (["-n", "2", "--launcher", "ssh", "x"], "--launcher ssh needs the hosts"),
        (["-n", "2", "-H", "no/such/file", "x"], "no/such/file: No such file"),
        (["-n", "2", "-H-oProxyCommand=x,d2", "x"], "is not a host name"),
        (["-n", "2", "-H", "d1,d2;x", "x"], "is not a host name"),
        (["-n", "2", "-H", "d1,", "--placement", "fill", "x"], "2 workers, but the hosts have 1"),
        (["-n", "2", "-H", "a,", "--sync-dst-dir=~/", "x"], "name a folder"),
        (["-n", "2", "-H", "a,", "--sync-dst-dir=~bob/x", "x"], "name a folder"),
        (["-n", "2", "--env", "1X=2", "x"], "'1X' is not the name of a variable"),
        (["-n", "2", "--env", "NOT_SET_AT_ALL", "x"], "NOT_SET_AT_ALL is not set here"),
        (["-n", "2", "--env", "DMLC_NUM_SERVER:4", "x"], "--env DMLC_NUM_SERVER (use -s): the l"),
        (["-n", "2", "--env-worker", "DMLC_ROLE=server", "x"], "--env DMLC_ROLE: the launcher s"),
        (
            ["-n", "2", "--p3", "--env", "DMLC_PS_VAN_TYPE=zmq", "x"],
            "--p3 and DMLC_PS_VAN_TYPE=zmq",
        ),
        (["-n", "2", "--port", "70000", "x"], "'70000' is not a port"),
        (["-n", "2", "--timeout", "-1", "x"], "'-1' is not a number of seconds"),
        (["-n", "2", "--timeout", "nan", "x"], "'nan' is not a number of seconds"),
        (["-n", "2", "--show", "boss", "x"], "'boss' is not like worker:0"),
        (["-n", "2", "--show", "worker:1,worker:9", "x"], "--show worker:9: the last is worker:1"),
        (["-n", "2", "--show", "scheduler:1", "x"], "--show scheduler:1: the last is scheduler:0"),
        (["-n", "2", "-H", "a,", "--ssh-option", "x", "x"], "--ssh-option 'x'"),
        (["-n", "2", "-H", "a,", "--ssh-option=-oStrictHostKeyChecking=no", "x"], "always checked"),
        (
            ["-n", "2", "--ssh-option", "-Fx", "x"],
            "between if it begins with a dash",
        ),
        (["-n", "2", "--job-dir", "/dev/null/x", "x"], "--job-dir /dev/null/x: Not a directory"),
        (
            ["-n", "2", "--log-dir", "a", "--job-dir", "b", "x"],
            "--job-dir b and --log-dir a are two names of one option: give one folder",
        ),
        (["-n", "2", "--logdir", "a", "x"], "unknown option '--logdir'; did you mean --job-dir?"),
        (["-n", "2", "no_such_program", "x"], "no_such_program: command not found"),
        (["-n", "2", "/etc/passwd"], "/etc/passwd: command not found"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, why, tmp_path):
    done = subprocess.run([*LAUNCH, *arguments], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [
        line for line in done.stderr.splitlines() if "FAILED" not in line and "host  " not in line
    ]
    assert why in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line, said",
    [
        ("-np 2 python x.py", "-np: here that is -n N, the number of workers"),
        (
            "--nproc_per_node=2 x.py",
            "--nproc_per_node: here that is -n N, the workers of all hosts",
        ),
        ("--nnodes 2 x.py", "--nnodes: here that is -H d1,d2 or -H FILE"),
        ("-n 2 --hosts d1,d2 x", "unknown option '--hosts': here that is -H d1,d2 or -H FILE"),
        ("--launchr ssh -n 2 x", "unknown option '--launchr'; did you mean --launcher?"),
        ("python x.py -n 2", "before the command: -n 2 python train.py"),
        ("-s 2 x", "required: -n/--num-workers, the number of workers: -n 2"),
    ],
)
def test_who_comes_from_another_launcher_is_told_the_right_form(line, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse_args(line.split())
    assert said in capsys.readouterr().err


TEXTS = "-H --launcher --sync-dst-dir --sync-exclude --ssh-option --interface --job-dir"


@pytest.mark.parametrize("flag", [*TEXTS.split(), "--env", "--env-worker", "--env-server"])
def test_a_variable_that_is_not_set_is_noticed_before_anything_starts(flag, tmp_path):
    command = [*LAUNCH, "-n", "1", "--no-check", flag, "", "touch", "started"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=30)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert flag in done.stderr and "'' is empty: is a variable not set?" in done.stderr
    assert not list(tmp_path.iterdir())


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
    command = "echo I have $TOKEN and $DB_PASSWORD; echo $TOKEN >&2; sleep 2; exit 3"
    job = Job(tmp_path, "-n", 1, "--no-check", *options, command, env={"TOKEN": secret})
    job.wait_for("I have")
    seen = commands()
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


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--check"]])
def test_a_folder_that_was_deleted_is_a_mistake(tmp_path, options):
    line = f'mkdir {tmp_path}/d && cd {tmp_path}/d && rmdir ../d && exec "$@"'
    command = ["sh", "-c", line, "sh", *LAUNCH, "-n", "1", *options, "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stderr == "launch.py: error: the folder you are in was deleted: cd to another\n"


@pytest.mark.parametrize("value, shown", [("", False), ("0", False), ("1", True)])
def test_only_a_number_makes_ps_lite_verbose(value, shown):
    args = parse_args(["-n", "1", "--env", f"PS_VERBOSE={value}", "x"])
    assert plan(args, {}).shows_ps_lite == shown
    assert plan(parse_args(["-n", "1", "x"]), {"PS_VERBOSE": value}).shows_ps_lite == shown


def test_without_an_ssh_client_one_line_says_so(tmp_path):
    (tmp_path / "bin").mkdir()
    job = launch(tmp_path, "-n", 1, "-H", "d1,", "true", env={"PATH": str(tmp_path / "bin")})
    assert job.status == 2
    assert job.text() == "[launch] ssh is not installed here: apt-get install openssh-client\n"


NO_SETTINGS = 'for word; do [ "$word" != -G ] || exit 0; done'  # the user's own, which -G asks for


def false_ssh(folder, *lines):
    """Put a program in front of PATH that takes ssh's place; its ``$last`` is the command."""
    file = folder / "ssh"
    file.write_text("\n".join(["#!/bin/sh", "for last; do :; done", *lines]))
    file.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


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


def test_a_dry_run_shows_no_secret_and_touches_no_host():
    options = ["-n", "2", "-H", "d8,d9", "--dry-run", "--env", "API_KEY=abcdef"]
    command = [*LAUNCH, *options, "python", "x.py", "--password", "hunter22", "a b"]
    out = subprocess.run(command, check=True, text=True, capture_output=True, timeout=10).stdout
    assert "abcdef" not in out
    assert "hunter22" not in out
    assert 'API_KEY="$API_KEY" ' in out
    assert "python x.py --password '***' 'a b'" in out


def test_variables_reach_the_roles_they_are_for(tmp_path):
    options = ["--env", "A=1", "--env", "B", "--env-worker", "C:x:y", "--env-server", "D=a=b c"]
    show = "echo A=$A B=$B C=$C D=$D attempt $LAUNCH_ATTEMPT of $LAUNCH_LOCAL_WORKERS"
    job = launch(tmp_path, "-n", 1, "--no-check", *options, show, env={"B": "ü 'q'"})
    assert "[worker 0] A=1 B=ü 'q' C=x:y D= attempt 1 of 1" in job.text()
    assert "[server 0] A=1 B=ü 'q' C= D=a=b c attempt" in job.text()
    assert "[scheduler] A=1 B=ü 'q' C= D= attempt" in job.text()


def test_a_stall_prints_the_stacks(tmp_path):
    (tmp_path / "wait.py").write_text("import time\ndef waits():\n    time.sleep(60)\nwaits()\n")
    options = ["--stall-timeout", 1.5, "--job-dir", tmp_path / "logs"]
    job = launch(
        tmp_path, "-n", 1, "--no-check", *options, f"true; python {tmp_path}/wait.py; true"
    )
    assert job.status == 124
    assert "--stall-timeout: no output from any process for 1.5 s" in job.last_words()
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


def test_what_the_launcher_sets_is_taken_from_nobody_else(tmp_path):
    places, names = ("127.0.0.1", 9, "127.0.0.1", 1, 1, "lo"), set()
    for servers in ("1", "0"):
        own = {"DMLC_ROLE": "server", "HOROVOD_RANK": "7", "DMLC_LOCAL": "1"}
        job = plan(parse_args(["-n", "1", "-s", servers, "--ignore-server-errors", "x"]), own)
        for process in job.processes:
            names.update(process_environment(job, process, *places))
    others = {"DMLC_LOCAL", "HOROVOD_GLOO_TIMEOUT_SECONDS"}  # which --env may set
    names.add("LAUNCH_PROGRESS")  # on a terminal
    names.add("LAUNCH_PREPARED")  # a supervisor adds it
    assert {n for n in names if re.match("DMLC_|LAUNCH_|HOROVOD_", n)} == {*OWN, *others}
    assert job.env["worker"] == {"DMLC_LOCAL": "1"}
    env = {"DMLC_NUM_SERVER": "4", "DMLC_ROLE": "worker"}
    job = launch(tmp_path, "-n", 1, "--no-check", "echo $DMLC_NUM_SERVER", env=env)
    assert "not taken from here: DMLC_NUM_SERVER (use -s), DMLC_ROLE" in job.last_words()
    assert "[worker 0] 1\n" in job.stdout


@pytest.mark.parametrize(
    "text, servers",
    [
        ("import mxnet\nimport horovod.mxnet as hvd\n", 0),
        ("from horovod import mxnet as hvd\n", 0),
        ("try:\n    import horovod.mxnet as hvd\nexcept ImportError:\n    hvd = None\n", 2),
        ("import horovodlike\n", 2),
    ],
)
def test_a_program_that_cannot_do_without_horovod_gets_no_servers(tmp_path, text, servers):
    script = tmp_path / "own program.py"
    script.write_text(text)
    for command in (["python", str(script), "--lr", "1"], [f"python '{script}' 2>&1"]):
        assert plan(parse_args(["-n", "2", *command]), {}).count("server") == servers
        assert plan(parse_args(["-n", "2", "-s", "1", *command]), {}).count("server") == 1


def test_containers_on_one_machine_share_its_processors():
    """Of three the first and the last are on one."""
    job = plan(parse_args(["-n", "3", "-s", "0", "--launcher", "yarn", "x"]), {})
    job.machines[job.hosts[2]] = job.hosts[0]
    workers = [p for p in job.processes if p.role == "worker"]
    found = [process_environment(job, p, "127.0.0.1", 9, "127.0.0.1", 8, 1) for p in workers]
    assert [env["OMP_NUM_THREADS"] for env in found] == ["4", "8", "4"]
    assert [env["LAUNCH_LOCAL_RANK"] for env in found] == ["0", "0", "1"]
    assert [env["LAUNCH_LOCAL_WORKERS"] for env in found] == ["2", "1", "2"]
    ring = [(env["HOROVOD_LOCAL_SIZE"], env["HOROVOD_CROSS_RANK"]) for env in found]
    assert ring == [("2", "0"), ("1", "1"), ("2", "0")]


@pytest.mark.parametrize("words", [["-H", "d1,"], []])
def test_no_option_is_advised_that_the_launcher_does_not_take(words):
    way = plan(parse_args(["-n", "1", *words, "x"]), {}).way
    advice = " (use --interface)" if words else ""
    assert overridden({"DMLC_NODE_HOST": "x"}, way.knows).endswith(f": DMLC_NODE_HOST{advice}")
    with pytest.raises(UsageError, match=re.escape(f"--env DMLC_NODE_HOST{advice}: the launcher")):
        plan(parse_args(["-n", "1", *words, "--env", "DMLC_NODE_HOST=x", "x"]), {})


def test_p3_leaves_the_users_water_mark():
    env = plan(parse_args(["-n", "1", "--p3", "x"]), {"DMLC_PS_WATER_MARK": "20"}).env["server"]
    assert env == {"DMLC_PS_VAN_TYPE": "p3", "DMLC_PS_WATER_MARK": "20"}


@pytest.mark.parametrize(
    "words, interface",
    [
        (["-H", "d1,"], "ib0,eth1"),
        (["-H", "d1,", "--interface", "eth2"], "eth2"),
        (["-H", "d1,", "--env", "DMLC_INTERFACE:eth3"], "eth3"),
        (["--launcher", "mpi"], "ib0,eth1"),
        ([], None),
    ],
)
def test_mxnets_variable_for_the_interface_is_heeded(words, interface):
    job = plan(parse_args(["-n", "1", *words, "x"]), {"DMLC_INTERFACE": "ib0, eth1"})
    assert job.interface == interface


def test_of_several_interfaces_the_first_that_is_there_is_used():
    assert own_address(None, "no0,lo,no1") == "127.0.0.1"
    with pytest.raises(OSError, match="No such device"):
        own_address(None, "no0,no1")


def test_the_help_names_every_variable_that_the_launcher_sets():
    job = plan(parse_args(["-n", "1", "x"]), {})
    places = ("127.0.0.1", 9, "127.0.0.1", 1, 1)
    names = {
        name for process in job.processes for name in process_environment(job, process, *places)
    }
    text = subprocess.run(
        [*LAUNCH, "--help-all"], check=True, text=True, capture_output=True
    ).stdout
    assert {name for name in names if name not in text} == {"PS_VERBOSE"}  # the launcher's own
    assert max(map(len, text.splitlines())) <= 100


def test_the_short_help_fits_on_a_screen_and_names_the_long_one(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse_args(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 45 and max(map(len, lines)) <= 100
    assert sum(" -n " in line and line.startswith("    ") for line in lines) >= 5
    assert lines[-1].endswith(" --help-all")


@pytest.mark.parametrize(
    "words, offered",
    [
        ("--ma", ["--max-restarts"]),
        ("--launcher s", ["ssh", "slurm", "sge"]),
        ("--placement ", ["round-robin", "fill"]),
        ("-n 2 some", ["some.py"]),
        ("--timeout ", []),
    ],
)
def test_a_shell_completes_options_their_values_and_files(words, offered, tmp_path, capsys):
    (tmp_path / "some.py").touch()
    with pytest.raises(SystemExit, match="0"):
        parse_args(["--completion"])
    given = " ".join(f"'{word}'" for word in ("launch.py", *words.split(" ")))
    asks = f"COMP_WORDS=({given}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _gluon_launch"
    lines = [capsys.readouterr().out, asks, 'echo "${COMPREPLY[@]}"']
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (offered, "")


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


def test_a_full_disk_under_standard_output_stops_nothing(tmp_path):
    command = [*LAUNCH, "-n", "1", "--no-check", shell(worker0="echo hi; sleep 1; exit 3")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode == 3
    assert "No space left on device: nothing more is shown" in done.stderr
    assert "Traceback" not in done.stderr


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


def test_files_of_the_folder_do_not_stand_in_for_the_librarys(tmp_path):
    for name in ("json", "random", "socket", "types", "resource"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the library')\n")
    job = launch(tmp_path, "-n", 1, shell(worker0="echo hi", other="exit 0"), cwd=tmp_path)
    assert job.status == 0 and "[worker 0] hi" in job.text(), job.text()


def test_a_tilde_that_the_shell_left_is_the_home_over_there(tmp_path):
    options = ("-n", 1, "-H", "d8,", "--dry-run", "--sync-dst-dir=~/a job", "true")
    said = launch(tmp_path, *options).text()
    assert "cd ~/'a job'\n" in said and said.count("~") == 1

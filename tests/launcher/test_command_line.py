"""What a command line means: options, the command behind them, mistakes, help."""

import os
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gluon_launch.job.environment import process_environment
from gluon_launch.options.plan import plan
from launch import parse_args
from launching import ROOT, launch

TIME_BUDGET_S = 25
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
        (["-n", "1", "-s", "900", "x"], "-s 900: for 1 worker that is too many"),
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
        (["-n", "2", "-H", "no/such/file", "x"], "'no/such/file': No such file"),
        (["-n", "2", "-H-oProxyCommand=x,d2", "x"], "is not a host name"),
        (["-n", "2", "-H", "d1,d2;x", "x"], "is not a host name"),
        (
            ["-n", "2", "-H", "d1,", "--placement", "fill", "x"],
            "2 workers, but the hosts have 1 slot",
        ),
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
        ("-np2 python x.py", "-np: here that is -n N, the number of workers"),
        ("-n 2 -np 2 python x.py", "-np: here that is -n N, the number of workers"),
        ("-n p python x.py", "-n/--num-workers: 'p' is not a whole number"),
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


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--check"]])
def test_a_folder_that_was_deleted_is_a_mistake(tmp_path, options):
    line = f'mkdir {tmp_path}/d && cd {tmp_path}/d && rmdir ../d && exec "$@"'
    command = ["sh", "-c", line, "sh", *LAUNCH, "-n", "1", *options, "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stderr == "launch.py: error: the folder you are in was deleted: cd to another\n"


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


def test_a_tilde_that_the_shell_left_is_the_home_over_there(tmp_path):
    options = ("-n", 1, "-H", "d8,", "--dry-run", "--sync-dst-dir=~/a job", "true")
    said = launch(tmp_path, *options).text()
    assert "cd ~/'a job'\n" in said and said.count("~") == 1

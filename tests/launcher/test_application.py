"""What the launcher asks of the program `yarn`; here of one that only does as it is told."""

import os
import time

import pytest
from toy_world import toy_yarn

from gluon_launch.job.statuses import UsageError
from gluon_launch.options.plan import plan
from gluon_launch.starting.yarn import request
from launch import parse_args
from launching import launch

TIME_BUDGET_S = 10
TAKES = "echo Submitted application application_1_1; exec sleep 60"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def asked(until="id"):
    """An application that was asked for."""
    job = plan(parse_args(["-n", "2", "--launcher", "yarn", "x"]), {})
    application = job.way.ask_for_hosts(job, print)
    end = time.monotonic() + 10
    while until not in application.known and time.monotonic() < end:
        time.sleep(0.01)
    return application


def test_what_keeps_yarn_from_telling_where_its_jars_are_is_told(folder):
    toy_yarn(folder, classpath="echo ERROR: JAVA_HOME is not set >&2; exit 1")
    job = launch(folder, "-n", 1, "--launcher", "yarn", "true", env={"PATH": os.environ["PATH"]})
    assert job.status == 2
    assert job.stderr == "[launch] yarn classpath: ERROR: JAVA_HOME is not set\n"


def test_a_second_ctrl_c_does_not_reach_what_takes_the_application_back(folder):
    """Ctrl-C is for all of a terminal's session."""
    toy_yarn(folder, jar=TAKES, application=f"cut -d' ' -f6 /proc/$$/stat > {folder}/session")
    asked().end(gently=False)
    assert int((folder / "session").read_text()) not in (0, os.getsid(0))


def test_containers_that_end_without_a_call_are_told_as_that(folder):
    """A firewall, for instance: all of them end with 0, and YARN has nothing to say."""
    report = "echo appDiagnostics=, appMasterHost=d1, yarnAppState=FINISHED,"
    toy_yarn(folder, jar=f"echo Submitted application application_1_1; {report}")
    application = asked(until="state")
    application.client.wait()
    line, status = application.trouble()
    application.end(gently=False)
    assert "application_1_1 ended: no container reached this machine: see `yarn logs" in line
    assert status == 255


@pytest.mark.parametrize(
    "words, what",
    [
        (("--files", "x.py,in/x.py"), "two of them would be x.py"),
        (("--files", "x.py", "--archives", "in/x.py"), "two of them would be x.py"),
        (("--files", "x.py,y.py#x.py"), "two of them would be x.py"),
        (("--files", "x.py#z.py,y.py#z.py"), "two of them would be z.py"),
        (("--files", "launch_container.py"), "two of them would be launch_container.py"),
    ],
    ids=str,
)
def test_a_file_does_not_take_the_place_of_another(tmp_path, monkeypatch, words, what):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for name in ("x.py", "in/x.py", "y.py", "launch_container.py"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match=what):
        plan(parse_args(["-n", "2", "--launcher", "yarn", *words, "x"]), {})


@pytest.mark.parametrize("option", ["--jobname", "--files", "--archives"])
@pytest.mark.parametrize("name", ["a b", "a;b", "a'b", "é"])
def test_a_name_that_would_be_read_by_a_shell_is_refused(tmp_path, monkeypatch, option, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match=f"{name}.*puts it on a command line"):
        plan(parse_args(["-n", "2", "--launcher", "yarn", option, name, "x"]), {})


def test_a_file_may_have_two_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").touch()
    words = "--launcher", "yarn", "--files", "x.py#y.py,x.py#z.py,x.py"
    found = request(plan(parse_args(["-n", "2", *words, "x"]), {}))
    assert found.files == [str(tmp_path / "x.py")]
    assert found.links == {"y.py": "x.py", "z.py": "x.py"}

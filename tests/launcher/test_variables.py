"""Which environment the processes get, and what of the user's has no effect."""

import re

import pytest

from gluon_launch.job.environment import process_environment
from gluon_launch.job.statuses import UsageError
from gluon_launch.job.variables import OWN, overridden
from gluon_launch.options.plan import plan
from gluon_launch.remote.host import own_address
from launch import parse_args
from launching import launch

TIME_BUDGET_S = 5


def test_variables_reach_the_roles_they_are_for(tmp_path):
    options = ["--env", "A=1", "--env", "B", "--env-worker", "C:x:y", "--env-server", "D=a=b c"]
    show = "echo A=$A B=$B C=$C D=$D attempt $LAUNCH_ATTEMPT of $LAUNCH_LOCAL_WORKERS"
    job = launch(tmp_path, "-n", 1, "--no-check", *options, show, env={"B": "ü 'q'"})
    assert "[worker 0] A=1 B=ü 'q' C=x:y D= attempt 1 of 1" in job.text()
    assert "[server 0] A=1 B=ü 'q' C= D=a=b c attempt" in job.text()
    assert "[scheduler] A=1 B=ü 'q' C= D= attempt" in job.text()


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

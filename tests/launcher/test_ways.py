"""The contract of a way of starting (`starting/way.py`), held by all of them."""

import collections
import io
import os
import re
import signal
import subprocess
import sys
import types

import pytest

from gluon_launch.job.advice import fitting
from gluon_launch.job.job import ROLES
from gluon_launch.job.statuses import UsageError
from gluon_launch.options.plan import plan
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting.batch import BatchSystem
from gluon_launch.starting.sge import GridEngineJob
from gluon_launch.starting.submit import Follower
from gluon_launch.starting.way import Way
from gluon_launch.starting.ways import PARTICULAR, WAYS
from gluon_launch.telling.hints import FIX, HINTS
from gluon_launch.telling.output import Console
from gluon_launch.telling.report import hint
from gluon_launch.telling.writer import finish
from launch import main, parse_args
from launching import ROOT

TIME_BUDGET_S = 10
BATCH_SYSTEMS = [way for way in WAYS.values() if isinstance(way, BatchSystem)]
ALLOCATION = {"SLURM_JOB_ID": "7", "PE_HOSTFILE": "unread"}


class Least(Way):
    """A new way of starting: the least that one must say."""

    name, programs, package = "least", ("least",), "least-client"

    def supervisor(self, host, job):
        return ["least", host.name, f"exec python3 -I -c '{REMOTE_PYTHON}'"], None


each_way = pytest.mark.parametrize("way", [*WAYS.values(), Least()], ids=[*WAYS, "least"])
each_batch_system = pytest.mark.parametrize("way", BATCH_SYSTEMS, ids=lambda way: way.name)


@pytest.fixture(autouse=True)
def new_row(monkeypatch):
    monkeypatch.setitem(WAYS, "least", Least())


def test_a_way_of_one_method_runs_a_job(tmp_path, monkeypatch, capsys):
    (tmp_path / "least").write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    (tmp_path / "least").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    words = ["-n", "1", "--launcher", "least", "-H", "d1,", "--no-prepare", "echo I am $DMLC_ROLE"]
    assert main(words) == 0
    assert "[worker 0 d1] I am worker\n" in capsys.readouterr().out


def job_of(way):
    """A job with two workers that is started this way, on two hosts if it takes any."""
    hosts = ["-H", "d1,d2"] if "hostfile" in way.options else []
    words = ["-n", "2", "--launcher", way.name, *hosts, "--dry-run", "true"]
    return plan(parse_args(words), ALLOCATION)


@each_way
def test_the_command_of_a_supervisor_is_a_program_of_the_way_and_carries_the_loader(way):
    job = job_of(way)
    if way.name == "yarn":  # whose containers carry it
        way.application = types.SimpleNamespace(files=(7,), environ={})
    argv, _ = way.supervisor(job.hosts[-1], job)
    assert argv[0] in (*way.programs, sys.executable)
    assert REMOTE_PYTHON in argv[-1] or way.name == "yarn"


@pytest.mark.parametrize("name", sorted({*WAYS} - {"local", "ssh"}))  # which are the defaults
def test_no_file_outside_of_starting_knows_the_name_of_a_way(name):
    files = [*(ROOT / "tools" / "gluon_launch").rglob("*.py")]
    knowing = [path.parent.name for path in files if f'"{name}"' in path.read_text()]
    assert {*knowing} == {"starting"}


LEFT_OVER = {
    "slurm": "SLURM_MEM_PER_CPU SLURM_GPUS SLURM_NTASKS_PER_GPU SRUN_CPUS_PER_TASK SLURM_HET_SIZE",
    "mpi": "SLURM_MEM_PER_CPU PMIX_RANK OMPI_UNIVERSE_SIZE OMPI_MCA_ess OMPI_MCA_orte_hnp_uri",
}


@pytest.mark.parametrize("name", LEFT_OVER)
def test_what_another_job_has_left_over_changes_no_supervisor(name, monkeypatch):
    kept = {"SLURM_CPUS_PER_TASK", "SLURM_JOB_NODELIST", "OMPI_MCA_btl"}
    left_over = LEFT_OVER[name].split()
    for variable in (*kept, *left_over):
        monkeypatch.setenv(variable, "1")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    job = job_of(WAYS[name])
    environ = set(job.way.supervisor(job.hosts[0], job)[1])
    assert kept < environ and not environ.intersection(left_over)


@each_way
def test_a_way_that_copies_has_a_shell_for_rsync(way):
    if "sync_dst_dir" in way.options:
        job = job_of(way)
        assert way.remote_shell(job.hosts[-1], job)


@each_way
@pytest.mark.parametrize("what, host", [("port", "d1:22,"), ("user", "me@d1,")])
def test_a_host_has_a_port_or_a_user_only_where_the_way_heeds_it(way, what, host):
    if "hostfile" not in way.options:
        return
    words = ["-n", "1", "--launcher", way.name, "-H", host, "--dry-run", "true"]
    if what in way.host_fields:
        assert getattr(plan(parse_args(words), {}).hosts[0], what)
    else:
        with pytest.raises(UsageError, match=f"--launcher {way.name} takes no {what}: leave it"):
            plan(parse_args(words), {})


def test_the_manual_has_a_row_for_each_way_of_starting():
    text = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[?`(\w+)`", text.split("## Start the job")[1], re.MULTILINE)
    assert rows[: len(WAYS) - 1] == [name for name in WAYS if name != "least"]


@each_way
def test_an_address_is_a_text(way):
    host = job_of(way).hosts[-1]
    ready = {"ssh": "10.0.0.1 50000 10.0.0.9 22", "hostname": host.name}
    assert way.address(host, ready) in (host.name, "10.0.0.9")


@each_way
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("argv", [["sh", "-c", "exit 7"], [sys.executable, "-c", "exit(7)"]])
def test_a_shielded_command_ends_like_the_command_itself(way, role, argv):
    assert subprocess.run(way.shielded(role, argv), timeout=20).returncode == 7


@each_way
def test_a_program_that_cannot_be_run_is_named_with_its_package_or_the_reason(way):
    for program in way.programs:
        line = way.why_not(program, FileNotFoundError(2, "No such file", program))
        advice = f"apt-get install {way.package}" if way.package else "put the bin folder"
        assert line.startswith(f"{program} is not installed here: {advice}")
    assert way.why_not("x", PermissionError(13, "Permission denied")) == "x: Permission denied"


@each_way
def test_an_advice_names_nothing_that_the_way_does_not_know(way):
    unknown = ["--" + option.replace("_", "-") for option in {*PARTICULAR} - {*way.options}]
    unknown += [] if way.uses_ssh else [" ssh ", "`ssh "]
    fixes = [fitting(advice, way.knows) for advice in FIX.values()]
    hints = [fitting(advice, way.knows) for *_, advice in (*way.hints, *HINTS)]
    assert all(fixes) and any(hints)
    assert not [text for text in fixes + hints for word in unknown if word in text]


def test_a_hint_is_the_first_that_is_of_use_with_the_way():
    text, status = "d1: no connection: sh: 1: python3: not found", 127
    assert hint(text, status, WAYS["ssh"].knows).endswith("`ssh HOST python3 -V` must find it")
    assert hint(text, status, WAYS["slurm"].knows).endswith("or later, on PATH")
    assert hint("no connection: no answer within 30 s", 255, WAYS["slurm"].knows) is None


@each_batch_system
def test_a_batch_system_is_given_a_job_outside_of_an_allocation_only(way):
    assert way.submits({}) and not way.submits(ALLOCATION) and way.earlier_tries({}) == 0


@each_batch_system
def test_a_batch_system_names_all_that_its_script_needs(way):
    needed = (way.title, way.mark, way.inside, way.job_id, way.restarts, way.ending, way.requeue)
    assert all(needed) and way.directives(job_of(way), "/tmp")


@pytest.mark.parametrize(
    "act, status",
    [("kill -INT $$", None), ("exit 1", None), ("echo Following jobs do not exist: 7 >&2", 137)],
)
def test_a_job_is_gone_only_if_grid_engine_says_so(tmp_path, monkeypatch, act, status):
    """Not if Ctrl-C ends the question, or nobody answers."""
    (tmp_path / "qstat").write_text(f'#!/bin/sh\n[ "$1" = -u ] || {act}\n')
    (tmp_path / "qstat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert GridEngineJob("7", tmp_path / "x").look()[1] == status


def test_jobs_of_two_systems_with_one_number_write_to_files_of_their_own():
    assert len({way.output("/home", 1) for way in BATCH_SYSTEMS}) == len(BATCH_SYSTEMS) > 1


def test_the_last_line_of_a_submitted_job_is_shown_though_it_has_no_end(tmp_path, capsys):
    (tmp_path / "x.out").write_text("one\ntwo")
    console = Console([])
    submitted = types.SimpleNamespace(id=1, look=lambda: ("ended", 0))
    assert Follower(submitted, 0, tmp_path / "x", 1, console).follow([]) == 0
    assert finish(console.writers, []) and capsys.readouterr().out == "one\ntwo\n"


def test_output_on_nfs_is_shown_although_its_file_was_missing_before(tmp_path, monkeypatch, capsys):
    """That is remembered until the folder is opened."""
    (tmp_path / "unknown").write_text("one\n")
    known = (tmp_path / "unknown").rename
    monkeypatch.setattr(os, "scandir", lambda _: known(tmp_path / "x.out") and io.BytesIO())
    console = Console([])
    submitted = types.SimpleNamespace(id=1, look=lambda: ("ended", 0))
    assert Follower(submitted, 0, tmp_path / "x", 1, console).follow([]) == 0
    assert finish(console.writers, []) and capsys.readouterr().out == "one\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGPIPE])
def test_a_submitted_job_goes_on_when_nobody_looks_any_more(number, tmp_path, capsys):
    (tmp_path / "x.out").touch()  # it has begun
    console = Console([])
    submitted = types.SimpleNamespace(id=1, cancel_argv=["cancel", "1"])
    follower = Follower(submitted, 0, tmp_path / "x", 1, console)
    assert follower.follow(collections.deque([number])) == 128 + number
    assert finish(console.writers, []) and "job 1 goes on" in capsys.readouterr().err


def test_a_local_job_inside_of_a_submitted_one_was_not_submitted_itself():
    job = plan(parse_args(["-n", "1", "true"]), {"LAUNCH_SUBMITTED": "slurm-7"})
    assert not job.is_submitted and job.id != "slurm-7"

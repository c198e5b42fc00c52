"""The hosts that batch systems give, and what is said where a system is not installed."""

import subprocess

import pytest

from gluon_launch.job.statuses import UsageError
from gluon_launch.options.plan import plan
from gluon_launch.starting.allocation import READERS, USES, find_hosts, het_group, unused
from gluon_launch.starting.ways import WAYS
from launch import main, parse_args
from launching import launch

TIME_BUDGET_S = 20


def names(environ):
    return " ".join(host.name for host in find_hosts(environ))


def test_outside_of_an_allocation_there_are_no_hosts():
    assert find_hosts({"HOME": "/root"}) == []


def test_grid_engine_names_hosts_with_their_slots(tmp_path):
    """A host once for each slot, in turns; one that is in two queues has the slots of both."""
    file = tmp_path / "pe_hostfile"
    file.write_text("d1 2 all.q@d1 UNDEFINED\nd2 1 all.q@d2 UNDEFINED\nd1 1 gpu.q@d1 <NULL>\n")
    assert names({"PE_HOSTFILE": str(file)}) == "d1 d2 d1 d1"


@pytest.mark.parametrize("variable", ["PBS_NODEFILE", "LSB_DJOB_HOSTFILE"])
def test_pbs_and_lsf_name_a_host_once_for_each_slot(tmp_path, variable):
    (tmp_path / "nodes").write_text("d1\nd1\nd2\nd2\n")
    assert names({variable: str(tmp_path / "nodes")}) == "d1 d2 d1 d2"
    assert names({"LSB_HOSTS": "d3 d3 d4"}) == "d3 d4 d3"


def test_slurms_own_program_reads_its_compressed_lists(tmp_path, monkeypatch):
    scontrol = tmp_path / "scontrol"  # as Slurm's, for this one list
    scontrol.write_text(
        '#!/bin/sh\n[ "$*" = "show hostnames d[1-3]" ] && printf "d1\\nd2\\nd3\\n"\n'
    )
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    allocation = {"SLURM_JOB_NODELIST": "d[1-3]", "SLURM_TASKS_PER_NODE": "2(x2),1"}
    assert names(allocation) == "d1 d2 d3 d1 d2"
    assert names({"SLURM_JOB_NODELIST": "d[1-3]"}) == "d1 d2 d3"


def test_a_heterogeneous_job_has_the_hosts_of_all_its_parts(tmp_path, monkeypatch):
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho $3 | tr , '\\n'\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    lists = {"SLURM_JOB_NODELIST_HET_GROUP_0": "d1", "SLURM_JOB_NODELIST_HET_GROUP_1": "d2,d3"}
    parts = {"SLURM_HET_SIZE": "2", **lists, "SLURM_TASKS_PER_NODE_HET_GROUP_1": "2,1"}
    parts.update(SLURM_JOB_ID_HET_GROUP_0="7", SLURM_JOB_ID="7", SLURM_JOB_NODELIST="d9")
    assert names(parts) == "d1 d2 d3 d2"
    assert (het_group("d1", parts), het_group("d3", parts)) == (0, 1)
    left_over = {**parts, "SLURM_JOB_ID": "8", "PE_HOSTFILE": "/no/file"}
    assert [host.name for host in find_hosts(left_over, "SLURM_JOB_ID")] == ["d9"]
    assert het_group("d1", {"SLURM_JOB_NODELIST": "d1"}) is None


def test_a_job_on_one_host_of_several_says_which_option_uses_the_others(
    tmp_path, monkeypatch, capsys
):
    assert unused({"HOME": "/root"}) == unused({"PBS_NODEFILE": "/no/file"}) == ""
    assert unused({"LSB_HOSTS": "d1 d1"}) == ""
    (tmp_path / "nodes").write_text("d1 2 q\nd2 2 q\nd3 2 q\nd4 2 q\nd5 2 q\n")
    assert unused({"PE_HOSTFILE": str(tmp_path / "nodes")}).endswith(
        "5 hosts (d1, d2, d3, d4, …): all processes run on this one, and the other hosts stay "
        "unused; --launcher sge uses all of them"
    )
    assert {*USES} == {*READERS} and {*USES.values()} <= {*WAYS}
    monkeypatch.setenv("LSB_HOSTS", "d1 d2")
    for words, is_told in ([(), True], [("--launcher", "local"), False]):
        assert main(["-n", "1", *words, "--no-check", "--no-prepare", "true"]) == 0
        said = capsys.readouterr().err
        assert said.count("stay unused; --launcher ssh uses all of them\n") == is_told


def test_a_list_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="PBS_NODEFILE=/no/file: No such file"):
        find_hosts({"PBS_NODEFILE": "/no/file"})
    with pytest.raises(UsageError, match="LSB_HOSTS=a;b: 'a;b' is not a host name"):
        find_hosts({"LSB_HOSTS": "a;b"})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="scontrol is not installed here: apt-get install slurm"):
        find_hosts({"SLURM_JOB_NODELIST": "d[1-3]"})
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'error: no\nfatal: so' >&2\nexit 1\n")
    (tmp_path / "scontrol").chmod(0o755)
    with pytest.raises(UsageError, match=r"SLURM_JOB_NODELIST=d\[1-3: error: no fatal: so"):
        find_hosts({"SLURM_JOB_NODELIST": "d[1-3"})


@pytest.mark.parametrize(
    "environ, program",
    [
        ({"SLURM_STEP_NUM_TASKS": "2"}, "srun"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, "mpirun"),
        ({"PMI_SIZE": "2"}, "mpirun"),
        ({"WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}, "torchrun"),
        ({"HOROVOD_SIZE": "2"}, "horovodrun"),
        ({"HOROVOD_SIZE": "2", "LAUNCH_JOB": "of ours"}, None),
        ({"WORLD_SIZE": "2", "SLURM_NTASKS": "2", "PMI_SIZE": "1"}, None),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PTY_PORT": "7"}, None),
        ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PTY_PORT": "7", "PMI_SIZE": "2"}, None),
        ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_PTY_PORT": "7", "PMI_SIZE": "2"}, "mpirun"),
    ],
)
def test_a_launcher_that_another_one_starts_several_times_is_refused(environ, program):
    args = parse_args(["-n", "2", "true"])
    if program:
        with pytest.raises(UsageError, match=f"{program} has started this launcher 2 times"):
            plan(args, environ)
    else:
        assert plan(args, environ)


@pytest.mark.parametrize(
    "system, line",
    [
        ("mpi", "mpirun is not installed here: apt-get install openmpi-bin (or mpich)"),
        ("slurm", "sbatch is not installed here: apt-get install slurm-client"),
        ("sge", "qsub is not installed here: apt-get install gridengine-client"),
    ],
)
def test_a_system_that_is_not_installed_is_one_line_and_status_2(tmp_path, system, line):
    options = ("-n", 2, "--launcher", system, "true")
    job = launch(tmp_path, *options, env={"PATH": str(tmp_path)}, timeout=20)
    assert job.status == 2
    assert job.stderr == f"[launch] {line}\n"
    dry = launch(tmp_path, "--dry-run", *options, env={"PATH": str(tmp_path)}, timeout=20)
    assert dry.status == 0 and not dry.stderr
    subprocess.run(["bash", "-n"], input=dry.stdout, text=True, check=True)


def test_inside_an_allocation_the_program_that_is_missing_is_named(tmp_path):
    env = {"PATH": str(tmp_path), "SLURM_JOB_ID": "7", "LSB_HOSTS": "d1 d2"}
    job = launch(tmp_path, "-n", 2, "--launcher", "slurm", "true", env=env, timeout=20)
    assert job.status == 2
    assert job.stderr == "[launch] srun is not installed here: apt-get install slurm-client\n"


@pytest.mark.parametrize(
    "arguments, why",
    [
        (("slurm", "--sync-dst-dir", "d"), "--sync-dst-dir is for {}, not slurm"),
        (("sge", "--ssh-option=-v"), "--ssh-option is for {}, not sge"),
        (("ssh", "-H", "d1,", "--launcher-option=-v"), "--launcher-option is for --launcher mpi"),
        (("slurm", "-H", "d1:22,"), "d1: --launcher slurm takes no port: leave it out"),
        (("yarn",), "yarn is not installed here: put the bin folder of your Hadoop on PATH"),
        (("yarn", "-H", "d1,"), "--hostfile is for {}, not yarn"),
    ],
)
def test_what_a_system_cannot_do_is_one_line_and_status_2(tmp_path, arguments, why):
    job = launch(tmp_path, "-n", 2, "--launcher", *arguments, "true", timeout=20)
    assert job.status == 2 and len(job.stderr.splitlines()) == 1
    option = why.split()[0].lstrip("-").replace("-", "_")
    knowing = ", ".join(name for name, way in WAYS.items() if option in way.options)
    assert why.format(f"--launcher {knowing}") in job.stderr


@pytest.mark.parametrize(
    "system, option, why",
    [
        ("slurm", "--array=0-2", "a job array would be several jobs"),
        ("slurm", "--arr", "a job array"),
        ("slurm", "-a0-2", "a job array"),
        ("slurm", "--output=x.out", "--job-dir says where it is kept"),
        ("slurm", "-o x.out", "--job-dir"),
        ("slurm", "--wait", "the launcher itself waits"),
        ("slurm", "--test-only", "--dry-run prints the script"),
        ("slurm", "--clusters=b", "log in to the other cluster"),
        ("sge", "-t 1-2", "a job array would be several jobs"),
        ("sge", "-e x.err", "--job-dir"),
        ("sge", "-w v", "--dry-run prints the script"),
        ("mpi", "--tag-output", "--job-dir"),
        ("mpi", "-np 4", "the launcher's own -n"),
        ("mpi", "--stdin none", "the launcher itself needs the input"),
        ("mpi", "-s all", "the launcher itself needs the input"),
    ],
)
def test_an_option_that_makes_the_system_do_something_else_is_refused(system, option, why):
    words = ["-n", "2", "--launcher", system, f"--launcher-option={option}", "true"]
    with pytest.raises(UsageError, match=f"--launcher-option={option}: .*{why}"):
        plan(parse_args(words), {})


OTHERS = {
    "slurm": "--wait-all-nodes=1,--nodes=1,--overcommit,--hold,--exclusive,--qos=high,--licenses=a",
    "sge": "-tc 2,-ot 3,-w w,-h,-pe mpi 2",
    "mpi": "--output-filename x,--oversubscribe,--nooversubscribe,--map-by node",
}


@pytest.mark.parametrize("system", OTHERS)
def test_other_options_are_passed_on(system):
    options = OTHERS[system].split(",")
    own = [f"--launcher-option={option}" for option in options]
    job = plan(parse_args(["-n", "2", "--launcher", system, *own, "true"]), {})
    assert job.options.launcher_option == options


@pytest.mark.parametrize(
    "name, why",
    [
        ("SBATCH_ARRAY_INX", "a job array would be several jobs"),
        ("SBATCH_CLUSTERS", "log in to the other cluster"),
    ],
)
def test_a_variable_that_asks_for_what_an_option_may_not_is_refused(tmp_path, name, why):
    env = {name: "0-1"}
    job = launch(tmp_path, "-n", 2, "--launcher", "slurm", "true", env=env, timeout=20)
    assert (job.status, len(job.stderr.splitlines())) == (2, 1)
    assert f"{name} is set: {why}" in job.stderr


def test_an_allocation_without_a_list_of_hosts_is_told_as_such():
    words = ["-n", "2", "--launcher", "slurm", "true"]
    with pytest.raises(UsageError, match="SLURM_JOB_ID is set, but nothing names the hosts"):
        plan(parse_args(words), {"SLURM_JOB_ID": "7"})

"""What users and sites have set for Slurm, Grid Engine and MPI is not in the launcher's way."""

import os
import re

import pytest

from launching import CLUSTER, Job, cluster, shell, why_no_cluster
from on_cluster import jobs, on_d1

TIME_BUDGET_S = 50
SHARES = "batch systems"
WHY_NOT = why_no_cluster("slurm", "sge", "mpi")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
OF_SRUN = {"SLURM_EXPORT_ENV": "NONE", "SLURM_LABELIO": "1", "SLURM_STDOUTMODE": "none"}
OF_SBATCH = {"SBATCH_EXPORT": "NONE", "SBATCH_OUTPUT": "x", "SBATCH_ERROR": "x", "SBATCH_WAIT": "1"}
OF_SCANCEL = {"SCANCEL_INTERACTIVE": "1", "SCANCEL_STATE": "PENDING"}
OF_MPIRUN = {"OMPI_MCA_orte_tag_output": "1", "OMPI_MCA_orte_timestamp_output": "1"}
OF_GRID_ENGINE = "-sync y -pty y -o x -e x -b n -S /bin/sh\n"
HOME = CLUSTER / "d1" / "home" / "ubuntu"  # of all hosts
UNTIL_TOLD = "trap 'exit 75' TERM; echo up; while :; do sleep 0.1; done"
PLACES = "echo $DMLC_ROLE on $(hostname)"
IN_TWO_PARTS = ("salloc", "--quiet", "--nodes=1", ":", "--nodes=1")
BY_OPEN_MPI = ("--launcher", "mpi", "--launcher-option=--allow-run-as-root")


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2", "--with", "mpi,slurm,sge")
    yield
    cluster("down")


def start(folder, *words, **more):
    """A job with two workers, started on d1."""
    return Job(folder, "-n", 2, *words, cwd=folder, inside="d1", **more)


def run(folder, *words, **more):
    job = start(folder, *words, **more)
    job.finish(60)
    return job


def with_variables(variables):
    """The words of a command line that set variables, where salloc has set its own."""
    return ("env", *(f"{name}={value}" for name, value in variables.items()))


def test_variables_of_sbatch_srun_and_scancel_change_nothing_for_a_submitted_job(tmp_path):
    act = shell(worker0=UNTIL_TOLD, worker1=UNTIL_TOLD)
    job = start(tmp_path, "--launcher", "slurm", act, env={**OF_SBATCH, **OF_SRUN, **OF_SCANCEL})
    job.wait_for("[worker 0 d1] up")
    job.wait_for("[worker 1 d2] up")
    job.interrupt()
    job.finish(60)
    assert job.status == 75, job.text()
    assert re.search(r"job \d+: stopped after saving, status 75", job.last_words())


@pytest.mark.parametrize("way", [("--launcher", "slurm"), BY_OPEN_MPI], ids=["slurm", "mpi"])
def test_variables_of_srun_and_mpirun_change_nothing_in_an_allocation(tmp_path, way):
    before = ("salloc", "--quiet", "--nodes=2", *with_variables({**OF_SRUN, **OF_MPIRUN}))
    job = run(tmp_path, *way, PLACES, before=before)
    assert job.status == 0, job.text()
    assert "[worker 1 d2] worker on d2\n" in job.stdout


def test_a_users_number_of_tasks_starts_no_second_supervisor(tmp_path):
    options = ("--launcher-option=--ntasks=2", "--launcher-option=--overcommit")
    before = ("salloc", "--quiet", "--nodes=2")
    job = run(tmp_path, "--launcher", "slurm", *options, PLACES, before=before)
    assert job.status == 0 and job.stdout.count("] worker on ") == 2, job.text()


def test_mpich_finds_the_hosts_of_an_allocation(tmp_path):
    (tmp_path / "mpirun").write_text('#!/bin/sh\nexec /usr/bin/mpirun.mpich "$@"\n')
    (tmp_path / "mpirun").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    before = ("salloc", "--quiet", "--nodes=2", *with_variables(OF_SRUN))
    job = run(tmp_path, "--launcher", "mpi", PLACES, before=before, env=path)
    assert job.status == 0, job.text()
    assert "[worker 1 d2] worker on d2\n" in job.stdout


def test_a_users_options_of_grid_engine_change_nothing(tmp_path):
    (tmp_path / ".sge_request").write_text(OF_GRID_ENGINE)
    (HOME / ".sge_qstat").write_text("-s z\n")
    job = run(tmp_path, "--launcher", "sge", PLACES)
    (HOME / ".sge_qstat").unlink()
    assert job.status == 0, job.text()
    assert "[worker 1 d2] worker on d2\n" in job.stdout


def test_a_job_array_that_a_file_asks_for_is_one_line_and_no_job(tmp_path):
    (tmp_path / ".sge_request").write_text("-t 1-2\n")
    job = run(tmp_path, "--launcher", "sge", "true")
    assert (job.status, len(job.stderr.splitlines())) == (2, 1), job.stderr
    assert "-t in .sge_request or in a file of options: a job array would be" in job.stderr
    assert not [line for line in jobs() if " qw " in line]


@pytest.mark.parametrize("way", ["slurm", "ssh"])
def test_the_parts_of_a_heterogeneous_job_are_one_job(tmp_path, way):
    job = run(tmp_path, "--launcher", way, PLACES, before=IN_TWO_PARTS)
    assert job.status == 0, job.text()
    assert "[worker 1 d2] worker on d2\n" in job.stdout


def test_a_host_that_slurm_does_not_know_is_a_host_that_cannot_be_reached(tmp_path):
    job = run(tmp_path, "--launcher", "slurm", "-H", "d1,d9", "true")
    assert (job.status, len(job.stderr.splitlines())) == (255, 1), job.stderr


@pytest.fixture
def in_two_domains():
    """The hosts also as d1.a.net and d1.b.net."""
    (one, two) = [line.split()[0] for line in on_d1("grep ' d[12]$' /etc/hosts").splitlines()]
    more = f"{one} d1.a.net\\n{two} d1.b.net\\n"
    for host in ("d1", "d2"):
        cluster("ssh", host, f"printf '{more}' >> /etc/hosts")
    config = (HOME / ".ssh" / "config").read_text()
    config = config.replace("Host d1\n", "Host d1 d1.a.net\n")
    (HOME / ".ssh" / "config").write_text(config.replace("Host d2\n", "Host d2 d1.b.net\n"))


def test_open_mpi_reaches_hosts_that_differ_behind_the_dot(tmp_path, in_two_domains):
    names = ("-H", "d1.a.net,d1.b.net")
    job = run(tmp_path, *BY_OPEN_MPI, *names, PLACES)
    assert job.status == 0, job.text()
    assert "[worker 1 d1.b.net] worker on d2\n" in job.stdout
    cuts = "--launcher-option=--mca orte_keep_fqdn_hostnames 0"
    job = run(tmp_path, *BY_OPEN_MPI, cuts, *names, PLACES)
    assert job.status == 255 and not job.stdout, job.text()
    assert "d1.b.net: mpirun led to d1, which does not have its address 10.77." in job.last_words()


def test_a_supervisor_on_another_host_is_one_line_and_no_training(tmp_path):
    option = "--launcher-option=--nodelist=d1"  # comes last, and wins
    before = ("salloc", "--quiet", "--nodes=2")
    job = run(tmp_path, "--launcher", "slurm", option, "echo up", before=before)
    assert job.status == 255 and "up" not in job.stdout, job.text()
    assert "d2: srun led to d1, which does not have its address 10.77." in job.last_words()
    assert "hint: does an option choose the host?" in job.last_words()

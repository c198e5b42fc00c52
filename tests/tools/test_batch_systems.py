"""The batch systems of `cluster.py`: they run jobs on two hosts, and are gone afterwards."""

import pathlib
import shutil
import subprocess
import sys
import time

import pytest

from launching import CLUSTER, ROOT, cluster, why_no_cluster

TIME_BUDGET_S = 60
# Modules with the same word run one after the other: the /tmp of all hosts is that of this machine.
SHARES = "batch systems"
WHY_NOT = why_no_cluster("slurm", "sge", "mpi")
pytestmark = [pytest.mark.long, pytest.mark.skipif(WHY_NOT is not None, reason=WHY_NOT or "")]
# Tells how often it was started before, and that it is told to end.
SCRIPT = """\
#!/bin/bash
trap 'echo told to end; exit 75' TERM USR2
echo began after ${SLURM_RESTART_COUNT:-${RESTARTED:-0}}
sleep 300 & wait
"""
# What the packages have outside of the hosts.
PATHS = "/etc/slurm /etc/munge /var/lib/slurm /var/lib/munge /var/log/slurm /var/log/munge"
PATHS += " /var/lib/gridengine /var/spool/gridengine /etc/passwd /etc/hosts"
DAEMONS = "slurmctld|slurmd|munged|sge_qmaster|sge_execd"


@pytest.fixture
def systems():
    cluster("up", "--hosts", "2", "--with", "slurm,sge,mpi")  # a second time it costs nothing


@pytest.fixture(scope="module", autouse=True)
def afterwards():
    yield
    cluster("down")


def on_d1(command, check=True):
    return cluster("ssh", "d1", command, check=check).stdout.strip()


def submit(folder, command):
    """Submit SCRIPT and wait until it runs: its number, and the file that it prints to."""
    (folder / "job").write_text(SCRIPT)
    words = on_d1(f"cd {folder} && {command} -o {folder}/out {folder}/job").split()
    wait_for("began after", folder / "out")
    return next(word for word in words if word.isdigit()), folder / "out"


def wait_for(text, file, seconds=30):
    end = time.monotonic() + seconds
    while not file.exists() or text not in file.read_text():
        assert time.monotonic() < end, file.read_text() if file.exists() else f"no {file}"
        time.sleep(0.1)


def traces():
    """What batch systems would leave on this machine: changed files, mounts, daemons."""

    def output(*command):
        return subprocess.run(command, text=True, capture_output=True).stdout

    mounts = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    mounts = [line for line in mounts if "/tmp/" not in line]  # those are other tests'
    files = output("find", *PATHS.split(), "-printf", "%p %T@ %U %m\n")
    for pattern in ("ompi.*", "*.all.q", "*messages*"):
        files += output("find", "/tmp", "-maxdepth", "1", "-name", pattern)
    return files, mounts, output("pgrep", "-x", DAEMONS)


def test_slurm_runs_a_job_on_two_hosts_and_returns_its_status(systems):
    assert on_d1("srun --nodes 2 --label hostname | sort") == "0: d1\n1: d2"
    assert cluster("ssh", "d1", "sbatch --wait --wrap 'exit 3'", check=False).returncode == 3
    assert on_d1("salloc --nodes 2 srun hostname | sort") == "d1\nd2"


def test_slurm_counts_gpus(systems):
    seen = on_d1("srun --nodes 2 --gres gpu:1 sh -c 'echo $CUDA_VISIBLE_DEVICES'")
    assert seen == "0\n0"


def test_grid_engine_counts_gpus_for_each_slot(systems):
    run = "qsub -w e -sync y -pe mpi 2 -o /dev/null -j y -l gpu={} -b y true"
    assert "exited with exit code 0" in on_d1(run.format(2))
    assert cluster("ssh", "d1", run.format(3), check=False).returncode == 1  # nowhere to run


def test_a_job_that_slurm_queues_again_is_told_and_starts_again(systems, tmp_path):
    number, out = submit(tmp_path, "sbatch --nodes 2 --open-mode append")
    on_d1(f"scontrol requeue {number}")
    wait_for("told to end", out)
    wait_for("began after 1", out)
    on_d1(f"scancel {number}")


def test_an_urgent_job_takes_the_place_of_another(systems, tmp_path):
    number, out = submit(tmp_path, "sbatch --nodes 2 --exclusive --signal B:USR2")
    on_d1("srun --partition urgent --nodes 2 hostname")
    assert "told to end" in out.read_text()
    # It has ended by itself in its grace time, so Slurm does not queue it again.
    assert "JobState=FAILED" in on_d1(f"scontrol show job {number}")


def test_grid_engine_runs_a_job_on_two_hosts_and_returns_its_status(systems, tmp_path):
    (tmp_path / "job").write_text(
        "for host in $(cut -d' ' -f1 $PE_HOSTFILE); do qrsh -inherit $host hostname; done; exit 3"
    )
    job = f"qsub -sync y -pe mpi 2 -S /bin/sh -j y -o {tmp_path}/out {tmp_path}/job"
    assert cluster("ssh", "d1", job, check=False).returncode == 3
    assert (tmp_path / "out").read_text().split() == ["d1", "d2"]


def test_a_job_that_grid_engine_queues_again_starts_again(systems, tmp_path):
    number, out = submit(tmp_path, "qsub -r y -pe mpi 2 -j y")
    on_d1(f"qmod -rj {number}")
    wait_for("began after 1", out)
    on_d1(f"qdel {number}")


def test_a_deleted_job_of_grid_engine_is_told_if_it_asked_for_it(systems, tmp_path):
    number, out = submit(tmp_path, "qsub -notify -pe mpi 2 -j y")
    on_d1(f"qdel {number}")
    wait_for("told to end", out)
    end = time.monotonic() + 30
    while number in on_d1("qstat").split():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_mpirun_starts_programs_on_both_hosts(systems):
    assert on_d1("mpirun --host d1,d2 hostname | sort") == "d1\nd2"
    assert on_d1("ssh -oBatchMode=yes d2 hostname") == "d2"


def test_batch_systems_work_in_a_process_that_enters_a_host_without_ssh(systems):
    (pid,) = subprocess.check_output(
        ["pgrep", "-f", f"^{sys.executable} .*cluster_host.py {CLUSTER}/d1 d1"], text=True
    ).split()
    script = "srun -N 2 hostname; qhost -h d1,d2; mpirun --host d1,d2 hostname"
    inside = ["nsenter", f"--target={pid}", "--all", "--wdns=/", "sh", "-ec", script]
    done = subprocess.run(inside, text=True, capture_output=True, timeout=30)
    assert done.returncode == 0 and done.stdout.count("d2\n") == 2, done


@pytest.mark.parametrize(
    "system, command", [("slurm", "sbatch --nodes 2"), ("sge", "qsub -pe mpi 2 -j y")]
)
def test_down_leaves_nothing_of_running_jobs(tmp_path, system, command):
    cluster("down")
    before = traces()
    cluster("up", "--with", f"{system},mpi")
    submit(tmp_path, command)
    mpirun = "mpirun --host d1,d2 sh -c 'echo sleeping; sleep 300'"
    with open(tmp_path / "mpi", "w") as file:
        words = ["ssh", "-F", CLUSTER / "ssh_config", "d1", mpirun]
        ssh = subprocess.Popen(words, stdout=file, stderr=file)
    wait_for("sleeping", tmp_path / "mpi")
    cluster("down")
    ssh.kill()
    ssh.wait()
    assert traces() == before
    assert not CLUSTER.exists()


def test_another_system_is_another_cluster():
    cluster("up", "--with", "mpi")
    assert "mpi: 2 of 2 hosts" in cluster("status").stdout
    cluster("up")
    assert "mpi" not in cluster("status").stdout


def test_what_is_not_installed_is_said_in_one_line(tmp_path):
    for name in ("ip", "tc", "ssh", "sshd", "ssh-keygen", "rsync", "unshare", "nsenter"):
        (tmp_path / name).symlink_to(shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin"))
    command = [sys.executable, ROOT / "tools" / "cluster.py", "--name", CLUSTER.name, "up"]
    for systems, packages in (("mpi", "openmpi-bin"), ("slurm,mpi", "openmpi-bin slurm-client")):
        done = subprocess.run(
            [*command, "--with", systems],
            env={"PATH": str(tmp_path)},
            text=True,
            capture_output=True,
        )
        assert done.returncode == 2
        assert done.stderr.endswith(f"(apt-get install {packages})\n"), done.stderr
    assert "one or more of" in cluster("up", "--with", "pbs", check=False).stderr

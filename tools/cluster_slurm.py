"""Slurm on the hosts of `cluster.py`: slurmctld on d1, slurmd and munged on all."""

import os
import pathlib
import secrets
import time

from cluster_batch import cover, mount, start_daemon

NEEDED = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "munged": "munge",
}
READY = r"sinfo --noheader --Node --partition=normal --format=%t | grep -xE 'idle|mix|alloc|comp'"
SLURM_CONF = """\
ClusterName=cluster
SlurmctldHost=d1
SlurmUser=root
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
# without cgroups
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
# several jobs on one host, on more CPUs than this machine has
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
# a job that is queued again need not wait for two minutes
AuthInfo=cred_expire=5
GresTypes=gpu
NodeName=d[1-{count}] CPUs=8 RealMemory=8000 Gres=gpu:2
# A job in `urgent` takes the place of jobs in `normal`. The tasks of these get TERM, or the signal
# that was asked for with --signal. Those still there GraceTime seconds later get TERM, batch script
# and all, KillWait seconds later KILL, and are queued again.
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=10
PartitionName=normal Nodes=ALL Default=YES PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL PriorityTier=2 PreemptMode=OFF
# a host that comes back may work again
ReturnToService=2
SlurmdTimeout=30
# quick for trying out, at the price of work that a large cluster would not want
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
"""
# Each is /dev/null: GPUs to be asked for, not to compute with.
GRES_CONF = "Name=gpu File=/run/gpu[0-1]\n"


def write_files(d1, addresses):
    """Write one configuration and one munge key for all hosts."""
    etc = d1 / "etc" / "slurm"
    etc.mkdir(parents=True)
    (etc / "slurm.conf").write_text(SLURM_CONF.format(count=len(addresses)), encoding="utf-8")
    (etc / "gres.conf").write_text(GRES_CONF, encoding="utf-8")
    key = d1 / "etc" / "munge" / "munge.key"
    key.parent.mkdir(mode=0o700)
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


def start(folder, name):
    """Start the daemons of one host, inside it."""
    for path in ("/etc/slurm", "/etc/munge"):
        cover(path, folder.parent / "d1")
    for path in ("/var/lib/slurm", "/var/log/slurm", "/var/lib/munge", "/var/log/munge"):
        cover(path, folder)
    for gpu in ("/run/gpu0", "/run/gpu1"):
        pathlib.Path(gpu).touch()
        mount("--bind", "/dev/null", gpu)
    os.mkdir("/run/munge")
    start_daemon(folder, "munged", "--foreground")
    while not os.path.exists("/run/munge/munge.socket.2"):
        time.sleep(0.01)
    if name == "d1":
        start_daemon(folder, "slurmctld", "-D")
    start_daemon(folder, "slurmd", "-D")

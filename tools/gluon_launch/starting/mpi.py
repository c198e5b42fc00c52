"""Start the supervisors of other hosts with mpirun, one mpirun a host.

MPI places nothing here and carries no data: its launcher only takes the place of ssh. In an
allocation of a batch system mpirun uses that system's own way to the hosts, elsewhere ssh.
"""

import errno
import functools
import os
import re
import shlex
import socket
import subprocess
import sys

from gluon_launch.job.hosts import LOCAL
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting import allocation, ssh
from gluon_launch.starting.way import CAUSE, OUTPUT, Way, own_words

ONE_HOST = {  # by family: what runs one process on a host, on any of its processors
    "Open MPI": ("--host", "{}", "--bind-to", "none"),
    "MPICH": ("-hosts", "{}", "-bind-to", "none"),
    "Intel MPI": ("-hosts", "{}", "-genv", "I_MPI_PIN", "off"),
}
SAID = {  # what the user's own environment would change
    "OMPI_MCA_orte_keep_fqdn_hostnames": "1",  # else d1.a.net and d1.b.net are both d1
    "PRTE_MCA_prte_keep_fqdn_hostnames": "1",  # Open MPI 5
    "OMPI_MCA_orte_execute_quiet": "0",
    "OMPI_MCA_orte_tag_output": "0",
    "OMPI_MCA_orte_timestamp_output": "0",
    "OMPI_MCA_orte_xml_output": "0",
    "SLURM_EXPORT_ENV": "ALL",  # of the srun that mpirun starts in an allocation
    "SRUN_EXPORT_ENV": "ALL",
}

# What an mpirun sets for its processes: another one that finds it takes itself for one of them.
OF_A_PROCESS = re.compile(r"PMIX?_\w+|OMPI_(?!MCA_)\w+|OMPI_MCA_(ess|orte|pmix)\w*")


def without_another(environ):
    """Return an environment without the variables of an mpirun that started this launcher."""
    if not {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"} & set(environ):
        return environ
    return {name: value for name, value in environ.items() if not OF_A_PROCESS.fullmatch(name)}


@functools.lru_cache(maxsize=None)
def family(is_dry_run=False):
    """Return the family of this mpirun; each has options of its own."""
    try:
        done = subprocess.run(
            ["mpirun", "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except FileNotFoundError:
        if is_dry_run:
            return "Open MPI"
        raise
    said = done.stdout.decode("utf-8", "replace")
    for name, sign in (("Open MPI", "Open MPI"), ("Intel MPI", "Intel(R) MPI"), ("MPICH", "HYDRA")):
        if sign in said:
            return name
    raise OSError(errno.ENOEXEC, "neither Open MPI's, nor MPICH's, nor Intel's", "mpirun")


# In allocations with one of these MPICH and Intel MPI use srun, qrsh or blaunch, not ssh.
OTHER_AGENTS = {"SLURM_JOB_ID", "PE_HOSTFILE", "LSB_HOSTS", "LSB_DJOB_HOSTFILE"}

ABOUT = """\
  --launcher mpi    mpirun (Open MPI, MPICH, Intel MPI) takes the place of ssh; without -H on the
    hosts of the allocation that you are in, else on this machine. Open MPI refuses root without
    --launcher-option=--allow-run-as-root.
"""


class Mpi(Way):
    """See `Way`."""

    name = "mpi"
    about = ABOUT
    programs, package = ("mpirun",), "openmpi-bin (or mpich)"
    options = ("sync_dst_dir", "ssh_option", "hostfile", "interface", "launcher_option")
    uses_ssh = True
    # Open MPI 5 loses of its input what it reads in full pieces of 4096 bytes. Others must have
    # a stream: they may read less than a packet at once, and would lose the rest.
    input_type = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_STREAM
    hints = (
        (
            "mpirun has detected an attempt to run as root",
            None,
            "if you mean it: --launcher-option=--allow-run-as-root",
        ),
        *ssh.HINTS,
    )
    refused = {  # noqa: RUF012
        r"-l$|--?(tag-output|timestamp-output|xml|output|prepend-\w+|outfile-\w+)(?![\w-])": OUTPUT,
        r"--?(np?|c|ppn|perhost|N)\b": "the launcher's own -n counts the workers",
        r"--?stdin\b|-s +(all|none)": "the launcher itself needs the input",
        r"--?(H|hosts?|hostfile|machinefile|f)\b": "the launcher's own -H names the hosts",
    }

    def reach(self, host, job, command):
        words = [word.format(host.name) for word in ONE_HOST[family(job.options.dry_run)]]
        return ["mpirun", "-n", "1", *words, *own_words(job.options), *command]

    def find_hosts(self, options, environ):
        return self.named_hosts(options, environ) or [LOCAL]

    def remote_shell(self, host, job):
        return ssh.ssh_argv(host, job.options)

    def cause(self, lines):
        """Return the line with the cause: mpirun prints it first, among many lines."""
        return next(filter(CAUSE.search, lines), lines[0])

    def supervisor(self, host, job):
        _, *ssh_options = self.remote_shell(host, job)
        agent = shlex.join(["ssh", *ssh_options])
        env = {
            **without_another(allocation.without_hindrance(os.environ)),
            **SAID,
            "OMPI_MCA_plm_rsh_agent": agent,  # Open MPI 4
            "PRTE_MCA_plm_ssh_agent": agent,  # Open MPI 5
        }
        if not OTHER_AGENTS & set(os.environ):
            env["HYDRA_LAUNCHER_EXTRA_ARGS"] = shlex.join(ssh_options)  # MPICH
            env["I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS"] = shlex.join(ssh_options)  # Intel MPI
        command = ["python3", "-I", "-c", REMOTE_PYTHON]
        if job.target:  # may be relative to the home, and mpirun goes to the folder we are in
            command = ["sh", "-c", 'cd; exec "$@"', "sh", *command]
        return self.reach(host, job, command), env

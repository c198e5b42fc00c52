"""Open MPI on the hosts of `cluster.py`: they log in to each other, and mpirun lets uid 0 work."""

import pathlib
import shutil

from cluster_batch import mount

NEEDED = {"mpirun": "openmpi-bin"}
READY = "for host in $(cut -d' ' -f2 /etc/hosts | grep '^d'); do ssh -n $host hostname; done"
# `ubuntu` has uid 0 here, which mpirun refuses: a program could harm the machine. The /tmp of all
# hosts is the same, and process numbers, after which mpirun names its files, are not.
MPIRUN = """\
#!/bin/bash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_orte_tmpdir_base=/run
exec -a mpirun /run/mpirun "$@"
"""


def write_files(d1, addresses):
    """Let the user of a host log in to all hosts, with the key of the cluster."""
    folder = d1 / "home" / "ubuntu" / ".ssh"
    folder.mkdir(mode=0o700)
    shutil.copyfile(d1.parent / "ssh_config", folder / "config")
    (d1 / "mpirun").write_text(MPIRUN, encoding="utf-8")
    (d1 / "mpirun").chmod(0o755)


def start(folder, name):
    """Mount our mpirun over that of this machine, which becomes /run/mpirun."""
    pathlib.Path("/run/mpirun").touch()
    mount("--bind", shutil.which("mpirun"), "/run/mpirun")
    mount("--bind", folder.parent / "d1" / "mpirun", shutil.which("mpirun"))

"""What the batch systems of `cluster.py` have in common.

A system is a module `cluster_NAME.py` with

    NEEDED                      program: Debian package
    READY                       a command for d1 that prints one line for each host that can work
    write_files(d1, addresses)  before the hosts start: write the files that they share
    start(folder, name)         on a host: cover paths of this machine, start daemons

The files that hosts share are in the folder of d1.
"""

import importlib
import os
import pathlib
import subprocess
import time

READY_S = 90  # by then all hosts can work
SYSTEMS = ("mpi", "sge", "slurm", "yarn")
PROGRAMS = "/run/bin"  # on PATH: programs of a system that no Debian package has


def system(name):
    """Return the module of a batch system."""
    return importlib.import_module(f"cluster_{name}")


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def cover(path, folder):
    """Mount a path of the folder over that of this machine: `folder/var/log/x` over `/var/log/x`.

    Only the host's mount namespace changes.
    """
    own = pathlib.Path(folder, path.lstrip("/"))
    own.mkdir(parents=True, exist_ok=True)
    mount("--bind", own, path)


def start_daemon(folder, *command, log=None, **variables):
    """Start a program that stays in the foreground; a file of the host gets its output."""
    (folder / "log").mkdir(exist_ok=True)
    with open(folder / "log" / (log or command[0]), "w", encoding="utf-8") as log:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], **variables},  # nothing from the environment of `up`
        )


def working(name, cluster):
    """Return how many hosts are ready to run jobs of a system."""
    return len(cluster.ask("d1", system(name).READY).splitlines())


def why_not(name, cluster):
    """Wait until all hosts are ready; return None, or the last lines of a daemon."""
    hosts = cluster.state["addresses"]
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if working(name, cluster) == len(hosts):
            return None
        time.sleep(0.1)
    said = []
    for host in hosts:
        for file in (cluster.folder / host).glob("log/*"):
            lines = file.read_text(errors="replace", encoding="utf-8").strip().splitlines()
            said += [("fatal" in lines[-1], file.stat().st_mtime, file, lines[-1])] * bool(lines)
    return "{2}: {3}".format(*max(said)) if said else f"nothing in {READY_S} s"

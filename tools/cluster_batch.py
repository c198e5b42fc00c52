"""What the batch systems of `cluster.py` share: where their files lie, and how one is found.

A system is a module `cluster_NAME.py` with

    NEEDED                      program: Debian package
    READY                       a command for d1 that prints one line for each host that can work
    write_files(d1, addresses)  before the hosts start: what they share
    start(folder, name)         on a host: cover paths of this machine, start daemons

What hosts share lies in the folder of d1.
"""

import importlib
import os
import pathlib
import subprocess
import time

READY_S = 30  # all hosts can work by then
SYSTEMS = ("mpi", "sge", "slurm")


def system(name):
    """The module of a batch system."""
    return importlib.import_module(f"cluster_{name}")


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def cover(path, folder):
    """Put a folder's own `path` in place of this machine's: `folder/var/log/x` over `/var/log/x`.

    Only the mount namespace of the host sees it.
    """
    own = pathlib.Path(folder, path.lstrip("/"))
    own.mkdir(parents=True, exist_ok=True)
    mount("--bind", own, path)


def start_daemon(folder, *command, **variables):
    """Start a program in the foreground, with its output in a file of the host."""
    (folder / "log").mkdir(exist_ok=True)
    with open(folder / "log" / command[0], "w") as log:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"PATH": os.environ["PATH"], **variables},  # nothing of who typed `up`
        )


def working(name, cluster):
    """How many hosts can work for a system."""
    return len(cluster.ask("d1", system(name).READY).splitlines())


def why_not(name, cluster):
    """Wait until all hosts can work for a system: None, or what a daemon has said last."""
    hosts = cluster.state["addresses"]
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if working(name, cluster) == len(hosts):
            return None
        time.sleep(0.1)
    said = []
    for host in hosts:
        for file in (cluster.folder / host).glob("log/*"):
            lines = file.read_text(errors="replace").strip().splitlines()
            said += [("fatal" in lines[-1], file.stat().st_mtime, file, lines[-1])] * bool(lines)
    return "{2}: {3}".format(*max(said)) if said else f"nothing in {READY_S} s"

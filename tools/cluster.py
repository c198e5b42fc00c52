#!/usr/bin/env python3
"""Real ssh hosts on this one machine, to rehearse a job on several.

    sudo python tools/cluster.py up --hosts 2 [--rate 1gbit] [--with slurm]   start d1, d2, …
    sudo python tools/cluster.py status                        what is up, bytes that crossed
    sudo python tools/cluster.py ssh d1 [COMMAND]              look around on one
    sudo python tools/cluster.py cut d2                        pull its cable out
    sudo python tools/cluster.py mend d2                       put it back in
    sudo python tools/cluster.py down                          leave nothing

`up` writes .cluster/hosts and .cluster/ssh_config beside tools/. From that folder:

    python tools/launch.py -n 2 -H .cluster/hosts --ssh-option=-F.cluster/ssh_config …

Each host is a set of Linux namespaces: its own network address on a bridge, host name, process
table, /home, /run and /dev/shm, and an OpenSSH server with a key made for this cluster. You log in
as `ubuntu`, with this Python first on PATH. The rest of the file system is that of this machine. A
host lives as long as the process that holds its namespaces.

`--with slurm`, `sge`, `mpi`, `yarn`, or several with commas, also puts up Debian's Slurm, Grid
Engine or Open MPI, or Hadoop's YARN. Log in to d1 (`ssh d1`) to type `sinfo`, `sbatch`, `qsub`,
`mpirun` or `yarn`. These hosts share
/home.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys

from cluster_batch import SYSTEMS, working
from cluster_network import HOST_NAME, Cluster, Problem, require, run


def status(cluster, _):
    """Print what is up, and how many bytes crossed each cable."""
    living = cluster.living()
    if "switch" not in living:
        print("no host is up")
        return
    for name, address in cluster.state["addresses"].items():
        if name not in living:  # and its cable with it
            print(f"{name} {address} dead")
            continue
        (link,) = json.loads(
            run("ip", "-j", "-s", "link", "show", name, inside=cluster.pid("switch"))
        )
        state = "up" if "UP" in link["flags"] else "cut"
        count = link["stats64"]
        sent, received = count["rx"]["bytes"], count["tx"]["bytes"]  # the bridge's end of the cable
        print(f"{name} {address} {state}, sent {sent} bytes, received {received} bytes")
    for system in cluster.state["with"]:
        print(f"{system}: {working(system, cluster)} of {len(cluster.state['addresses'])} hosts")


def up(cluster, args):
    """Start the hosts, and print how to reach them."""
    if args.hosts < 1 or args.hosts > 200:
        raise Problem(f"--hosts {args.hosts}: 1 to 200")
    cluster.up(args.hosts, args.rate, args.systems)
    with_systems = f" with {', '.join(args.systems)}" if args.systems else ""
    print(f"{' '.join(cluster.state['addresses'])} are up{with_systems}")
    print(f"-H {cluster.folder}/hosts --ssh-option=-F{cluster.folder}/ssh_config")


def down(cluster, _):
    """Stop the hosts; leave nothing."""
    cluster.down()


def ssh(cluster, args):
    """Become ssh: log in to a host, or run a command there."""
    cluster.pid(args.host)
    os.execvp("ssh", ["ssh", "-F", str(cluster.folder / "ssh_config"), args.host, *args.command])


def set_link(cluster, args):
    """Cut the cable of a host, or mend it."""
    cluster.pid(args.host)
    state = "down" if args.action == "cut" else "up"
    run("ip", "link", "set", args.host, state, inside=cluster.pid("switch"))


def systems(text):
    """Return the names of batch systems, each once."""
    names = sorted(set(text.split(",")))
    for name in names:
        if name not in SYSTEMS:
            raise argparse.ArgumentTypeError(f"{name!r}: one or more of {','.join(SYSTEMS)}")
    return names


def parse_args(argv):
    """Read the command line; a mistake ends the program."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default="", help="to have more than one cluster")
    actions = parser.add_subparsers(dest="action", required=True)
    for name, function in ACTIONS.items():
        action = actions.add_parser(name)
        # allowed before and after the action
        action.add_argument("--name", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if function in (ssh, set_link):
            action.add_argument("host")
        if function is ssh:
            action.add_argument("command", nargs=argparse.REMAINDER)
        if function is up:
            action.add_argument("--hosts", type=int, default=2)
            action.add_argument(
                "--with",
                dest="systems",
                type=systems,
                default=[],
                metavar="SYSTEMS",
                help=f"batch systems to start on the hosts, with commas: {', '.join(SYSTEMS)}",
            )
            action.add_argument("--rate", help="of each cable, as tc has it: 1gbit, 100mbit")
    args = parser.parse_args(argv)
    if args.name and (HOST_NAME.fullmatch(args.name) or not re.fullmatch(r"[\w-]+", args.name)):
        parser.error(f"--name {args.name!r}: letters, digits, - and _, and not like a host (d1)")
    return args


ACTIONS = {"up": up, "down": down, "status": status, "ssh": ssh, "cut": set_link, "mend": set_link}


def main(argv=None):
    """Do what the command line says; return the exit status."""
    args = parse_args(argv)
    cluster = Cluster(args.name)
    try:
        if args.action != "ssh":
            require(getattr(args, "systems", ()))
        guard = cluster.locked() if args.action in ("up", "down") else contextlib.nullcontext()
        with guard:
            ACTIONS[args.action](cluster, args)
    # A full disk, or a program that failed and has said why: ssh-keygen, mvn.
    except (Problem, OSError, subprocess.CalledProcessError) as problem:
        print(f"cluster: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The options of `launch.py`, and what their values look like."""

import argparse
import re

from launcher.job.job import ROLES
from launcher.options import manual


def given(text):
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is empty: is a variable not set?")
    return text


def count(text):
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
    return int(text)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def whole(text):
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def port(text):
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535")
    return int(text)


def parse_show(text):
    """Read `--show`: `worker:0,server:*`; a role alone means all of it.

    Returns
    -------
    set of (str, int or None)
        Roles, and ranks of them; None for all ranks.

    Raises
    ------
    argparse.ArgumentTypeError
    """
    wanted = set()
    for item in text.split(","):
        match = re.fullmatch(r"(\w+)(?::(\*|[0-9]+))?", item.strip())
        if not match or match[1] not in ROLES:
            raise argparse.ArgumentTypeError(
                f"{item!r} is not like worker:0, server:* or scheduler"
            )
        wanted.add((match[1], int(match[2]) if match[2] not in (None, "*") else None))
    return wanted


def make_parser(description, launchers):
    """The options; `manual.TEXT` explains how they work together.

    `launchers` are the names that `--launcher` takes.
    """
    parser = argparse.ArgumentParser(
        prog="launch.py",
        usage="launch.py -n N [-s N] [-H HOSTS] [options] COMMAND",
        description=description,
        epilog=manual.TEXT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument_group("what and where").add_argument
    add("-n", "--num-workers", type=count, required=True, metavar="N", help="number of workers")
    add(
        "-s",
        "--num-servers",
        type=count,
        metavar="N",
        help="number of servers; default: as many as workers",
    )
    add("-H", "--hostfile", type=given, metavar="HOSTS", help="a file of hosts, or names: d1,d2")
    add(
        "--launcher",
        type=given,
        metavar="NAME",
        help=f"{', '.join(launchers)}; default: ssh with -H, else local",
    )
    add(
        "--sync-dst-dir",
        type=given,
        metavar="DIR",
        help="copy this folder to DIR on every host, and run there",
    )
    add(
        "--sync-exclude",
        type=given,
        action="append",
        default=[],
        metavar="PATTERN",
        help="do not copy these files",
    )
    add(
        "--placement",
        choices=("round-robin", "fill"),
        default="round-robin",
        help="round-robin (default): hosts in turn, ignoring slots; fill: slots of a host first",
    )
    add(
        "--ssh-option",
        type=given,
        action="append",
        default=[],
        metavar="OPTION",
        help="option of ssh itself, as in --ssh-option=-Ffile",
    )
    add(
        "--launcher-option",
        type=given,
        action="append",
        default=[],
        metavar="OPTION",
        help="option of sbatch, srun, qsub or mpirun itself: --launcher-option=--partition=gpu",
    )
    add("--port", type=port, metavar="N", help="port of the scheduler; default: a free one")
    add(
        "--interface",
        type=given,
        metavar="NAME",
        help="network interface to use on the hosts; default: the one that routes",
    )
    add("--p3", action="store_true", help="MXNet's P3 transport: small slices, by priority")
    add("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="what to run in every role")
    add = parser.add_argument_group("environment of the processes").add_argument
    for name, whose in (("env", "all"), ("env-worker", "workers"), ("env-server", "servers")):
        what = {"default": [], "metavar": "NAME[=VALUE]", "help": f"for {whose}"}
        add(f"--{name}", type=given, action="append", **what)
    add = parser.add_argument_group("before the start").add_argument
    add("--check", action="store_true", help="only check whether the hosts are ready")
    add("--no-check", action="store_true", help="start without this check")
    add("--dry-run", action="store_true", help="only print a script that runs the same by hand")
    add = parser.add_argument_group("output").add_argument
    add("--log-dir", type=given, metavar="DIR", help="write a log of every process, and job.json")
    add(
        "--show",
        type=parse_show,
        metavar="WHICH",
        help="show the output of these processes only: worker:0,server:*",
    )
    add("--timestamps", action="store_true", help="put the time in front of every line")
    add = parser.add_argument_group("time limits (S in seconds) and restarts").add_argument
    add(
        "--start-timeout",
        type=seconds,
        default=600,
        metavar="S",
        help="limit for all processes to find each other; default 600, 0: no limit",
    )
    add(
        "--timeout",
        type=seconds,
        default=0,
        metavar="S",
        help="limit for the whole job; default: no limit",
    )
    add(
        "--stall-timeout",
        type=seconds,
        default=0,
        metavar="S",
        help="limit for silence of all processes; default: no limit",
    )
    add(
        "--grace",
        type=seconds,
        default=15,
        metavar="S",
        help="time for workers to save after a request to stop; default 15",
    )
    add(
        "--max-restarts",
        type=whole,
        default=0,
        metavar="N",
        help="start the whole job again after a failure, up to N times; default 0",
    )
    add(
        "--min-uptime",
        type=seconds,
        default=30,
        metavar="S",
        help="do not restart a job that failed sooner; default 30",
    )
    return parser

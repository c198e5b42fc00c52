#!/usr/bin/env python3
"""Start a distributed MXNet job, watch it, and stop it.

    launch.py -n N [-s N] [-H HOSTS] [options] COMMAND

On this machine, two workers and two servers:
    python tools/launch.py -n 2 python train.py --kv-store dist
On the hosts of a file, after a copy of this folder to each of them:
    python tools/launch.py -n 4 -H hosts --sync-dst-dir /home/me/job "python /home/me/job/train.py"
Only check whether the hosts are ready, or print what would be run:
    python tools/launch.py -n 4 -H hosts --check python train.py
    python tools/launch.py -n 4 -H hosts --dry-run python train.py
"""

import argparse
import collections
import contextlib
import os
import re
import signal
import sys

from launcher import dryrun, local, manual, ssh
from launcher.environment import EnvironmentMistake, make_mask, passed
from launcher.hosts import LOCAL, HostsError, read_hosts
from launcher.job import Job, PlacementMistake, place
from launcher.output import Console, open_closed_streams, parse_show
from launcher.record import Record, locked
from launcher.restarts import run_job
from launcher.writer import finish

AVAILABLE = ("local", "ssh")


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


def make_parser():
    """The options; `manual.TEXT` explains how they work together."""
    parser = argparse.ArgumentParser(
        prog="launch.py",
        usage="launch.py -n N [-s N] [-H HOSTS] [options] COMMAND",
        description=re.sub(r"\n    launch.py.*\n", "", __doc__),
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
        help=f"{', '.join(AVAILABLE)}; default: ssh with -H, else local",
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


def parse_args(argv=None):
    """Read the command line; every mistake ends the program with one line and status 2."""
    parser = make_parser()
    parser.print_usage = lambda file=None: None  # one line, not five
    args = parser.parse_args(argv)
    if args.command[:1] == ["--"]:
        del args.command[0]
    if args.check and not args.command:
        args.command = ["python"]
    if not args.command:
        parser.error("no command to run: it stands after the options")
    if not args.command[0].strip():
        parser.error("the command begins with an empty word: is a variable not set?")
    if args.launcher is None:
        args.launcher = "ssh" if args.hostfile else "local"
    if args.launcher not in AVAILABLE:
        parser.error(f"--launcher {args.launcher}: available are {', '.join(AVAILABLE)}")
    if args.launcher == "ssh" and not args.hostfile:
        parser.error("--launcher ssh needs the hosts: -H FILE, or -H d1,d2")
    if args.launcher == "local":
        for name in ("hostfile", "sync_dst_dir", "interface"):
            if getattr(args, name):
                parser.error(f"--{name.replace('_', '-')} is for --launcher ssh")
    if args.num_servers is None:
        args.num_servers = args.num_workers
    if args.num_servers > max(16, 4 * args.num_workers):
        parser.error(f"-s {args.num_servers}: for {args.num_workers} workers that is too many")
    for option in args.ssh_option:
        if not option.startswith("-"):
            parser.error(f"--ssh-option {option!r}: an option of ssh's, as in --ssh-option=-Ffile")
        if re.search("(?i)stricthostkeychecking[ =]*(no|off)", option):
            parser.error("--ssh-option: host keys are always checked; new hosts are accepted")
    args.sync_dst_dir = args.sync_dst_dir and re.sub("^~(/+|$)", "", args.sync_dst_dir)
    if args.sync_dst_dir is not None and re.fullmatch("[/ ]*|~.*", args.sync_dst_dir):
        parser.error(f"--sync-dst-dir {args.sync_dst_dir!r}: name a folder")
    if args.check and args.no_check:
        parser.error("--check and --no-check contradict each other")
    try:
        args.here = os.getcwd()
    except FileNotFoundError:
        parser.error("the folder you are in was deleted: cd to another")
    try:
        args.hosts = read_hosts(args.hostfile) if args.launcher == "ssh" else [LOCAL]
        args.processes = place(args.num_workers, args.num_servers, args.hosts, args.placement)
        args.roles_env = passed(args, os.environ)
        for role, rank in args.show or ():
            last = max(process.rank for process in args.processes if process.role == role)
            if rank is not None and rank > last:
                parser.error(f"--show {role}:{rank}: the last is {role}:{last}")
        if args.log_dir:
            os.makedirs(args.log_dir, exist_ok=True)
    except (HostsError, PlacementMistake, EnvironmentMistake) as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"--log-dir {args.log_dir}: {error.strerror}")
    # show ps-lite's messages
    args.verbose_ps = args.roles_env["scheduler"].get("PS_VERBOSE", "") not in ("", "0")
    return args


@contextlib.contextmanager
def handled(requests):
    """Turn signals into requests to the job; restore the handlers afterwards (for a notebook).

    Yields the list of those that asked for the end.
    """
    stops = []
    numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTSTP]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # not under nohup
        numbers.append(signal.SIGHUP)

    def note(number, _):
        if number != signal.SIGTSTP:  # a launcher stopped by Ctrl-Z would count as dead
            requests.append(number)
        if number not in (signal.SIGTSTP, signal.SIGUSR1):
            stops.append(number)

    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(argv=None):
    """Run a job from the command line; returns its exit status."""
    open_closed_streams()
    args = parse_args(argv)
    by_ssh = args.launcher == "ssh"
    job = Job(
        command=args.command,
        hosts=args.hosts,
        processes=args.processes,
        directory=args.sync_dst_dir or args.here,
        source=args.here,
        options=args,
        supervisor=(lambda host: ssh.supervisor(host, args)) if by_ssh else local.supervisor,
        env=args.roles_env,
    )
    if args.dry_run:
        print(dryrun.describe_job(job).encode(errors="backslashreplace").decode())
        return 0
    mask = make_mask(args.command, os.environ, *args.roles_env.values())
    requests = collections.deque()
    console = Console(requests, args.timestamps, args.show, mask, by_ssh)
    record = Record(args.log_dir, job, console.say, mask)
    with handled(requests) as stops, locked(args.log_dir) as is_ours:
        if is_ours:
            status = run_job(job, console, record, requests)
        else:
            status = 2
            console.say(f"--log-dir {args.log_dir}: another job keeps its logs there: name another")
        if not finish([*console.writers, record.writer], stops):
            os._exit(status)  # at its end Python waits for whoever writes to the screen
    return status


if __name__ == "__main__":
    try:
        try:
            sys.exit(main())
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # `--dry-run | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)

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

import collections
import contextlib
import os
import re
import signal
import sys

from launcher.job.environment import EnvironmentMistake, make_mask, passed
from launcher.job.hosts import LOCAL, HostsError, read_hosts
from launcher.job.job import Job, PlacementMistake, place
from launcher.options.flags import make_parser
from launcher.starting import allocation, dryrun, local, mpi, sge, slurm, ssh, submit
from launcher.telling.output import Console, open_closed_streams
from launcher.telling.record import Record, locked
from launcher.telling.writer import finish
from launcher.watching.restarts import run_job

STARTERS = {"local": local, "ssh": ssh, "mpi": mpi, "slurm": slurm, "sge": sge}
SUBMITTED = ("slurm", "sge")  # outside of an allocation
NEEDS = {  # an option: the ways of starting that it means something to
    "sync_dst_dir": ("ssh", "mpi"),
    "ssh_option": ("local", "ssh", "mpi"),
    "hostfile": ("ssh", "mpi", "slurm", "sge"),
    "interface": ("ssh", "mpi", "slurm", "sge"),
    "launcher_option": ("mpi", "slurm", "sge"),
}


def check_launcher(parser, args):
    """Is the way of starting known, and does it know the options that are given?"""
    if args.launcher == "yarn":
        parser.error("--launcher yarn is not written: --launcher ssh -H FILE can use its hosts")
    if args.launcher not in STARTERS:
        parser.error(f"--launcher {args.launcher}: available are {', '.join(STARTERS)}")
    for name, launchers in NEEDS.items():
        if getattr(args, name) and args.launcher not in launchers:
            flag = "--" + name.replace("_", "-")
            parser.error(f"{flag} is for --launcher {', '.join(launchers)}, not {args.launcher}")
    for option in args.launcher_option:
        if not option.startswith("-"):
            parser.error(f"--launcher-option {option!r}: write --launcher-option=--partition=gpu")
    args.is_submitted = "LAUNCH_SUBMITTED" in os.environ
    is_inside = {"slurm": "SLURM_JOB_ID", "sge": "PE_HOSTFILE"}.get(args.launcher)
    args.submits = is_inside is not None and is_inside not in os.environ


def find_hosts(args):
    """The hosts of the job: those given, or those of the allocation that we are in."""
    if args.launcher == "local":
        return [LOCAL]
    hosts = read_hosts(args.hostfile) if args.hostfile else allocation.find_hosts()
    for host in hosts if args.launcher != "ssh" else ():
        if host.port or host.user:
            raise HostsError(f"{host}: port and user are for --launcher ssh: leave them out")
    if args.submits:  # the batch system will choose them
        return [LOCAL] * args.num_workers
    if not hosts and args.launcher == "mpi":
        return [LOCAL]
    if not hosts:
        raise HostsError("--launcher ssh needs the hosts: -H FILE, or -H d1,d2")
    return hosts


def parse_args(argv=None):
    """Read the command line; every mistake ends the program with one line and status 2."""
    parser = make_parser(re.sub(r"\n    launch.py.*\n", "", __doc__), STARTERS)
    parser.print_usage = lambda file=None: None  # one line, not five
    argv = sys.argv[1:] if argv is None else list(argv)
    args = parser.parse_args(argv)
    args.own_words = argv[: len(argv) - len(args.command)]
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
    check_launcher(parser, args)
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
        args.hosts = find_hosts(args)
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
    numbers += [signal.SIGUSR2, signal.SIGXCPU]  # Grid Engine is going to kill the job
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


def submit_job(args):
    """Hand the job to a batch system; returns its exit status."""
    system, environ = STARTERS[args.launcher], dict(os.environ)
    try:
        text = submit.script(system, args, environ)
    except (HostsError, EnvironmentMistake, submit.Refused) as error:
        print(f"launch.py: error: {error}", file=sys.stderr)
        return 2
    if args.dry_run:
        print(text.rstrip())
        return 0
    requests = collections.deque()
    console = Console(requests)
    with handled(requests) as stops:
        status = submit.run(system, text, args, environ, console, requests)
        if not finish(console.writers, stops):
            os._exit(status)
    return status


def main(argv=None):
    """Run a job from the command line; returns its exit status."""
    open_closed_streams()
    args = parse_args(argv)
    if args.submits:
        return submit_job(args)
    job = Job(
        command=args.command,
        hosts=args.hosts,
        processes=args.processes,
        directory=args.sync_dst_dir or args.here,
        source=args.here,
        options=args,
        starter=STARTERS[args.launcher],
        env=args.roles_env,
    )
    if args.is_submitted:
        job.id = os.environ["LAUNCH_SUBMITTED"]  # the same when the batch system starts it again
        job.earlier_tries = STARTERS[args.launcher].earlier_tries(os.environ)
        job.watchers = allocation.watchers()
    if args.dry_run:
        print(dryrun.describe_job(job).encode(errors="backslashreplace").decode())
        return 0
    mask = make_mask(args.command, os.environ, *args.roles_env.values())
    requests = collections.deque()
    console = Console(requests, args.timestamps, args.show, mask, args.launcher != "local")
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

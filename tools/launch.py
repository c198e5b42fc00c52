#!/usr/bin/env python3
"""Start a distributed MXNet job."""

import argparse
import collections
import os
import signal
import sys

from launcher import local
from launcher.attempt import Attempt, Failure
from launcher.hosts import LOCAL
from launcher.job import Job, place
from launcher.output import Console

AVAILABLE = ("local",)


def parse_args(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False, usage="%(prog)s -n N [options] COMMAND ..."
    )
    parser.add_argument("-n", "--num-workers", type=int, required=True)
    parser.add_argument("-s", "--num-servers", type=int)
    parser.add_argument("-H", "--hostfile")
    parser.add_argument("--sync-dst-dir")
    parser.add_argument("--launcher")
    parser.add_argument("--grace", type=float, default=15)
    parser.add_argument("--timestamps", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if args.launcher is None:
        args.launcher = "ssh" if args.hostfile else "local"
    if args.launcher not in AVAILABLE:
        parser.error(f"--launcher {args.launcher}: available are {', '.join(AVAILABLE)}")
    if args.num_servers is None:
        args.num_servers = args.num_workers
    for name in ("num_workers", "num_servers"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')}: must be at least 1")
    if args.command[:1] == ["--"]:
        del args.command[0]
    if not args.command:
        parser.error("no command to run")
    return args


def main(argv=None):
    args = parse_args(argv)
    processes = place(args.num_workers, args.num_servers, [LOCAL])
    job = Job(args.command, [LOCAL], processes, os.getcwd(), args)
    job.local_env = local.environment()
    console = Console(args.timestamps)
    requests = collections.deque()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, lambda number, _: requests.append(number))
    try:
        return Attempt(job, console, local.supervisor_argv, requests).run()
    except Failure as failure:
        console.say(str(failure))
        return failure.status


if __name__ == "__main__":
    sys.exit(main())

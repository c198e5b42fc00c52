"""Start a distributed MXNet job, watch it, and stop it.

On this machine, two workers and two servers:
    python tools/launch.py -n 2 python train.py
On the hosts of a file, after a copy of this folder to each of them:
    python tools/launch.py -n 4 -H hosts --sync-dst-dir /home/me/job "python /home/me/job/train.py"
By Slurm, with a log of each process; start again up to three times after a failure:
    python tools/launch.py -n 4 --launcher slurm --job-dir logs --max-restarts 3 python train.py
Only check whether the hosts are ready, or print what would be run:
    python tools/launch.py -n 4 -H hosts --check python train.py
    python tools/launch.py -n 4 -H hosts --dry-run python train.py
"""

import collections
import os
import signal
import sys

from gluon_launch.job.masking import make_mask
from gluon_launch.job.statuses import USAGE, UsageError
from gluon_launch.job.variables import overridden
from gluon_launch.options.flags import create_parser
from gluon_launch.options.plan import plan
from gluon_launch.starting import allocation
from gluon_launch.starting.dryrun import describe_job
from gluon_launch.starting.submit import script, submit
from gluon_launch.telling.bottom import can_be_drawn
from gluon_launch.telling.output import Console, mistake, open_streams
from gluon_launch.telling.progress import Progress
from gluon_launch.telling.record import Record, locked, make_folder
from gluon_launch.telling.writer import finish
from gluon_launch.watching.restarts import run_job
from gluon_launch.watching.session import Session
from gluon_launch.watching.signals import noted


def program():
    """Return what this program was started as: `launch.py`, or a name that it has if installed."""
    name = os.path.basename(sys.argv[0])
    names = {"gluon-launch": "gluon-launch", "__main__.py": "python -m gluon_launch"}
    return names.get(name, "launch.py")


def parse_args(argv=None):
    """Read the command line; a mistake ends the program with one line and status 2."""
    return create_parser(program(), __doc__).parse_args(argv)


def main(argv=None):
    """Run a job from the command line; return its exit status."""
    open_streams()
    argv = sys.argv[1:] if argv is None else list(argv)
    args = parse_args(argv)
    try:
        job = plan(args)
        make_folder(args.job_dir)
        if job.is_to_submit:
            own_words = argv[: len(argv) - len(args.command)]
            return hand_over(job, *script(job, own_words))
    except UsageError as error:
        print(end=mistake(f"{program()}: error: {error}\n", args.color), file=sys.stderr)
        return USAGE
    if args.dry_run:
        print(describe_job(job).encode(errors="backslashreplace").decode())
        return 0
    return watch_over(job)


def watch_over(job):
    """Start a job, watch it to its end and tell of it; return its exit status."""
    options, requests = job.options, collections.deque()
    mask = make_mask(job.command, os.environ, *job.env.values())
    progress = None
    if not options.no_progress and can_be_drawn(sys.stdout, sys.stderr, os.environ):
        progress = Progress(job.count("worker"), job.began)
    console = Console(
        requests,
        options.timestamps,
        options.show,
        mask,
        job.way.tells_hosts,
        options.color,
        progress,
    )
    record = Record(options.job_dir, job, console.say, mask)
    with noted(requests) as stops, locked(options.job_dir) as is_ours:
        console.say(overridden(os.environ, job.way.knows))
        if not (options.launcher or options.hostfile):
            console.say(allocation.unused())
        if job.backend == "horovod" and options.num_servers is None:
            console.say("the program imports Horovod: no servers are started (as with -s 0)")
        if is_ours:
            status = run_job(Session(job, console, record, requests))
            console.end_progress()
        else:
            status = USAGE
            what = "another job keeps its logs there: name another"
            console.say(f"--job-dir {options.job_dir}: {what}")
        return ended(status, [*console.writers, record.writer], stops)


def hand_over(job, text, words, environ):
    """Submit a job to its batch system and follow it; return its exit status."""
    if job.options.dry_run:
        print(text.rstrip())
        return 0
    requests = collections.deque()
    console = Console(requests)
    with noted(requests) as stops:
        return ended(submit(job, text, words, environ, console, requests), console.writers, stops)


def ended(status, writers, stops):
    """Wait until all output is taken; then give back the exit status."""
    if not finish(writers, stops):
        os._exit(status)  # at its end Python waits for whoever writes to the screen
    return status


def run():
    """Run a job from the command line, and end this process with its exit status."""
    try:
        try:
            sys.exit(main())
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:  # before the job, or at its very end: else it is a request
        sys.exit(128 + signal.SIGINT)
    except OSError as error:  # such as a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `--dry-run | head` has seen enough
            sys.exit(128 + signal.SIGPIPE)
        sys.exit(f"{program()}: error: {error}")

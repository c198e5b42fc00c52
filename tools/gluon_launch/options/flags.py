"""The options of `launch.py`, one line each; `manual.py` explains how they work together."""
# ruff: noqa: E501  a table has one line an entry

import argparse
import difflib
import os
import re
import sys
import textwrap

from gluon_dist import contract

from gluon_launch.job.values import (
    REQUIRED,
    Flag,
    count,
    given,
    port,
    roles,
    seconds,
    servers,
    size,
    whole,
)
from gluon_launch.options import manual
from gluon_launch.starting.ways import WAYS
from gluon_launch.telling import colour
from gluon_launch.telling.columns import kept_together, spaced
from gluon_launch.telling.output import mistake

PLACEMENTS = ("round-robin", "fill")
COMMON = (  # the options of --help; --help-all has all
    *("--num-workers", "--num-servers", "--hostfile", "--launcher", "--sync-dst-dir", "--env"),
    *("--check", "--dry-run", "--job-dir", "--timeout", "--stall-timeout", "--max-restarts"),
    "command",
)


# fmt: off
FLAGS = {
    "what and where": (
        Flag("-n --num-workers", count, REQUIRED, "N", "number of workers"),
        Flag("-s --num-servers", servers, None, "N", "number of servers; default: as many as workers, 0 if the program imports Horovod"),
        Flag("-H --hostfile", given, None, "HOSTS", "a file of hosts, or names: d1,d2 or d[1-4]"),
        Flag("--launcher", given, None, "NAME", f"{', '.join(WAYS)}; default: ssh with -H, else local"),
        Flag("--sync-dst-dir", given, None, "DIR", "copy this folder to DIR on every host, and run there"),
        Flag("--sync-exclude", given, [], "PATTERN", "do not copy these files"),
        Flag("--sync-max-size", size, 100_000_000, "SIZE", "do not copy larger files; default 100MB; none: no limit"),
        Flag("--placement", PLACEMENTS, "round-robin", None,
             "round-robin (default): hosts in turn, ignoring slots; fill: slots of a host first"),
        Flag("--ssh-option", given, [], "OPTION", "option of ssh itself, as in --ssh-option=-Ffile"),
        Flag("--launcher-option", given, [], "OPTION",
             "option of sbatch, srun, qsub, mpirun or DistributedShell itself: --launcher-option=--partition=gpu"),
        Flag("--port", port, None, "N", "port of the scheduler; default: a free one"),
        Flag("--interface", given, None, "NAME", "network interface of the hosts: ib0; or several, the first that a host has: ib0,eth1; default: DMLC_INTERFACE, else the one that routes"),
        Flag("--p3", bool, False, None, "MXNet's P3 transport: small slices, by priority"),
        Flag("command", argparse.REMAINDER, None, "COMMAND", "what to run in every role"),
    ),
    **{f"--launcher {way.name}": way.flags for way in WAYS.values() if way.flags},
    "environment of the processes": (
        Flag("--env", given, [], "NAME[=VALUE]", "a variable for all processes"),
        Flag("--env-worker", given, [], "NAME[=VALUE]", "one for workers"),
        Flag("--env-server", given, [], "NAME[=VALUE]", "one for servers"),
    ),
    "before the start": (
        Flag("--check", bool, False, None, "only check whether the hosts are ready"),
        Flag("--no-check", bool, False, None, "start without this check"),
        Flag("--no-prepare", bool, False, None, "leave MXNet as it is in programs that do not import gluon_dist"),
        Flag("--dry-run", bool, False, None, "only print a script that runs the same by hand"),
    ),
    "output": (
        Flag("--job-dir", given, None, "DIR", "write a log of every process, and job.json; its older name --log-dir works, too"),
        Flag("--show", roles, None, "WHICH", "show the output of these processes only: worker:0,server:*"),
        Flag("--timestamps", bool, False, None, "put the time in front of every line"),
        Flag("--no-progress", bool, False, None, "draw nothing at the bottom of the terminal"),
        Flag("--color", ("auto", "always", "never"), "auto", None,
             "auto: on a terminal, unless NO_COLOR is set; FORCE_COLOR: everywhere"),
    ),
    "time limits (S in seconds), restarts, errors": (
        Flag("--start-timeout", seconds, 600, "S", "limit for all processes to find each other; default 600, 0: no limit"),
        Flag("--timeout", seconds, 0, "S", "limit for the whole job; default: no limit"),
        Flag("--stall-timeout", seconds, 0, "S", "limit for silence of all processes; default: no limit"),
        Flag("--grace", seconds, contract.SAVE_GRACE_S, "S", "time for workers to save after a request to stop; default 15"),
        Flag("--max-restarts", whole, 0, "N", "start the whole job again after a failure that came after --min-uptime (30 s), up to N times; default 0"),
        Flag("--min-uptime", seconds, 30, "S", "do not restart a job that failed sooner; default 30"),
        Flag("--ignore-server-errors", bool, False, None, "go on after an update that failed on a server, as MXNet does; they are counted"),
    ),
}
# fmt: on
# Older names of options, here and in MXNet's launcher, whose nearest name would mislead.
OLDER = {
    "--log-dir": "--job-dir",
    "--host-ip": "--interface",
    "--slurm-worker-nodes": "--launcher-option=--nodes",
}


# Options of other launchers, and how that is said here.
ELSEWHERE = {
    **dict.fromkeys(("-np", "--np", "--num-proc"), "-n N, the number of workers"),
    **dict.fromkeys(("--nproc_per_node", "--nproc-per-node"),
                    "-n N, the workers of all hosts together"),
    **dict.fromkeys(("--nnodes", "--hosts", "--host", "--machinefile"), "-H d1,d2 or -H FILE"),
    **dict.fromkeys(("--node_rank", "--node-rank", "--master_addr", "--master-addr",
                     "--master_port", "--master-port", "--rdzv_endpoint", "--rdzv-endpoint"),
                    "-H d1,d2: start it once, and it reaches all hosts"),
}  # fmt: skip


class _Parser(argparse.ArgumentParser):
    words = ()  # the command line

    def parse_args(self, args=None, namespace=None):
        """Read the command line; of an option that is not known, suggest the nearest."""
        self.words = sys.argv[1:] if args is None else [*args]
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            name = unknown[0].partition("=")[0]
            self.error(f"unknown option {name!r}{_suggestion(name)}")
        older = vars(options).pop("log_dir")
        if older and options.job_dir and older != options.job_dir:
            names = f"--job-dir {options.job_dir} and --log-dir {older}"
            self.error(f"{names} are two names of one option: give one folder")
        options.job_dir = options.job_dir or older
        return options

    def format_help(self):
        """Return the help, in colours where they are wanted."""
        text = super().format_help()
        is_wanted = colour.is_wanted(self._color(), sys.stdout, os.environ)
        return colour.painted_help(text) if is_wanted else text

    def exit(self, status=0, message=None):
        """End the program; `message` is a mistake."""
        super().exit(status, message and mistake(message, self._color()))

    def _color(self):
        """Return the value of `--color`, which may not have been read yet."""
        words = " ".join(self.words)
        return (re.findall(r"(?:^| )--color[ =](\w+)", words) or ["auto"])[0]

    def print_usage(self, file=None):
        """Print nothing: a mistake is told in one line, not in five."""

    def error(self, message):
        """Tell a mistake in one line."""
        name = next((w.partition("=")[0] for w in self.words if w.startswith("-")), None)
        if message.startswith("argument -n/--num-workers: 'p"):  # -np2, or -np behind other options
            name = "-np" if any(word.startswith("-np") for word in self.words) else name
        if name in ELSEWHERE:
            super().error(f"{name}: here that is {ELSEWHERE[name]}")
        if message.endswith("required: -n/--num-workers"):
            if self.words[:1] and not self.words[0].startswith("-"):
                message += ", before the command: -n 2 python train.py"
            elif name and name not in _names():
                message = f"unknown option {name!r}{_suggestion(name)}"
            else:
                message += ", the number of workers: -n 2"
        found = re.fullmatch(r"argument (?:-\w/)?(--[\w-]+): expected one argument", message)
        if found:
            message += f", with = between if it begins with a dash: {found[1]}=-…"
        super().error(message)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog):
        super().__init__(prog, max_help_position=30)  # as wide as -H HOSTS, --hostfile HOSTS

    def _split_lines(self, text, width):
        """Break lines between words only, and not within brackets."""
        return spaced(textwrap.wrap(kept_together(text), width, break_on_hyphens=False))


class _ShortHelp(argparse.Action):
    """Prints the options that most need, on one screen."""

    def __call__(self, parser, namespace, values, option_string=None):
        short = _new_parser(parser.prog, parser.description, manual.MORE.format(parser.prog))
        short.words = parser.words
        for flags in FLAGS.values():
            for flag in flags:
                if flag.names.split()[-1] in COMMON:
                    short.add_argument(*flag.names.split(), **_settings(flag))
        short.print_help()
        parser.exit()


class _Completion(argparse.Action):
    """Prints what lets a shell complete the options."""

    def __call__(self, parser, namespace, values, option_string=None):
        from gluon_launch.options.completion import script

        print(script(), end="")
        parser.exit()


def _new_parser(program, description, epilog):
    """Return a parser without flags, whose help is the program's docstring."""
    parser = _Parser(
        prog=program,
        usage=f"{program} -n N [-s N] [-H HOSTS] [options] COMMAND",
        description=description.replace("python tools/launch.py", program),
        epilog=epilog,
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.color = False  # of Python 3.14
    return parser


def create_parser(program, description):
    """Create the parser of the command line, for a program as the user has called it."""
    parser = _new_parser(program, description, manual.TEXT)
    for title, flags in FLAGS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            group.add_argument(*flag.names.split(), **_settings(flag))
    parser.add_argument("-h", "--help", action=_ShortHelp, nargs=0, help="what most need")
    parser.add_argument("--help-all", action="help", help="all options, and how they work together")
    parser.add_argument("--completion", action=_Completion, nargs=0,
                        help='for bash and zsh: eval "$(gluon-launch --completion)"')  # fmt: skip
    version = f"{program} {contract.VERSION}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--log-dir", type=given, help=argparse.SUPPRESS)  # the older --job-dir
    return parser


def _suggestion(name):
    """Return what may have been meant, or that `--help` tells."""
    if name in ELSEWHERE:
        return f": here that is {ELSEWHERE[name]}"
    names = {**{name: name for name in _names()}, **OLDER}
    near = difflib.get_close_matches(name.lower(), names, 1, 0.7)
    return f"; did you mean {names[near[0]]}?" if near else "; --help lists the options"


def _names():
    """Return all names of options."""
    return [n for flags in FLAGS.values() for flag in flags for n in flag.names.split()]


def _settings(flag):
    """Return what argparse is told of a flag."""
    if flag.takes is bool:
        return {"action": "store_true", "help": flag.help}
    settings = {"metavar": flag.shown, "help": flag.help, "default": flag.default}
    if flag.takes is argparse.REMAINDER:
        settings["nargs"] = flag.takes
    elif isinstance(flag.takes, tuple):
        settings["choices"] = flag.takes
    else:
        settings["type"] = flag.takes
    if flag.default is REQUIRED:
        settings.update(default=None, required=True)
    if isinstance(flag.default, list):
        settings["action"] = "append"
    return settings

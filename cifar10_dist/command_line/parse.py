"""Reading the command line: the parser of the table ``FLAGS``, then defaults and checks."""

import argparse
import difflib
import re
import textwrap

from gluon_dist.common.errors import UsageError

from command_line.checks import check
from command_line.defaults import fill_in, warn_of_older_examples
from command_line.flags import ALL, FLAGS, WITHOUT_EFFECT
from command_line.options import explain_defaults

DESCRIPTION = """\
Train a network on CIFAR-10, on one device, several devices, or several workers.

  python cifar10_dist.py                                   one process: all GPUs, or the CPU
  python cifar10_dist.py --cpus 2                          two devices, rehearsed on the CPU
  python ../tools/launch.py -n 2 -s 2 --launcher local "python cifar10_dist.py"
                                                           two workers, two servers
"""
ENDING = """\
A checkpoint is PATH-000N.params, .state and .json, with PATH-symbol.json. MXNet itself reads
.params and -symbol.json. Send SIGTERM or SIGUSR1 to any worker to stop the job. With
--model-prefix, all workers then stop after the same step (dist_async: soon), save
PATH-000N-STEP, and end with status 75. When the launcher starts the job again (--max-restarts),
it continues from the newest checkpoint that the job has saved itself.

Exit status: 0 done; 2 the command line or its files are wrong; 75 stopped on request after
saving everything, start me again; any other: failed.
"""


def parse_args(argv=None):
    """Return the values of all flags, read from the command line, completed and checked.

    Returns
    -------
    argparse.Namespace
        Nobody writes into it afterwards.

    Raises
    ------
    UsageError
        With one line that names the flag and what it takes.
    """
    given, unknown = _create_parser().parse_known_args(argv)  # not given: None
    if unknown:
        name = unknown[0].partition("=")[0]
        raise UsageError(f"unknown argument {name!r}{_suggestion(name)}")
    args = fill_in(given)
    check(args, given)
    warn_of_older_examples(given)
    return args


class Parser(argparse.ArgumentParser):
    """Raises :class:`UsageError` for a mistake."""

    def error(self, message):
        """Raise instead of printing the usage and exiting: see :func:`failure.exit_with`."""
        raise UsageError(message)


def _create_parser():
    """Return the parser of the table ``FLAGS``, and of flags without effect."""
    parser = Parser(
        prog="cifar10_dist.py",
        description=DESCRIPTION,
        epilog=f"{ENDING}\n{_recipe()}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for title, flags in FLAGS.items():
        group = parser.add_argument_group(title)
        for flag in flags:
            _add(group, flag)
    for name in WITHOUT_EFFECT:
        parser.add_argument(name, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def _recipe():
    """Return what ``--network fast`` sets, as lines of the help."""
    nothing = dict.fromkeys(flag.attribute for flag in ALL)
    (line,) = explain_defaults(fill_in(argparse.Namespace(**{**nothing, "network": "fast"})))
    together = re.sub(r"(--\S+) ", r"\1\0", line)  # a flag and its value
    text = f"{together} (the warm-up: 0.23 of all epochs)"
    return textwrap.fill(text, 95, break_on_hyphens=False).replace("\0", " ")


def _suggestion(name):
    """Return the end of the message: a flag that is spelt alike, or ``--help``."""
    names = [*WITHOUT_EFFECT, *(n for flag in ALL for n in flag.names.split())]
    near = difflib.get_close_matches(name.lower(), names, 1, 0.7)
    return f"; did you mean {near[0]}?" if near else "; --help lists the flags"


def _add(group, flag):
    """Add a flag of the table to a group of the parser."""
    options = {"metavar": flag.shown, "help": flag.help}
    if flag.default not in (None, ""):
        options["help"] += f"; default {flag.default}"
    if isinstance(flag.takes, tuple):
        options.update(choices=flag.takes, type=type(flag.takes[0]))
    else:
        options["type"] = flag.takes
    if flag.alone is not None:
        options.update(nargs="?", const=flag.alone)
    group.add_argument(*flag.names.split(), **options)

"""The real parsers of the programs, taken from the programs themselves."""

import argparse
import runpy
import sys
from unittest import mock

from launching import ROOT


class _Found(BaseException):  # no program catches it as an error of its own
    pass


def _stop(parser, *_, **__):
    raise _Found(parser)


def parser_of(program):
    """The parser that `program`, a path in the project, reads its command line with."""
    path = str(ROOT / program)
    stopping = mock.patch.object(argparse.ArgumentParser, "parse_known_args", _stop)
    with stopping, mock.patch.object(sys, "argv", [path]):
        try:
            runpy.run_path(path)["main"]()
        except _Found as found:
            return found.args[0]
    raise AssertionError(f"{program} reads no command line")


def flags_of(parser):
    """The names of its options, such as `--num-epochs`, and of its subcommands' options."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found.update(*map(flags_of, action.choices.values()))
    return found

"""A program that does not import ``gluon_dist``: it is made right as if it did, and no faster.

``startup/sitecustomize.py`` calls this where such a program imports mxnet.
"""

import os
import re
import sys

from gluon_dist.setup import changes, claim, environment, finder

VERSION = "1.9.1"


def execute(execute_module, module):
    """Execute mxnet in a process that is ready for it, then correct it.

    Not in a child of a worker, such as one that loads data: there MXNet stays as it is.
    """
    finder.Finder.has_worked = True  # if the program imports gluon_dist later
    found = version_of(module)
    is_ours = claim.take()
    if found != VERSION or not is_ours:
        if is_ours and environment.is_first_worker():
            say(f"MXNet {found} stays as it is: what makes {VERSION} right was not tried with it")
        execute_module(module)
        return
    _or_end(changes.make_ready, (), is_stranger=True)
    execute_module(module)
    _or_end(changes.correct, (module,))


def version_of(module):
    """Return the version of an mxnet that is not executed yet; "?" if it is unknown."""
    path = os.path.join(os.path.dirname(module.__spec__.origin or ""), "libinfo.py")
    try:
        with open(path, encoding="utf-8") as file:
            found = re.search(r"""^__version__ = ['"](.*)['"]""", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else "?"


def say(text):
    """Print a line on standard error."""
    print(f"gluon_dist: {text}", file=sys.stderr, flush=True)


def _or_end(function, arguments, **options):
    """Call a function; if it fails, end this process at once."""
    try:
        function(*arguments, **options)
    except SystemExit as error:  # it has said why
        if isinstance(error.code, str):
            say(error.code)
        os._exit(error.code if isinstance(error.code, int) else 1)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        say(f"MXNet could not be made ready: {error!r}; --no-prepare starts the job without that")
        os._exit(1)

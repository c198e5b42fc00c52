"""Start the processes of a job on this machine."""

import os
import pathlib
import shutil
import sys

from launcher.remote.bootstrap import REMOTE_PYTHON


def supervisor(_host=None, _options=None):
    """The command that starts the supervisor, and its environment, which the processes inherit.

    In a command `python` means this Python if it belongs to a virtual environment, activated or
    not, or if no other program has that name.
    """
    env = dict(os.environ)
    if sys.prefix != sys.base_prefix or not shutil.which("python"):
        folder = str(pathlib.Path(sys.executable).parent)
        env["PATH"] = os.pathsep.join([folder, env.get("PATH", os.defpath)])
    return [sys.executable, "-I", "-c", REMOTE_PYTHON], env


def address(_host, _ready):
    """Where other hosts find this one: there are none."""
    return ""

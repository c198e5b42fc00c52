"""Start the processes of a job on this machine."""

import os
import pathlib
import shutil
import sys

from launcher.connection import REMOTE_PYTHON


def supervisor_argv(host, options):
    """The command that starts the supervisor."""
    return [sys.executable, "-c", REMOTE_PYTHON]


def environment():
    """This process's environment, with `python` meaning this Python where that is in doubt."""
    env = dict(os.environ)
    in_venv = sys.prefix != sys.base_prefix
    if in_venv or not shutil.which("python"):
        folder = str(pathlib.Path(sys.executable).parent)
        env["PATH"] = os.pathsep.join([folder, env.get("PATH", os.defpath)])
    return env

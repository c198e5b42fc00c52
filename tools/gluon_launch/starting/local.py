"""Start the processes of a job on this machine."""

import os
import pathlib
import shutil
import sys

from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting.way import Way


def environment():
    """Our own environment, in which `python` means the Python that a user expects.

    That is this one if it belongs to a virtual environment, activated or not, or if no other
    program has that name.
    """
    env = dict(os.environ)
    if sys.prefix != sys.base_prefix or not shutil.which("python"):
        folder = str(pathlib.Path(sys.executable).parent)
        env["PATH"] = os.pathsep.join([folder, env.get("PATH", os.defpath)])
    return env


class Local(Way):
    """See `Way`."""

    name = "local"
    options = ("ssh_option",)  # for scripts that give it always
    tells_hosts = False
    may_translate = True
    keeps_environment = True

    def supervisor(self, host, job):
        return [sys.executable, "-I", "-c", REMOTE_PYTHON], environment()

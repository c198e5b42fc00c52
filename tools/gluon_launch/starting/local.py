"""Start the processes of a job on this machine."""

import os
import pathlib
import shutil
import sys

from gluon_launch.job.hosts import LOCAL
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting.way import Way


def own_environment():
    """Return our environment, in which `python` is the Python that the user expects.

    That is this Python if it belongs to a virtual environment, activated or not, or if there is no
    other program `python`.
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

    def supervisor(self, host, job):
        return [sys.executable, "-I", "-c", REMOTE_PYTHON], self.inherited()

    def find_hosts(self, options, environ):
        return [LOCAL]

    def inherited(self):
        return own_environment()

    def doubtful(self, connections):
        """Return none: it is this machine."""
        return []

"""Start the supervisors of other hosts with OpenSSH's own client.

Nothing secret is on these command lines: environments travel over standard input.
"""

import functools
import re
import subprocess

from launcher.remote.bootstrap import REMOTE_PYTHON
from launcher.starting.way import Way

CONNECT_S = 10


def ssh_argv(host, options):
    """The ssh command for a host, up to the host's name."""
    words = []
    for option in options.ssh_option:
        split = re.fullmatch(r"(-\w)\s+(.*)", option)  # '-F file' as well as -Ffile
        words += split.groups() if split else [option]
    if host.port:
        words += ["-p", str(host.port)]
    if host.user:
        words += ["-l", host.user]
    words += [
        "-T",
        "-oBatchMode=yes",  # never ask: nobody could answer on ten hosts at once
        f"-oConnectTimeout={CONNECT_S}",
        "-oServerAliveInterval=3",
        "-oServerAliveCountMax=3",
        "-oClearAllForwardings=yes",  # two connections cannot share their ports
        "-oRemoteCommand=none",
    ]
    if not _strict(tuple(words), host.name):
        words.append("-oStrictHostKeyChecking=accept-new")
    return ["ssh", *words]


@functools.lru_cache(maxsize=None)
def _strict(words, name):
    """Does the user's own configuration refuse unknown hosts? If so it is respected."""
    try:
        done = subprocess.run(
            ["ssh", *words, "-G", "--", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False
    return re.search(rb"^stricthostkeychecking (true|yes)$", done.stdout, re.MULTILINE) is not None


class Ssh(Way):
    """See `Way`."""

    name = "ssh"
    programs, package = ("ssh",), "openssh-client"
    options = ("sync_dst_dir", "ssh_option", "hostfile", "interface")
    takes_logins = True

    def supervisor(self, host, job):
        return [*self.login(host, job), f"exec python3 -I -c '{REMOTE_PYTHON}'"], None

    def login(self, host, job):
        return [*ssh_argv(host, job.options), "--", host.name]

    def address(self, host, ready):
        """The address at which ssh found the host."""
        return ((ready["ssh"] or "").split() + [""] * 3)[2]

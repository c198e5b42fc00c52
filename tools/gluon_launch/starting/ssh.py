"""Start the supervisors of other hosts with OpenSSH's own client.

Nothing secret is on these command lines: environments travel over standard input.
"""

import functools
import re
import subprocess

from gluon_launch.job.statuses import UNREACHABLE
from gluon_launch.remote.bootstrap import REMOTE_PYTHON
from gluon_launch.starting.way import Way, sharing

CONNECT_S = 10
# Said where the user's configuration has another value: ssh before 8.7 does not know these.
NEEDED = {"stdinnull": "no", "forkafterauthentication": "no", "sessiontype": "default"}
SILENT = ("SILENT", "QUIET", "FATAL", "ERROR")  # below INFO ssh does not say why it ends
HINTS = (  # see `Way.hints`
    (r"^(localhost|127\.\d+\.\d+\.\d+)(:\d+)?: no connection", UNREACHABLE,
     "to start all on this machine, leave -H out"),
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION", None,
     "the host's key is not the one you know: if it was reinstalled, ssh-keygen -R HOST"),
    (r"Permission denied \(", None,
     "ssh has no key that this host takes: try `ssh HOST`, then ssh-copy-id or --ssh-option=-i…"),
    (r"no connection: (kex_exchange_identification|Connection (closed|reset) by (?!UNKNOWN))",
     UNREACHABLE,
     "its ssh server takes no more logins at once: raise MaxStartups in its sshd_config"),
    (r"Connection refused", UNREACHABLE,
     "no ssh server listens there: is it started, is the port right?"),
    (r": ssh led to ", None,
     "is the ControlPath in your ssh configuration the same for several hosts? It needs %C"),
    (r"no connection: no answer within", UNREACHABLE,
     "does `ssh HOST true` end by itself? Not if a .bashrc there starts another shell (exec fish): "
     "let it do so only on a terminal, [ -t 0 ] && exec fish"),
    (r"what was sent first has not arrived", None,
     "something else reads the input that ssh passes on: a LocalCommand in ssh's configuration "
     "(--ssh-option=-oPermitLocalCommand=no), or the .bashrc there (`read`, `cat`)"),
    (r"is your shell clean", None,
     "the login there prints something: `ssh HOST true` must print nothing (see its .bashrc)"),
)  # fmt: skip


def ssh_argv(host, options):
    """The ssh command for a host, up to the host's name."""
    words = []
    for option in options.ssh_option:
        split = re.fullmatch(r"(-\w)\s+(.*)", option)  # '-F file' as well as -Ffile
        words += split.groups() if split else [option] * (option != "-q")  # else it says nothing
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
    own = settings(tuple(words), host.name)
    # In front: of two values ssh takes the first.
    words[:0] = [
        f"-o{name}={value}" for name, value in NEEDED.items() if own.get(name) not in (None, value)
    ]
    if own.get("loglevel") in SILENT:
        words.insert(0, "-oLogLevel=INFO")
    if own.get("stricthostkeychecking") not in ("true", "yes"):  # who refuses unknown hosts may
        words.append("-oStrictHostKeyChecking=accept-new")
    return ["ssh", *words]


@functools.lru_cache(maxsize=None)
def settings(words, name):
    """What ssh's configuration has for a host: {lower-case name: value}."""
    try:
        done = subprocess.run(
            ["ssh", *words, "-G", "--", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return {}
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return dict(line.partition(" ")[::2] for line in lines)


class Ssh(Way):
    """See `Way`."""

    name = "ssh"
    programs, package = ("ssh",), "openssh-client"
    options = ("sync_dst_dir", "ssh_option", "hostfile", "interface")
    host_fields = ("port", "user")
    hints = HINTS
    uses_ssh = True

    def supervisor(self, host, job):
        return [*self.login(host, job), f"exec python3 -I -c '{REMOTE_PYTHON}'"], None

    def login(self, host, job):
        return [*self.remote_shell(host, job), "--", host.name]

    def remote_shell(self, host, job):
        return ssh_argv(host, job.options)

    def doubtful(self, connections):
        return sharing(connections)

    def address(self, host, ready):
        """The address at which ssh found the host."""
        return ((ready["ssh"] or "").split() + [""] * 3)[2]

    def wanted(self, host, job):
        """What ssh's configuration has for the name."""
        *words, _, name = self.login(host, job)
        return settings(tuple(words[1:]), name).get("hostname", name)

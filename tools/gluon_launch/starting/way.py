"""What the launcher asks of a way of starting.

A new way of starting is a class of this kind in a file of its own, and a row in `ways.py`. It must
write `supervisor`; all else is right as it is for hosts that a command reaches by their names, as
rsh would. A batch system is a class of the kind in `batch.py`.
"""

import abc
import os
import re
import shlex
import socket

from gluon_launch.job.hosts import read_hosts
from gluon_launch.job.statuses import UsageError
from gluon_launch.starting import allocation

# Why an option of `--launcher-option` is refused.
ARRAY = "a job array would be several jobs: start each of them"
OUTPUT = "the launcher reads the output: --job-dir says where it is kept"
# What ssh says of a host on the way to another one stands before its last line.
CAUSE = re.compile(r"^ssh: |Permission denied \(|verification failed|^\w+Error\b")


class Way(abc.ABC):
    """A way to start the supervisor of each host."""

    name = None  # what `--launcher` calls it
    about = ""  # its lines in `--help-all`, under "ways of starting"
    programs, package = (), None  # what it runs here, and the package that has that
    # Of the command line's options those that not all ways know; `sync_dst_dir`, with which
    # rsync copies, needs `remote_shell`.
    options = ("hostfile", "interface")
    host_fields = ()  # what of a host it heeds beside the name: "port", "user"
    flags = ()  # each a `Flag`: options of its own
    hints = ()  # rows as those of `telling/hints.py`, for what only its programs say
    # By the pattern of a `--launcher-option` why it is not passed on: with it the programs would
    # do something else than they are run for.
    refused = {}  # noqa: RUF012
    uses_ssh = False  # an advice about ssh is of use
    tells_hosts = True  # the lines of a process are shown with the name of its host
    signals_hosts = False  # who gave the hosts asks for them back by a signal to the supervisors
    deaf = ()  # the roles that ignore TERM: see `shielded`
    input_type = socket.SOCK_STREAM  # from which its program reads what it passes on

    @abc.abstractmethod
    def supervisor(self, host, job):
        """The command that starts the supervisor of a host, and its environment (None: ours)."""

    # Before the start

    def find_hosts(self, options, environ):
        """The hosts of a job.

        Raises
        ------
        UsageError
            There are none.
        """
        hosts = self.named_hosts(options, environ)
        if not hosts:
            raise UsageError(f"--launcher {self.name} needs the hosts: -H FILE, or -H d1,d2")
        return hosts

    def named_hosts(self, options, environ, inside=None):
        """The hosts of `-H`, else those of the allocation that we are in."""
        given = options.hostfile
        hosts = read_hosts(given) if given else allocation.find_hosts(environ, inside)
        self.check_fields(hosts)
        return hosts

    def check_fields(self, hosts):
        """Raise a `UsageError` if a host is given with a port or a user that it cannot heed."""
        for host in hosts:
            for what in ("port", "user"):
                if getattr(host, what) and what not in self.host_fields:
                    advice = f"--launcher {self.name} takes no {what}: leave it out"
                    raise UsageError(f"{host}: {advice}")

    def folder(self, options):
        """Where the command runs: where the launcher was started."""
        try:
            return os.getcwd()
        except FileNotFoundError:
            raise UsageError("the folder you are in was deleted: cd to another") from None

    def settle(self, job, environ):  # noqa: B027
        """Complete a job; raise a `UsageError` if such a one cannot be asked for."""

    def submits(self, environ):
        """Must it first submit the job? Only a batch system does, outside of an allocation."""
        return False

    def refusal(self, option):
        """Why a `--launcher-option` is not passed on, or None."""
        return next((why for what, why in self.refused.items() if re.match(what, option)), None)

    # By hand: see `dryrun.py`

    def asks(self, job):
        """Lines that tell how the hosts are asked for."""
        return []

    def reach(self, host, job, command):
        """The words that run a command on a host, with its standard input, quoted as it needs.

        None: the user does it by hand, and `--dry-run` prints what to paste.
        """
        return None

    def login(self, host, job):
        """The words by which a user logs in to a host by hand, or None."""
        return None

    def inherited(self):
        """The environment that the processes inherit from the launcher, or None."""
        return None

    # Who is where

    def ask_for_hosts(self, job, say):
        """Ask for the hosts of a try; None if they are there.

        Returns
        -------
        object
            With `files`, what the command of a supervisor inherits; `trouble()`, why they will not
            come, a line and a status; `close()`, no more are needed; `end(gently)`, to give them
            back. Such hosts are named as they call themselves.
        """
        return None

    def address(self, host, ready):
        """Where the other hosts find this one, "" if that is not known.

        `ready` is the first report of its supervisor.
        """
        return host.name

    def wanted(self, host, job):
        """The name or address that a host must have to be the one that was asked for."""
        return self.address(host, None)

    def doubtful(self, connections):
        """Those whose supervisor may have come to another host than the one that was asked for."""
        return connections

    def machine(self, host, ready):
        """What tells the machine of a host from others."""
        return ready["machine"] or host

    # While it runs

    def shielded(self, role, argv):
        """Wrap a role's command so that it outlives a batch system's request to stop."""
        return argv

    def remote_shell(self, host, job):
        """The words by which rsync logs in to a host, for `--sync-dst-dir`."""
        raise NotImplementedError

    # What is told

    def knows(self, need):
        """Is what an advice needs of use here: "ssh", or an option?"""
        option = need.lstrip("-").replace("-", "_")
        return self.uses_ssh if need == "ssh" else option in self.options

    def why_not(self, program, error):
        """The line that tells why a program could not be run here."""
        if program in self.programs and isinstance(error, FileNotFoundError):
            return f"{program} is not installed here: apt-get install {self.package}"
        return f"{program}: {error.strerror}"

    def cause(self, lines):
        """The line that says why its program ended, among all that it wrote to standard error."""
        return next(filter(CAUSE.search, lines), lines[-1])

    def left(self, host, why):
        """A line and a status for a supervisor that ends though nobody told it to."""
        return f"{host}: the supervisor there ends: {why}", 1


def sharing(connections):
    """Those that share a machine.

    For hosts that need not have the address at which they are reached: a router may translate it.
    """
    machines = [connection.ready["machine"] for connection in connections]
    return [c for c in connections if machines.count(c.ready["machine"]) > 1]


def own_words(options):
    """The words of the user's `--launcher-option`s: `-p gpu` is two, `--comment=a b` one."""
    words = []
    for option in options.launcher_option:
        try:
            words += [option] if re.match(r"--?[\w-]+=", option) else shlex.split(option)
        except ValueError:  # a quote that does not end
            words.append(option)
    return words

"""What the launcher asks of a way of starting.

A new way of starting is a class of this kind in a file of its own, and a line in `ways.py`.
"""

import abc
import os
import re
import shlex
import subprocess

from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.statuses import USAGE

# The options of the command line that only some ways know.
PARTICULAR = (
    *("sync_dst_dir", "ssh_option", "hostfile", "interface", "launcher_option"),
    *("queue", "jobname", "files", "archives"),
    *("worker_cores", "worker_memory", "server_cores", "server_memory"),
)
# Why an option of `--launcher-option` is refused.
ARRAY = "a job array would be several jobs: start each of them"
OUTPUT = "the launcher reads the output: --job-dir says where it is kept"


class Way(abc.ABC):
    """A way to start the supervisor of each host.

    Attributes
    ----------
    name : str
        What `--launcher` calls it.
    programs, package : tuple of str, str
        The programs it runs here, and the package that has them.
    options : tuple of str
        Which of the `PARTICULAR` options it knows.
    takes_logins : bool
        A host may be given with a port or a user.
    uses_ssh : bool
        It reaches the hosts by ssh.
    may_translate : bool
        A host need not have the address at which it is reached: a router may translate it.
    needs_hosts : bool
        Without hosts it cannot start, not even on this machine.
    tells_hosts : bool
        The lines of a process are shown with the name of its host.
    keeps_environment : bool
        The processes inherit the launcher's environment.
    brings_hosts : bool
        Which hosts they are is known only when supervisors have come.
    is_batch_system : bool
        A batch system watches the processes, and signals them when it wants their end.
    hints : tuple
        Rows as those of `telling/hints.py`, for what only this way's programs say.
    refused : dict
        By the pattern of a `--launcher-option` why it is not passed on: with it the programs would
        do something else than they are run for.
    """

    name = None
    programs, package = (), None
    options = ()
    takes_logins = uses_ssh = may_translate = False
    needs_hosts = tells_hosts = True
    keeps_environment = False
    brings_hosts = is_batch_system = False
    hints = ()
    refused = {}  # noqa: RUF012

    def own_hosts(self, options):
        """The hosts of a job whose user may not name any."""
        return [LOCAL]

    def check_job(self, job):  # noqa: B027
        """Raise a `UsageError` if such a job cannot be asked for."""

    def asks(self, job):
        """For `--dry-run`: lines that tell how the hosts are asked for."""
        return []

    def ask_for_hosts(self, job, say):
        """Ask for the hosts of a try; None if they are there.

        Returns
        -------
        object
            With `files`, what the command of a supervisor inherits; `trouble()`, why they will not
            come, a line and a status; `close()`, no more are needed; `end(gently)`, to give them
            back.
        """
        return None

    @abc.abstractmethod
    def supervisor(self, host, job):
        """The command that starts the supervisor of a host, and its environment (None: ours)."""

    def address(self, host, ready):
        """Where the other hosts find this one, "" if that is not known.

        `ready` is the first report of its supervisor.
        """
        return host.name

    def wanted(self, host, job):
        """The name or address of a host: a supervisor elsewhere is on another one."""
        return self.address(host, None)

    def shielded(self, role, argv):
        """Wrap a role's command so that it outlives a batch system's request to stop."""
        return argv

    def reach(self, host, job, command):
        """The words that run a command on a host, with its standard input.

        None: the user does it by hand, and `--dry-run` prints what to paste.
        """
        return None

    def login(self, host, job):
        """The words by which a user logs in to a host by hand, or None."""
        return None

    def submits(self, environ):
        """Must it first submit the job? Only a batch system does, outside of an allocation."""
        return False

    def earlier_tries(self, environ):
        """How often a batch system has started the job before."""
        return 0

    def refusal(self, option):
        """Why a `--launcher-option` is not passed on, or None."""
        return next((why for what, why in self.refused.items() if re.match(what, option)), None)

    def knows(self, need):
        """Is what an advice needs of use here: "ssh", or an option?"""
        option = need.lstrip("-").replace("-", "_")
        return (
            self.uses_ssh if need == "ssh" else option in self.options or option not in PARTICULAR
        )

    def why_not(self, program, error):
        """The line that tells why a program could not be run here."""
        if program in self.programs and isinstance(error, FileNotFoundError):
            return f"{program} is not installed here: apt-get install {self.package}"
        return f"{program}: {error.strerror}"


class Refused(Exception):
    """The batch system does not take the job; the message says why.

    Attributes
    ----------
    status : int
        What the launcher exits with.
    """

    status = USAGE


class BatchSystem(Way):
    """A batch system: inside an allocation it starts supervisors; outside it takes a job.

    Attributes
    ----------
    title, mark : str
        What people call it; how a directive begins in a script.
    inside : str
        The variable that is set in an allocation.
    job_id, restarts : str
        For the shell: the number of the job, and how often it was started before.
    ending : str
        The signals by which it ends a job for good.
    requeue, afterwards : str
        Lines of the script: queue the job again; what else to do at the end, `{folder}` being where
        the output is.
    """

    title = mark = inside = job_id = restarts = ending = requeue = None
    afterwards = ""
    options = ("hostfile", "interface", "launcher_option")
    keeps_environment = is_batch_system = True

    def submits(self, environ):
        return self.inside not in environ

    @abc.abstractmethod
    def directives(self, job, folder):
        """The options of the job; the user's own come last, and win.

        Raises
        ------
        UsageError
            It cannot take such a job.
        """

    def directive(self, option):
        """An option as a line of the script."""
        return f"{self.mark} {option}"

    def output(self, folder, number):
        """Where a job's output goes, without .out or .err."""
        return f"{folder}/launch-{self.name}-{number}"

    @abc.abstractmethod
    def submit(self, text, words, folder, environ):
        """Submit a script whose output goes to a folder; returns a `Submitted`.

        Its directives are given also as words: a command line wins over the user's variables.

        Raises
        ------
        Refused
        """


class Submitted(abc.ABC):
    """A job in a batch system's hands.

    Attributes
    ----------
    id : str
        Its number.
    environ : dict or None
        The environment of these commands, None for ours.
    stop_argv, save_argv, cancel_argv : list of str
        The commands that ask it to save and end, to save, and to end at once.
    """

    id = environ = stop_argv = save_argv = cancel_argv = None

    @abc.abstractmethod
    def look(self):
        """What the job is doing, in words, and its exit status, None before its end."""


def submitted(argv, text, environ, pattern):
    """Submit a script; the match of the pattern with what sbatch or qsub prints.

    Ctrl-C does not reach it: it might have submitted the job, and not yet told the number.
    """
    done = subprocess.run(
        argv, input=os.fsencode(text), env=environ, capture_output=True, start_new_session=True
    )
    out, err = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    if done.returncode:
        raise Refused(" ".join(err.split()) or f"{argv[0]} ended with {done.returncode}")
    found = re.fullmatch(pattern, out.strip())
    if not found:
        raise Refused(f"{argv[0]} gave it no number: {' '.join((err + out).split())}")
    return found


def own_words(options):
    """The words of the user's `--launcher-option`s: `-p gpu` is two, `--comment=a b` one."""
    words = []
    for option in options.launcher_option:
        try:
            words += [option] if re.match(r"--?[\w-]+=", option) else shlex.split(option)
        except ValueError:  # a quote that does not end
            words.append(option)
    return words

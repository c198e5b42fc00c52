"""What the launcher asks of a way of starting.

A new way of starting is a class of this kind in a file of its own, and a line in `ways.py`.
"""

import abc
import subprocess

# The options of the command line that only some ways know.
PARTICULAR = ("sync_dst_dir", "ssh_option", "hostfile", "interface", "launcher_option")


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
    needs_hosts : bool
        Without hosts it cannot start, not even on this machine.
    tells_hosts : bool
        The lines of a process are shown with the name of its host.
    keeps_environment : bool
        The processes inherit the launcher's environment.
    is_batch_system : bool
        A batch system watches the processes, and signals them when it wants their end.
    """

    name = None
    programs, package = (), None
    options = ()
    takes_logins = False
    needs_hosts = tells_hosts = True
    keeps_environment = False
    is_batch_system = False

    @abc.abstractmethod
    def supervisor(self, host, job):
        """The command that starts the supervisor of a host, and its environment (None: ours)."""

    def address(self, host, ready):
        """Where the other hosts find this one, "" if that is not known.

        `ready` is the first report of its supervisor.
        """
        return host.name

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

    def why_not(self, program, error):
        """The line that tells why a program could not be run here."""
        if program in self.programs and isinstance(error, FileNotFoundError):
            return f"{program} is not installed here: apt-get install {self.package}"
        return f"{program}: {error.strerror}"


class Refused(Exception):
    """The batch system does not take the job; the message says why."""


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
        """What the script tells it; the user's own options come last, and win.

        Raises
        ------
        UsageError
            It cannot take such a job.
        """

    @abc.abstractmethod
    def submit(self, text, folder, environ):
        """Submit a script whose output goes to a folder; returns a `Submitted`.

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
    stop_argv, save_argv, cancel_argv : list of str
        The commands that ask it to save and end, to save, and to end at once.
    """

    id = stop_argv = save_argv = cancel_argv = None

    @abc.abstractmethod
    def look(self):
        """What the job is doing, in words, and its exit status, None before its end."""


def submitted(argv, text, environ):
    """Submit a script; what sbatch or qsub prints.

    Ctrl-C does not reach it: it might have submitted the job, and not yet told the number.
    """
    done = subprocess.run(
        argv, input=text, env=environ, capture_output=True, text=True, start_new_session=True
    )
    if done.returncode:
        raise Refused(" ".join(done.stderr.split()) or f"{argv[0]} ended with {done.returncode}")
    return done.stdout

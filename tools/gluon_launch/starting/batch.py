"""A batch system: inside an allocation it starts supervisors; outside it takes a job.

`submit.py` hands the job over and follows it.
"""

import abc
import os
import re
import subprocess

from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.statuses import USAGE, UsageError
from gluon_launch.starting import allocation
from gluon_launch.starting.local import own_environment
from gluon_launch.starting.way import Way


class NotAccepted(Exception):
    """The batch system does not take the job; the message says why."""

    status = USAGE  # what the launcher exits with


class BatchSystem(Way):
    """See `Way`. The hosts are those that it says they are."""

    title = mark = None  # what people call it; how a directive begins in a script
    inside = None  # the variable that is set in an allocation
    job_id = restarts = None  # for the shell: the job's number, how often it was started before
    ending = None  # the signals by which it ends a job for good
    requeue = None  # a line of the script: queue the job again
    afterwards = ""  # what else to do at its end, where `{output}` is its output, without .out
    options = ("hostfile", "interface", "launcher_option")
    signals_hosts, deaf = True, ("scheduler", "server")

    def find_hosts(self, options, environ):
        hosts = self.named_hosts(options, environ, self.inside)
        if self.submits(environ):  # it will choose them
            return [LOCAL] * options.num_workers
        if not hosts:
            why = f"{self.inside} is set, but nothing names the hosts"
            raise UsageError(
                f"--launcher {self.name} needs the hosts: -H FILE, or -H d1,d2 ({why})"
            )
        return hosts

    def settle(self, job, environ):
        """Give a job the id that it had in its earlier tries."""
        if "LAUNCH_SUBMITTED" in environ:
            job.id = environ["LAUNCH_SUBMITTED"]
            job.earlier_tries = self.earlier_tries(environ)
            job.watchers = allocation.watchers()

    def earlier_tries(self, environ):
        """Return how often it has started the job before."""
        return 0

    def inherited(self):
        return own_environment()

    def machine(self, host, ready):
        return host

    def submits(self, environ):
        return self.inside not in environ

    @abc.abstractmethod
    def directives(self, job, folder):
        """Return the options of the job; the user's own come last, and win.

        Raises
        ------
        UsageError
            The batch system cannot take such a job.
        """

    def directive(self, option):
        """Return an option as a line of the script."""
        return f"{self.mark} {option}"

    def output(self, folder, number):
        """Return the path of a job's output, without .out or .err."""
        return f"{folder}/launch-{self.name}-{number}"

    @abc.abstractmethod
    def submit(self, text, words, folder, environ):
        """Submit a script whose output goes to a folder; return a `Submitted`.

        Its directives are given also as words: a command line wins over the user's variables.

        Raises
        ------
        NotAccepted
            The batch system says why.
        """


class Submitted(abc.ABC):
    """A job in a batch system's hands."""

    id = None  # its number
    environ = None  # the environment of these commands, None for ours
    stop_argv = save_argv = cancel_argv = None  # to save and end, to save, to end at once

    @abc.abstractmethod
    def look(self):
        """Return the job's state in words, and its exit status, None before its end."""


def run(*argv, env=None):
    """Run a command of a batch system to its end: its status, and what it says."""
    pipes = {"stdin": subprocess.DEVNULL, "capture_output": True}
    return subprocess.run(argv, env=env, encoding="utf-8", errors="replace", **pipes)


def submitted(argv, text, environ, pattern):
    """Submit a script; the match of the pattern with what sbatch or qsub prints.

    Ctrl-C does not reach it: it might have submitted the job, and not yet printed the number.
    """
    done = subprocess.run(
        argv, input=os.fsencode(text), env=environ, capture_output=True, start_new_session=True
    )
    out, err = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    if done.returncode:
        raise NotAccepted(" ".join(err.split()) or f"{argv[0]} ended with {done.returncode}")
    found = re.fullmatch(pattern, out.strip())
    if not found:
        raise NotAccepted(f"{argv[0]} gave it no number: {' '.join((err + out).split())}")
    return found

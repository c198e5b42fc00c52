"""Hand a job to a batch system as a script, and follow it from outside.

The script runs the same command line of the launcher again, inside the allocation. What differs
from system to system is in `slurm` and `sge`.
"""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time

from launcher.environment import SECRET
from launcher.watch import SAVED

LAUNCH = pathlib.Path(__file__).resolve().parent.parent / "launch.py"
POLL_S = 0.3
MARGIN_S = 30  # beyond --grace, for a job that was asked to end
CANCELLED_S = 60  # for the batch system to end a cancelled job

# Bash runs a trap only while it waits, and `wait` ends with it: so wait again.
BODY = """\
cd {directory} || exit 2
trap 'kill -TERM $launcher' TERM INT
{traps}export LAUNCH_SUBMITTED={name}-${job_id}
{command} &
launcher=$!
wait $launcher
status=$?
while kill -0 $launcher 2>/dev/null; do
    wait $launcher
    status=$?
done
{afterwards}exit $status
"""


def script(system, argv, options, environ):
    """The batch script of a job.

    Parameters
    ----------
    system : module
        `slurm` or `sge`.
    argv : list of str
        The launcher's own command line, after its name.
    options : argparse.Namespace
    environ : dict
        Takes the values that `--env NAME=VALUE` gives: the script has only the names, as batch
        systems show scripts.

    Returns
    -------
    str
    """
    named = {}
    for item in [*options.env, *options.env_worker, *options.env_server]:
        name, equals, value = item.partition("=")
        if equals and SECRET.search(name):
            environ[name] = value
            named[item] = name
    words = [sys.executable, str(LAUNCH)]
    for word in argv[: len(argv) - len(options.command)]:
        for item, name in named.items():
            word = word.replace(item, name)
        words.append(word)
    folder = os.path.abspath(options.log_dir or options.here)
    directives = system.directives(options, folder)
    body = BODY.format(
        directory=shlex.quote(options.here),
        command=shlex.join([*words, *options.command]),
        traps=system.TRAPS,
        name=options.launcher,
        job_id=system.JOB_ID,
        afterwards=system.AFTERWARDS,
    )
    return "\n".join(["#!/bin/bash", *(f"{system.MARK} {line}" for line in directives), body])


class Follower:
    """A job in the queue, or running: its output files, and how far they were shown."""

    def __init__(self, system, job_id, options, console):
        self.system, self.id, self.options, self.console = system, job_id, options, console
        folder = pathlib.Path(options.log_dir or options.here)
        self.files = {stream: folder / f"launch-{job_id}.{stream}" for stream in ("out", "err")}
        self.shown = dict.fromkeys(self.files, 0)
        self.asked = None  # the first signal that asked for the end
        self.deadline = None

    def show(self):
        """Show what the job has written since; opened anew, as a shared disk asks for."""
        for stream, path in self.files.items():
            try:
                with open(path, "rb") as file:
                    file.seek(self.shown[stream])
                    data = file.read(1 << 20)
            except OSError:
                continue  # it has not begun
            data = data[: data.rfind(b"\n") + 1]
            self.shown[stream] += len(data)
            self.console.pass_on(stream, data.decode("utf-8", "backslashreplace"))

    def handle(self, requests):
        """Pass on what was asked of the launcher; the job ends in its own time."""
        while requests:
            number = requests.popleft()
            if number == signal.SIGUSR1:
                self.tell(self.system.save_argv(self.id))
            elif self.asked is None and any(path.exists() for path in self.files.values()):
                self.asked = number
                self.deadline = time.monotonic() + self.options.grace + MARGIN_S
                self.console.say(f"job {self.id} is asked to save and end (again: cancel it)")
                self.tell(self.system.stop_argv(self.id))
            else:
                self.cancel(number)
        if self.deadline and time.monotonic() > self.deadline:
            self.cancel(self.asked)

    def cancel(self, number):
        """Take the job out of the queue, or end it at once."""
        self.asked = self.asked or number
        self.deadline = time.monotonic() + CANCELLED_S
        self.tell(self.system.cancel_argv(self.id))

    def tell(self, argv):
        """Run a command of the batch system."""
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            self.console.say(f"{argv[0]}: {done.stderr.strip() or done.returncode}")


def run(system, text, options, environ, console, requests):
    """Submit a job and follow it to its end; returns the launcher's exit status."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        try:
            waiting = subprocess.Popen(
                system.SUBMIT,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env=environ,
                start_new_session=True,  # Ctrl-C is for us
            )
        except FileNotFoundError:
            console.say(system.MISSING)
            return 2
        waiting.stdin.write(text.encode())
        waiting.stdin.close()
        job = None
        while waiting.poll() is None:
            if job is None:
                job_id = system.read_id(_text(out))
                if job_id:
                    job = Follower(system, job_id, options, console)
                    where = os.path.relpath(job.files["out"], options.here)
                    console.say(f"{system.NAME} job {job_id}, its output: {where} and .err")
            if job:
                job.show()
                job.handle(requests)
            time.sleep(POLL_S)
        status, said = waiting.returncode, _text(err).strip().splitlines()
    if job is None:
        console.say(f"{system.SUBMIT[0]}: {said[-1] if said else status}")
        return 2
    status = system.true_status(job.id, status)
    job.show()
    if job.asked and status != SAVED:
        status = 128 + job.asked
    if status:
        console.say(f"{system.NAME} job {job.id} ended with status {status}")
    return status


def _text(file):
    """What was written to a file that another process writes to."""
    return os.pread(file.fileno(), 1 << 16, 0).decode("utf-8", "replace")

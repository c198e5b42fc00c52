"""Hand a job to a batch system as a script, and follow it from outside.

The script runs the same command line of the launcher again, inside the allocation. What differs
from system to system is in `slurm.py` and `sge.py`.
"""

import contextlib
import os
import pathlib
import re
import shlex
import signal
import sys
import time

from gluon_launch.job.masking import ABOUT_HIDDEN, is_secret, mask_words
from gluon_launch.job.statuses import SAVED, USAGE
from gluon_launch.starting.batch import NotAccepted, run

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
IN_CLONE = PACKAGE.parent / "launch.py"
# By its path: with -m Python would look for modules in the folder of the job first.
PROGRAM = IN_CLONE if IN_CLONE.exists() else PACKAGE / "__main__.py"
POLL_S = 0.2  # between two looks at the output
LOOK_S = 2  # between two questions to the batch system
MARGIN_S = 30  # beyond --grace, for a job that was asked to end
NOBODY_LOOKS = (signal.SIGHUP, signal.SIGPIPE)  # a login that is lost, `| head`: no wish to stop

# Bash runs a trap only while it waits, and `wait` ends with it: so wait again.
BODY = """\
cd {directory} || exit 2
ended=
trap 'ended=yes; kill -TERM $launcher' {ending}
trap 'kill -TERM $launcher' USR1
export LAUNCH_SUBMITTED={name}-{job_id}
{command} &
launcher=$!
wait $launcher
status=$?
while kill -0 $launcher 2>/dev/null; do
    wait $launcher
    status=$?
done
# It has saved, and nobody wanted the job to end for good: the time limit was near, or a more urgent
# job came. Queue it again, but not for ever if it stops at once.
if [[ $status == {saved} && ! $ended ]]; then
    if [[ $SECONDS -ge 30 || {restarts} == 0 ]]; then
        {requeue}
    else
        echo "[launch] saved less than 30 s after a second start: not queued again" >&2
    fi
fi
{afterwards}exit $status
"""


def script(job, own_words):
    """Return the batch script of a job, its directives, and the environment of its submission.

    Batch systems show scripts: of a secret in `--env NAME=VALUE` the script has only the name, and
    the environment the value. `own_words` stand in front of the command on the command line. Raises
    a `UsageError` if the batch system cannot take such a job.
    """
    options, way = job.options, job.way
    named, environ = {}, dict(os.environ)
    for item in [*options.env, *options.env_worker, *options.env_server]:
        name, *value = re.split("[=:]", item, maxsplit=1)
        if value and is_secret(name, value[0]):
            environ[name] = value[0]
            named[item] = name
    words = [sys.executable, str(PROGRAM)]
    for word in own_words:
        if word == "--dry-run":
            continue
        for item, name in named.items():
            word = word.replace(item, name)
        words.append(word)
    words += job.command
    shown = mask_words(words) if options.dry_run else words
    about = [ABOUT_HIDDEN] if shown != words else []
    folder = os.path.abspath(options.job_dir or job.source)
    directives = way.directives(job, folder)
    told = mask_words(directives) if options.dry_run else directives
    body = BODY.format(
        directory=shlex.quote(job.source),
        command=shlex.join(shown),
        ending=way.ending,
        saved=SAVED,
        name=way.name,
        job_id=way.job_id,
        afterwards=way.afterwards.format(output=way.output(shlex.quote(folder), way.job_id)),
        restarts=way.restarts,
        requeue=way.requeue,
    )
    lines = [*map(way.directive, told), *about]
    return "\n".join(["#!/bin/bash", *lines, body]), directives, environ


def size_before(path, began):
    """Return the size of a file that was last written before a time; else 0."""
    try:
        about = path.stat()
    except OSError:
        return 0
    return about.st_size if about.st_mtime < began else 0


class Follower:
    """Shows the output of a submitted job, and passes on signals to it.

    `output` is where that is, without .out or .err; the submission began at `began`, in seconds
    since 1970; the workers have `grace` seconds to save.
    """

    def __init__(self, job, began, output, grace, console):
        self.job, self.grace, self.console = job, grace, console
        self.files = {stream: pathlib.Path(f"{output}.{stream}") for stream in ("out", "err")}
        # what is there already is of an earlier job that had this number
        self.shown = {stream: size_before(path, began) for stream, path in self.files.items()}
        self.state = None
        self.asked = None  # the first signal that asked for the end
        self.deadline = None
        self.in_vain = 0  # how often it could not be cancelled
        self.left_at = None  # the signal after which the job is left to itself

    def follow(self, requests):
        """Follow the job to its end; return its exit status."""
        looked, status = -LOOK_S, None
        while status is None:
            if self.in_vain == 2:
                self.console.say(
                    f"job {self.job.id} may still run: the batch system does not answer"
                )
                return 128 + self.asked
            self.show()
            self.handle(requests)
            if self.left_at:
                self.console.say(
                    f"job {self.job.id} goes on; `{shlex.join(self.job.cancel_argv)}` ends it"
                )
                return 128 + self.left_at
            if time.monotonic() - looked > LOOK_S:
                state, status = self.job.look()
                self.tell_state(state, status)
                looked = time.monotonic()
            else:
                time.sleep(POLL_S)
        self.show(is_over=True)
        if self.asked and status != SAVED:
            return 128 + self.asked
        return status

    def tell_state(self, state, status):
        """Say what the job waits for, or how it ended."""
        state = "stopped after saving" if status == SAVED else state
        is_news = state != self.state and (state, self.state) != ("RUNNING", None)
        if is_news and state != "PENDING (None)":  # the batch system has not looked at it yet
            self.state = state
            self.console.say(f"job {self.job.id}: {state}{f', status {status}' if status else ''}")

    def show(self, is_over=False):
        """Show the lines that the job has written since, and at its end what has no end itself.

        The files are opened anew, as a shared disk asks for. NFS remembers for up to a minute that
        a file was missing; it asks again once the folder is opened.
        """
        with contextlib.suppress(OSError):
            os.scandir(self.files["out"].parent).close()
        for stream, path in self.files.items():
            data = b"more"
            while data:
                try:
                    with open(path, "rb") as file:
                        file.seek(self.shown[stream])
                        data = file.read(1 << 20)
                except OSError:
                    break  # it has not begun
                data = data[: data.rfind(b"\n") + 1] or data * is_over
                self.shown[stream] += len(data)
                data += b"" if data[-1:] in (b"", b"\n") else b"\n"
                self.console.pass_on(stream, data.decode("utf-8", "backslashreplace"))

    def handle(self, requests):
        """Pass on the signals that the launcher got; the job ends when it has saved."""
        while requests:
            number = requests.popleft()
            has_begun = any(path.exists() for path in self.files.values())
            if number in NOBODY_LOOKS:
                self.left_at = number
            elif number == signal.SIGUSR1:
                self.tell(self.job.save_argv)
            elif has_begun and self.asked is None:
                self.asked = number
                self.deadline = time.monotonic() + self.grace + MARGIN_S
                self.console.say(f"job {self.job.id} is asked to save and end; again: cancel it")
                self.tell(self.job.stop_argv)
            else:
                self.cancel(number)
        if self.deadline and time.monotonic() > self.deadline:
            self.cancel(self.asked)

    def cancel(self, number):
        """End the job at once, or take it out of the queue."""
        self.asked = self.asked or number
        self.deadline = time.monotonic() + MARGIN_S  # then once more
        self.console.say(f"job {self.job.id} is cancelled")
        self.in_vain += not self.tell(self.job.cancel_argv)

    def tell(self, argv):
        """Run a command of the batch system; return whether it succeeded."""
        done = run(*argv, env=self.job.environ)
        if done.returncode:
            self.console.say(f"{argv[0]}: {done.stderr.strip() or done.returncode}")
        return done.returncode == 0


def submit(job, text, words, environ, console, requests):
    """Submit a job's script and follow it to its end; return the launcher's exit status."""
    began, folder = time.time(), job.options.job_dir or job.source
    try:
        submitted = job.way.submit(text, words, folder, environ)
    except FileNotFoundError as error:
        console.say(job.way.why_not(error.filename, error))
        return USAGE
    except NotAccepted as refused:
        console.say(f"{job.way.title} does not take the job: {refused}")
        return refused.status
    output = job.way.output(folder, submitted.id)
    follower = Follower(submitted, began, output, job.options.grace, console)
    where = os.path.relpath(follower.files["out"], job.source)
    console.say(f"{job.way.title} job {submitted.id}, its output: {where} and .err")
    return follower.follow(requests)

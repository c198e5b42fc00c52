"""What is kept of a job: a file for every process, and `job.json`."""

import contextlib
import fcntl
import json
import os
import pathlib
import platform
import sys
import time

from gluon_launch.job.masking import mask_words, visible
from gluon_launch.job.statuses import UsageError, shell_status
from gluon_launch.remote.protocol import to_wire
from gluon_launch.telling.writer import Writer


def make_folder(path):
    """Make the folder of `--job-dir`, if there is to be one."""
    try:
        if path:
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--job-dir {path}: {error.strerror}") from None


@contextlib.contextmanager
def locked(folder):
    """Lock a folder against other jobs; yields False if another has locked it.

    The lock ends with the launcher. It is on a log that every job has: NFS shares locks between
    hosts for files only. On a disk without locks it keeps nobody out.
    """
    with contextlib.ExitStack() as stack:
        is_ours = True
        try:
            if folder:
                log = stack.enter_context(open(os.path.join(folder, "scheduler.log"), "ab"))
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_ours = False
        except OSError:
            pass
        yield is_ours


class Record:
    """The folder of `--job-dir`; without one nothing is kept.

    A log that cannot be written, as the disk is full, ends with a warning. The job goes on, also
    while a disk hangs: `writer` has a thread for them all.
    """

    def __init__(self, folder, job, say, mask):
        self.folder = folder and pathlib.Path(folder)
        self.job, self.say, self.mask = job, say, mask
        self.files = {}  # by name of the process; None if it cannot be written
        self.tries = {}  # by number: the processes of each, by name
        self.writer = Writer()
        self.data = {
            "command": mask_words(to_wire(job.command)),
            "directory": to_wire(job.directory),
            "launcher": job.way.name,
            "env": visible(job),
            "started": time.time(),
            "versions": {"python": platform.python_version(), "launcher": sys.argv[0]},
            "hosts": {},
            "attempts": [],
        }

    def path(self, process):
        """Return the log of a process, or None."""
        return self.folder and self.folder / f"{process.name}.log"

    def open(self, process):
        """Open the log of a process, unless an earlier try has."""
        self.line(process, "", "")

    def line(self, process, text, end):
        """Keep a line."""
        if self.folder:
            self.writer.put(self._append, self.mask(text) + end, process)

    def _append(self, text, process):
        """Append a text to the log of a process; in the writer's thread."""
        try:
            if process.name not in self.files:
                self.files[process.name] = None
                self.files[process.name] = open(  # noqa: SIM115  as long as the job
                    self.path(process), "a", encoding="utf-8", errors="backslashreplace", newline=""
                )
            if self.files[process.name]:
                self.files[process.name].write(text)
                self.files[process.name].flush()
        except OSError as error:
            self.files[process.name] = None
            self.say(f"{self.path(process)}: {error.strerror}: this log ends here")

    def host(self, host, **facts):
        """Keep what is known of a host."""
        self.data["hosts"].setdefault(host.name, {}).update(facts)

    def follow(self, number, members):
        """Keep how the processes of a try end: `members` is a dict that fills as it goes on."""
        self.tries[number] = members

    def write(self, **facts):
        """Write job.json, whole or not at all."""
        self.data.update(facts)
        self.data["attempts"] = [
            {"number": number, "processes": [*map(_row, members.values())]}
            for number, members in self.tries.items()
        ]
        if self.folder:
            data = _each_string(self.data, self.mask)
            self.writer.put(self._replace, json.dumps(data, indent=2, ensure_ascii=False))

    def _replace(self, text):
        """Replace job.json; in the writer's thread."""
        unfinished = self.folder / ".job.json"
        try:
            unfinished.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
            os.replace(unfinished, self.folder / "job.json")
        except OSError as error:
            self.say(f"{self.folder}/job.json: {error.strerror}")


def _row(member):
    """Return a row of job.json: a process, and how it ended if it has."""
    return {
        "name": member.process.name,
        "host": member.process.host.name,
        "pid": member.pid,
        "started": member.started,
        "ended": member.ended,
        "status": member.status if member.status is None else shell_status(member.status),
        "stopped_by_launcher": member.is_stopping,
    }


def _each_string(data, change):
    """Change every string in nested lists and dicts, except the keys."""
    if isinstance(data, str):
        return change(data)
    if isinstance(data, dict):
        return {name: _each_string(x, change) for name, x in data.items()}
    return [_each_string(x, change) for x in data] if isinstance(data, (list, tuple)) else data

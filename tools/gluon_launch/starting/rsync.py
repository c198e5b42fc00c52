"""Copy a folder to the hosts with rsync, over ssh."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile

from gluon_launch.starting.contents import look, patterns
from gluon_launch.starting.ssh import ssh_argv

CAUSE = re.compile(  # lines of rsync or ssh that say why the copy failed; others may be greetings
    r"^ssh: |kex_exchange|Connection (closed|reset|refused)|verification failed|"
    r"is your shell clean|rsync[: (]|not found|denied"
)
VANISHED = 24  # rsync's status if files were removed while it copied, a log perhaps


def copy_argv(host, job):
    """The command that copies a folder's contents to a host's `--sync-dst-dir`.

    With `--check`, all of it is done but the copy itself.
    """
    name = f"[{host.name}]" if ":" in host.name else host.name
    make_folder = f"--rsync-path=mkdir -p -- {shlex.quote(job.target)} && rsync"
    return [
        "rsync",
        "-rlptz",
        "-s",  # the shell on the host must not split names at spaces
        *patterns(job.options.sync_exclude),
        *look(job.source, job.options).excludes(),
        f"--rsh={shlex.join(ssh_argv(host, job.options))}",
        "--dry-run" if job.options.check else make_folder,
        "--",
        f"{job.source}/",
        f"{name}:{job.target}/",
    ]


class Copy:
    """Copies of a folder to hosts, once to each, all at once."""

    def __init__(self, hosts, job):
        self.commands = {host: copy_argv(host, job) for host in hosts}
        self.running = {}  # by host: rsync's process, its output

    def start(self):
        """Start them all."""
        # A launcher that is killed cannot end the copies: the kernel does, where it can.
        until_we_end = ["setpriv", "--pdeathsig", "KILL", "--"]
        if not _runs([*until_we_end, "true"]):  # before util-linux 2.33, or elsewhere
            until_we_end = []
        for host, argv in self.commands.items():
            log = tempfile.TemporaryFile()  # noqa: SIM115
            process = subprocess.Popen(
                [*until_we_end, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self.running[host] = process, log

    def poll(self):
        """True once all have ended."""
        return all(process.poll() is not None for process, _ in self.running.values())

    def kill(self):
        """End those that have not."""
        for process, _ in self.running.values():
            if process.poll() is None:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)  # its ssh, too

    def errors(self):
        """A line for each copy that has failed."""
        failed = []
        for host, (process, log) in self.running.items():
            if process.returncode not in (0, VANISHED):
                log.seek(0)
                said = log.read().decode("utf-8", "replace").strip().splitlines()
                causes = [line for line in said if CAUSE.search(line)]
                why = "".join(f": {line}" for line in (causes or said[-1:])[:1])
                failed.append(f"{host}: rsync ended with status {process.returncode}{why}")
        return failed


def _runs(argv):
    """Can this command be run here?"""
    try:
        return subprocess.run(argv, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False

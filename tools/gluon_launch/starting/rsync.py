"""Copy a folder to the hosts with rsync, over ssh."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time

from gluon_launch.starting.contents import look, patterns

CAUSE = re.compile(  # lines of rsync or ssh on why the copy failed; a host may print a greeting
    r"^ssh: |kex_exchange|Connection (closed|reset|refused)|verification failed|"
    r"is your shell clean|rsync[: (]|not found|denied"
)
STALL_S = 120  # without a byte
# Said there when all has come. What a login has left behind, from its .bashrc, may keep ssh from
# ending: then we end it, LINGER_S later.
COPIED = "launch: all was copied"
LINGER_S = 2
COMMAND = f"sh -c 'rsync \"$@\" && echo {COPIED} >&2' rsync"
VANISHED = 24  # rsync's status if files were removed while it copied, a log perhaps


def copy_argv(host, job):
    """Return the command that copies a folder's contents to a host's `--sync-dst-dir`.

    With `--check`, all of it is done but the copy itself.
    """
    name = f"[{host.name}]" if ":" in host.name else host.name
    make_folder = "" if job.options.check else f"mkdir -p -- {shlex.quote(job.target)} && "
    return [
        "rsync",
        "-rlptz",
        "-s",  # the shell on the host must not split names at spaces
        *patterns(job.options.sync_exclude),
        *look(job.source, job.options).excludes(),
        f"--rsh={shlex.join(job.way.remote_shell(host, job))}",
        f"--rsync-path={make_folder}{COMMAND}",
        f"--timeout={STALL_S}",
        *(["--dry-run"] if job.options.check else []),
        "--",
        f"{job.source}/",
        f"{name}:{job.target}/",
    ]


class Copy:
    """Copies of a folder to hosts, once to each, all at once."""

    def __init__(self, hosts, job):
        self.commands = {host: copy_argv(host, job) for host in hosts}
        self.running = {}  # by host: rsync's process, its output
        self.copied = {}  # by host, when all had come

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
        """Return the hosts to which the copy is not complete."""
        unfinished = [h for h, (process, _) in self.running.items() if process.poll() is None]
        now = time.monotonic()
        for host in unfinished:
            process, log = self.running[host]
            if COPIED.encode() in os.pread(log.fileno(), 1 << 20, 0):
                self.copied.setdefault(host, now)
            if now - self.copied.get(host, now) > LINGER_S:
                _kill(process)
        return unfinished

    def kill(self):
        """End the copies that are not complete."""
        for process, _ in self.running.values():
            if process.poll() is None:
                _kill(process)

    def errors(self):
        """Return a line for each copy that has failed."""
        failed = []
        for host, (process, log) in self.running.items():
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip().splitlines()
            causes = [line for line in said if CAUSE.search(line)]
            is_whole = host in self.copied and not any(line.startswith("rsync") for line in said)
            if process.returncode not in (0, VANISHED) and not is_whole:
                why = "".join(f": {line}" for line in (causes or said[-1:])[:1])
                failed.append(f"{host}: rsync ended with status {process.returncode}{why}")
        return failed


def _kill(process):
    """End an rsync and its ssh."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _runs(argv):
    """Return whether this command can be run here."""
    try:
        return subprocess.run(argv, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False

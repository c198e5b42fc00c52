"""The connection between the launcher and the supervisor of one host."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

from gluon_launch.remote.bootstrap import LOADER
from gluon_launch.remote.protocol import NAMES, REPORTS, to_wire
from gluon_launch.telling.writer import Writer

OWN = {"said", "closed"}  # reports of this end
PACKET = 4000  # bytes
DROPPED = re.compile("kex_exchange_identification|Connection (closed|reset) by")
REFUSED = re.compile("denied|refused|timed out|resolve|No route|UNKNOWN port|Too many auth")


class Connection:
    """Runs a supervisor and turns what it says into events.

    Parameters
    ----------
    host : Host
    way : Way
    argv : list of str
        Starts the supervisor: `python3 -I -c REMOTE_PYTHON`, here or at the other end of ssh.
        (-I: the folder that this is run in may have a random.py of its own.)
    events : queue.Queue
        Receives `(connection, report)`, where a report is a dict with a key "report": those of the
        supervisor, and of this end "said" (a line on ssh's standard error) and "closed".
    """

    def __init__(self, host, way, argv, events, env=None, files=()):
        self.host, self.way, self.events = host, way, events
        self.ready = None  # the supervisor's first report
        self.last_words = []  # of ssh, or of a supervisor that failed
        self.given_up = None  # why the launcher ended it
        self.answers = []  # lines of a check
        self.closed = False  # its end has been handled
        self.waiting_since = time.monotonic()  # None while the launcher itself is slow
        self._writer = Writer()  # a host that hangs takes no orders
        ours, theirs = socket.socketpair(type=way.input_type)
        self._orders = ours
        self.popen = subprocess.Popen(
            argv,
            env=env,
            pass_fds=files,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the launcher, which then stops in order
        )
        theirs.close()
        self._writer.put(self._write, LOADER)
        self._stderr = threading.Thread(target=self._read_stderr, daemon=True)
        self._stderr.start()
        threading.Thread(target=self._read_reports, daemon=True).start()

    def order(self, order, **fields):
        """Send an order; a closed connection reports itself, so that is not an error here."""
        fields.update((name, to_wire(fields[name])) for name in NAMES & set(fields))
        self._writer.put(self._write, json.dumps(dict(fields, order=order)) + "\n")

    def silent_s(self):
        """Return for how long nothing has come from the other end."""
        since = self.waiting_since
        return 0 if since is None or self.ready is None else time.monotonic() - since

    def heard(self):
        """Start to count the silence again."""
        if self.waiting_since is not None:
            self.waiting_since = time.monotonic()

    def kill(self):
        """End the connection; the supervisor notices, and ends everything on its host."""
        if self.popen.poll() is None or self.ready is None:  # its output may be held yet
            with contextlib.suppress(OSError):
                os.killpg(self.popen.pid, signal.SIGKILL)  # what ssh has started, too: a ProxyJump

    def give_up(self, why):
        """End a connection that does not get ready, and keep why; ssh knows better if it ended."""
        if self.popen.poll() is None:
            self.given_up = why
        self.kill()

    def was_dropped(self):
        """Return whether a server that has too many logins at once dropped this one."""
        words = "\n".join(self.last_words)
        return self.ready is None and bool(DROPPED.search(words)) and not REFUSED.search(words)

    def why_closed(self):
        """Return why there is no connection, in one line."""
        what = "the connection ended" if self.ready else "no connection"
        if self.given_up:
            return f"{self.host}: {what}: {self.given_up}"
        words = [line for line in self.last_words if line.strip(" @-\r") and "Warning:" not in line]
        why = self.way.cause(words) if words else f"status {self.popen.returncode}"
        return f"{self.host}: {what}: {why}"

    def _write(self, text):
        data = text.encode()
        with contextlib.suppress(OSError, ValueError):
            for start in range(0, len(data), PACKET):
                self._orders.sendall(data[start : start + PACKET])

    def _emit(self, report):
        self.waiting_since = None
        self.events.put((self, report))
        self.waiting_since = time.monotonic()

    def _read_reports(self):
        """Turn what the supervisor writes into events, to its end."""
        for line in self.popen.stdout:
            try:
                report = json.loads(line)
                fields = {*REPORTS[report["report"]].split(), "report"}
                if set(report) not in (fields, fields | {"why"}):
                    raise ValueError
            except (ValueError, KeyError, TypeError):  # a greeting from the login shell
                report = {"report": "said", "text": line.decode("utf-8", "replace").rstrip()}
            self._emit(report)
        self._stderr.join(timeout=1)
        self._emit({"report": "closed", "status": self.popen.wait()})
        self._writer.close()

    def _read_stderr(self):
        for line in self.popen.stderr:
            text = line.decode("utf-8", "replace").rstrip()
            self.last_words = self.last_words[-40:] + [text]  # mpirun says why in many
            self._emit({"report": "said", "text": text})

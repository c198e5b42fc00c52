"""Hold the processes of one job on one host, and leave none behind.

The launcher starts one supervisor on every host. This file arrives over standard input, together
with its neighbours that it imports. Orders follow it, and reports go out on standard output: one
JSON object a line.

It ends everything when the connection closes, and when the launcher's heartbeat is silent for too
long (a cut network closes nothing). A second process, the guard, does the same if the supervisor is
killed or stopped.
"""

import json
import os
import platform
import resource
import select
import signal
import socket
import sys
import time

from host import has_address, interface_of, interfaces, listen, machine, own_address, processors
from orphans import Orphans
from package import Package
from processes import Child, guard, start_status
from protocol import KILL_S, SILENCE_S, from_wire

REQUESTS = signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU
MAX_BACKLOG = 1 << 20  # bytes the launcher has not read yet; above it the processes have to wait


class Supervisor:
    """The loop: orders in, reports out, processes in between."""

    def __init__(self):
        self.children = {}  # by name
        self.streams = {}  # by file descriptor
        self.unread = b""  # the beginning of an order
        self.outgoing = bytearray()
        self.connected, self.leaving = True, False
        self.held = False  # the launcher cannot take output now; all else goes on
        self.mark = self.guard_pid = self.guard_pipe = None
        self.orphans = Orphans()
        self.listener = self.claim = None
        self.package = Package()
        self.heard = self.beaten = self.looked = time.monotonic()
        self.wakeup, signalled = os.pipe()
        for fd in (0, 1, self.wakeup, signalled):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(signalled)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # also so that its processes do not inherit that one is ignored
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda number, _: self.leave(f"it was sent signal {number}"))

    def work(self):
        """Work until told to leave, and until no process is left."""
        self.outgoing += b"\n"  # the last line of a login shell may have no end
        self.report(
            "ready",
            hostname=socket.gethostname(),
            python=platform.python_version(),
            executable=sys.executable,
            processors=processors(),
            ssh=os.environ.get("SSH_CONNECTION"),
            machine=machine(),
            uid=os.getuid(),
        )
        while self.children or not self.leaving:
            streams = self.streams.items() if len(self.outgoing) < MAX_BACKLOG else ()
            reading = [fd for fd, stream in streams if self.may_read(stream)]
            inputs = [self.wakeup] + [0] * self.connected + reading
            readable, _, _ = select.select(inputs, [1] if self.outgoing else [], [], 0.2)
            if self.wakeup in readable:
                os.read(self.wakeup, 512)
            if 0 in readable:
                self.read_orders()
            for stream in [self.streams[fd] for fd in readable if fd in self.streams]:
                self.pump(stream)
            self.pass_on_parts(time.monotonic(), reading)
            self.look_after(time.monotonic())
            self.write()
        self.orphans.end(self.own())
        self.package.remove()
        self.report("done")
        os.set_blocking(1, True)
        self.write()

    def report(self, kind, **fields):
        self.outgoing += json.dumps(dict(fields, report=kind)).encode() + b"\n"

    def write(self):
        """Send as much as the launcher will take now."""
        try:
            del self.outgoing[: os.write(1, self.outgoing) if self.outgoing else 0]
        except BlockingIOError:
            pass
        except OSError:
            self.outgoing.clear()
            self.leave("nobody listens")

    def read_orders(self):
        """Read orders, and carry out those that are complete."""
        try:
            data = os.read(0, 1 << 16)
        except OSError:
            data = b""
        if not data:
            self.connected = False
            self.leave("the connection closed")
        self.heard = time.monotonic()
        lines = (self.unread + data).split(b"\n")
        self.unread = lines.pop()
        for line in lines:
            order = json.loads(line.decode())
            getattr(self, "take_" + order.pop("order"))(**order)

    def may_read(self, stream):
        """Return whether it may be read now. The last output of an ended process must not wait."""
        return not self.held or self.leaving or stream.child.status is not None

    def pump(self, stream):
        """Pass on what a process wrote, and that it wrote if no line has come to its end."""
        child, now = stream.child, time.monotonic()
        lines, more = stream.read(now)
        for text, end in lines:
            child.note_line(text, now)
            self.report("line", name=child.name, stream=stream.name, text=text, end=end)
        if more:
            child.idle_since = now
        if more and not lines:
            self.report("wrote", name=child.name)
        if not more:
            self.close(stream)

    def close(self, stream):
        del self.streams[stream.pipe.fileno()]
        stream.pipe.close()
        stream.child.streams.remove(stream)

    def pass_on_parts(self, now, reading):
        """Pass on what has waited for the end of its line: dots, a question, a progress bar."""
        for fd, stream in self.streams.items():
            if fd not in reading:  # it is we who keep it waiting
                stream.since = stream.since and now
            text = stream.part(now)
            if text:
                fields = {"name": stream.child.name, "stream": stream.name}
                self.report("line", text=text, end="", **fields)

    def look_after(self, now):
        """Note the ends of processes, kill those whose time is over, notice silence."""
        if self.guard_pid and os.waitpid(self.guard_pid, os.WNOHANG)[0]:
            self.guard_pid = None
            self.leave("its guard was killed")
        self.reap()
        for child in list(self.children.values()):
            self.look_after_one(child, now)
        if now - self.looked > SILENCE_S / 2:  # this machine stood still
            self.heard = now
        self.looked = now
        if now - self.heard > SILENCE_S:
            self.leave(f"nothing was heard from the launcher for {SILENCE_S} s")
        if now - self.beaten > 1:
            self.beaten = now
            self.tell_guard("beat    ")
            for record in self.orphans.look(self.own()):
                self.tell_guard(record)
            self.report("beat")

    def look_after_one(self, child, now):
        """Note the end of a process, and end what is left of it."""
        if child.status is None and child.popen.poll() is not None:
            child.note_end(now)
        elif child.status is None and child.deadline is None and child.look(now):
            self.report("idle", name=child.name, how=child.idle)
            if child.hung():
                child.traceback_at = None
                self.report("hung", name=child.name)
        left = child.follow(now)
        if child.status is None:
            return
        if len(self.outgoing) >= MAX_BACKLOG and not self.leaving:  # there may be more to read
            child.deadline = max(child.deadline, now + KILL_S)
        if now > child.deadline or not (child.streams or left):
            for stream in list(child.streams):
                self.close(stream)
            if child.claim and os.path.exists(child.claim):
                self.report("prepared", name=child.name)
            if child.left:
                self.report("left", name=child.name, commands=child.left)
            self.reap()  # the last of it may just have ended
            del self.children[child.name]
            self.tell_guard(f"-{child.pid:7}")
            self.report("exit", name=child.name, status=child.final_status())

    def reap(self):
        """Note how those ended that had lost their parents."""
        for pid, status in self.orphans.reap(self.own()):
            for child in self.children.values():
                child.take_orphan(pid, status)

    def own(self):
        """Return the children of this process that it has started itself."""
        return {self.guard_pid, *(child.pid for child in self.children.values())}

    def tell_guard(self, record):
        if self.guard_pid:
            try:
                os.write(self.guard_pipe, record.encode())
            except OSError:
                pass  # it was killed: look_after will see

    def leave(self, why):
        """End everything, then this process."""
        if not self.leaving:
            self.leaving = True
            self.report("leaving", why=why)
            self.take_stop(KILL_S)

    # Orders: see `protocol.py`

    def take_beat(self):
        """The launcher lives, and was heard."""

    def take_leave(self):
        self.leave("it was told to")

    def take_bring(self, part):
        """Take a part of the package. The next one waits for the report: pipes may be short."""
        self.package.packed += part
        self.report("bring")

    def take_hold(self, mark, asks=False):
        """Take the name of the variable that marks the try, and start the guard.

        With `asks`, a signal to this process is a batch system's request: the launcher decides.
        What was brought makes MXNet right in whatever is started here.
        """
        self.mark = mark
        self.orphans.adopt()
        self.package.unpack()
        for number in REQUESTS if asks else ():
            signal.signal(number, lambda number, _: self.report("asked", number=number))
        supervisor = os.getpid()
        pipe, self.guard_pipe = os.pipe()
        self.guard_pid = os.fork()
        if self.guard_pid:
            os.close(pipe)
            return
        try:
            os.setsid()
            os.close(self.guard_pipe)
            signal.set_wakeup_fd(-1)
            for fd in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            guard(
                pipe, mark.encode() + b"=", supervisor, SILENCE_S + KILL_S + 2, self.package.folder
            )
        finally:
            os._exit(0)

    def take_start(self, name, command, env, cwd=None, stdin="", plain=False):
        """Start a process; a plain one is not told of the package."""
        if self.leaving:
            return
        if self.package.why_not and not plain:
            self.report("exit", name=name, status=1, why=self.package.why_not)
            return
        command, cwd, env = map(from_wire, (command, cwd, env))
        env, claim = (env, None) if plain else self.package.tell(name, env)
        try:
            child = Child(name, self.mark, command, env, cwd, stdin)
            child.claim = claim
        except OSError as error:
            self.report("exit", name=name, status=start_status(error, command, cwd), why=str(error))
            return
        self.children[name] = child
        self.streams.update((stream.pipe.fileno(), stream) for stream in child.streams)
        self.tell_guard(f"+{child.pid:7}")
        self.report("started", name=name, pid=child.pid)

    def take_output(self, held):
        """Let the processes wait before they write more, or go on."""
        self.held = held

    def take_stop(self, grace, names=None):
        """TERM to these processes (all, without names), and KILL when the grace is over."""
        for child in list(self.children.values()):
            if names is None or child.name in names:
                child.stop(time.monotonic() + grace)

    def take_signal(self, number, names):
        """Send a signal to these processes."""
        for child in [child for name, child in self.children.items() if name in names]:
            if number == signal.SIGABRT and hasattr(resource, "prlimit"):
                try:  # wanted is the stack on standard error, not a core file
                    for pid in child.family():
                        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
                except OSError:
                    pass
            child.ask(number)

    def take_address(self, toward=None, interface=None):
        """Report this host's address that faces another host, or belongs to an interface."""
        try:
            address = own_address(toward, interface)
            self.report("address", address=address, interface=interface_of(address))
        except OSError as error:
            found = interfaces().items()
            others = [f"--interface {name}" for name, own in found if not own.startswith("127.")]
            advice = f"say which network joins the hosts: {' or '.join(others)}"
            what = f"no IPv4 address that reaches {toward}: {error.strerror}"
            what += f"; {advice}" if others else "; MXNet needs one"
            if interface:
                here = ", ".join(name for _, name in socket.if_nameindex())
                what = f"interface {interface}: {error.strerror}; there are {here}"
            self.report("address", address=None, interface=None, why=what)

    def take_own(self, addresses):
        """Report which of these addresses are this host's own."""
        self.report("own", addresses=[each for each in addresses if has_address(each)])

    def take_port(self, address, port=None):
        """Listen at a free port, or a given one, so that others can try to reach it."""
        try:
            self.listener, self.claim = listen(address, port)
            self.report("port", port=self.listener.getsockname()[1])
        except OSError as error:
            self.report("port", port=None, why=f"port {port or 'any'}: {error.strerror}")

    def take_release(self):
        """Leave the port to the scheduler."""
        self.listener.close()

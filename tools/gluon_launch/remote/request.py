"""Ask the processes of a tree for something, by a signal that each of them gets once.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.
"""

import os
import signal
import time

from tree import (
    SHELLS,
    WAIT,
    Tree,
    catches,
    command_line,
    descendants,
    end_status,
    filters,
    pipe,
    runs,
    send_signal,
)

SETTLE_S = 0.5  # for a shell to end by itself after its program
PASS_ON_S = 0.3  # for a script to pass on what it got


class Request:
    """A signal to the processes below one of the job's, and how those ended that got it."""

    def __init__(self, number, held_until):
        self.number, self.held_until = number, held_until
        self.can_act = False  # somebody had a handler for it; else it has ended them
        self.asked, self.spared = set(), set()
        self.commands = set()  # of those who were asked, and of what they have forked
        self.held = {}  # by shell, whose end it is not to take note of yet
        self.late, self.late_until = {}, 0  # who may also get it from a script, and that
        self.statuses = {}  # of the programs that could act, as far as known
        self.started = {}  # what such a program had started by then
        self.over_since = None

    def send(self, living):
        """Ask whoever can act on it and was not asked yet; KILL what those have left that ended."""
        tree = Tree(living)
        parts = self.kill_parts(tree)
        self.spared |= filters(living)
        found, can_act = tree.choose(self.number, self.spared, not self.asked)
        new = [pid for pid in found if pid not in self.asked | parts]
        if new and not self.asked:
            self.can_act = can_act
        self.asked.update(new)
        for pid in new:
            if catches(pid, self.number) and not runs(pid, SHELLS):
                self.commands.add(command_line(pid))
                self.statuses[pid] = None
                for owner in [owner for owner in self.started if pid in self.started[owner]]:
                    self.statuses.pop(owner, None)  # it only ran this one, and has left it
                self.started[pid] = descendants(tree.below, [pid])
                if pid in tree.passed_on:  # signals that wait for a process count as one
                    self.late[pid], self.late_until = living, time.monotonic() + PASS_ON_S
                    send_signal(signal.SIGSTOP, [pid])
                else:
                    self.hold(living, pid)
        send_signal(self.number, [pid for pid in new if pid not in self.late])

    def kill_parts(self, tree):
        """KILL what was forked by those who were asked and have ended; it may keep a pipe open."""
        ours = {"", *self.commands}  # who is about to end has none
        parts = {pid for pid in tree.tops if command_line(pid) in ours} - self.asked
        send_signal(signal.SIGKILL, parts)
        return parts

    def hold(self, living, pid):
        """Stop who waits for a process, until that has ended and its status was seen.

        A shell may not pass that on: in a pipe the last one's counts. Not held are one that reads
        what the process writes, and one whose parent may take note: `script`, or a shell whose job
        it is (`set -m`).
        """
        shell = living.get(living[pid].parent)
        if shell is None or not runs(shell.pid, WAIT):
            return
        above = living.get(shell.parent)
        if above and not runs(above.pid, WAIT):
            return
        is_apart = above and above.session == shell.session and above.group != shell.group
        if is_apart and runs(shell.pid, SHELLS) and runs(above.pid, SHELLS):
            return
        written = {pipe(pid, 1), pipe(pid, 2)} - {None}
        try:
            read = {pipe(shell.pid, fd) for fd in os.listdir(f"/proc/{shell.pid}/fd")}
        except OSError:
            return
        if not written & read - {pipe(shell.pid, 1), pipe(shell.pid, 2)}:
            send_signal(signal.SIGSTOP, [shell.pid])
            self.held.setdefault(shell.pid, set()).add(pid)

    def release(self):
        """Let all go on: there is another request."""
        self.late_until = self.held_until = 0
        self.follow()

    def follow(self):
        """Let shells go on whose programs have ended, or that have waited for long enough."""
        if self.late and time.monotonic() > self.late_until:
            for pid, living in self.late.items():
                self.hold(living, pid)
            for number in self.number, signal.SIGCONT:
                send_signal(number, self.late)
            self.late, self.late_until = {}, 0
        for shell, pids in list(self.held.items()):
            for pid in list(pids):
                status = end_status(pid)
                if status is not None:
                    self.statuses[pid] = status
                if status is not None or not os.path.exists(f"/proc/{pid}"):
                    pids.discard(pid)
            if not pids or time.monotonic() > self.held_until:
                del self.held[shell]
                send_signal(signal.SIGCONT, [shell])

    def insist(self, now, family):
        """See to what goes on after all who were asked have ended.

        If the signal ended a program, a shell is ended, too, that goes on with its next command.
        First let it end by itself, with the status of that command.
        """
        if not all(map(has_ended, self.asked)):
            self.over_since = None
        elif self.over_since is None:
            self.over_since = now
        elif now - self.over_since > SETTLE_S:
            self.over_since = now
            living = family()
            self.kill_parts(Tree(living))
            if self.number == signal.SIGTERM and not self.can_act:
                send_signal(signal.SIGTERM, living)

    def status(self, own):
        """Return the status of the program that was asked, else that which the process ended with.

        A pipe ends with the status of its last command, a script with that of what came after.
        """
        known = set(self.statuses.values()) - {None}
        return known.pop() if len(known) == 1 else own


def has_ended(pid):
    """Return whether a process has ended, with all its threads."""
    return end_status(pid) is not None or not os.path.exists(f"/proc/{pid}")

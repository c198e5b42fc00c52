"""Which processes belong to a job, what they are, and who of them can act on a signal.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.

What a process of the job forks inherits its session and its mark (see `processes.py`), and is found
by either one, or by its parents. What the supervisor is parent of finds nobody else: it takes the
orphans of the job (PR_SET_CHILD_SUBREAPER).
"""

import collections
import itertools
import os
import re
import signal

SHELLS = {"sh", "bash", "rbash", "dash", "ash", "ksh", "ksh93", "mksh", "zsh", "busybox"}
SHELLS |= {"fish", "csh", "tcsh"}
PASS_ON = {"timeout", "tini", "dumb-init", "make", "script"}  # to the program that they run
WAIT = SHELLS | {"timeout", "tini", "dumb-init", "make", "xargs"}  # for it, and do nothing else
Entry = collections.namedtuple("Entry", "pid parent group session ticks")


def scan():
    """Yield an `Entry` (with its CPU ticks) of every living process; nothing without /proc."""
    for pid in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        fields = _stat(pid)
        if fields and not _is_dead(fields):
            parent, group, session = map(int, fields[1:4])
            yield Entry(int(pid), parent, group, session, int(fields[11]) + int(fields[12]))


def _stat(pid):
    """Return the fields of /proc/PID/stat behind the name, from the state on; [] if it is gone."""
    try:
        with open(f"/proc/{int(pid)}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return []


def _is_dead(fields):
    """Return whether it is dead with all its threads. The first one may end before the others."""
    return fields[0] in b"ZX" and int(fields[17]) <= 1


def end_status(pid):
    """Return how a process ended, before its parent has asked: -n for signal n; else None."""
    fields = _stat(pid)
    if not fields or not _is_dead(fields):
        return None
    code = int(fields[49])
    return -(code & 0x7F) if code & 0x7F else code >> 8


def family(mark, sessions):
    """Return all living processes of these sessions or with this mark, and what they have started.

    The mark is the beginning of an entry in the environment, as bytes. The caller does not count.
    Returns an `Entry` for each pid.
    """
    entries = {entry.pid: entry for entry in scan()}
    below = started_by(entries)
    found = {}
    for pid, entry in entries.items():
        if entry.session in sessions or has_mark(pid, mark):
            found[pid] = entry
    found.pop(os.getpid(), None)
    found.update((pid, entries[pid]) for pid in descendants(below, found))
    return found


def has_mark(pid, mark):
    """Return whether an entry in its environment begins so."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"\0" + mark in b"\0" + file.read()
    except OSError:  # gone, or somebody else's
        return False


def started_by(entries):
    """Return the children of each process among these entries."""
    below = collections.defaultdict(list)
    for pid, entry in entries.items():
        below[entry.parent].append(pid)
    return below


def descendants(below, pids):
    """Return all that these processes have started, and what that has started."""
    found, layer = set(), list(pids)
    while layer:
        layer = [kid for pid in layer for kid in below[pid] if kid not in found]
        found.update(layer)
    return found


def send_signal(number, pids, kill=os.kill):
    """Signal processes (or groups), some of which may be gone."""
    for pid in pids:
        try:
            kill(pid, number)
        except OSError:
            pass


def kill_family(mark, sessions):
    """KILL these processes and return them. Repeat it until none is left: one may have forked."""
    send_signal(signal.SIGKILL, sessions, os.killpg)
    living = family(mark, sessions)
    send_signal(signal.SIGKILL, living)
    return living


def catches(pid, number):
    """Return whether a process has a handler for this signal."""
    return _signals(pid, "SigCgt") >> (number - 1) & 1


def ignores(pid, number):
    """Return whether a process ignores this signal."""
    return _signals(pid, "SigIgn") >> (number - 1) & 1


def _signals(pid, kind):
    """Return the signals that a process catches (SigCgt) or ignores (SigIgn), a bit each."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # in a name a character may be cut in two
            found = re.search(rb"^%s:\s*(\w+)" % kind.encode(), file.read(), re.MULTILINE)
        return int(found.group(1), 16) if found else 0
    except OSError:
        return 0


def link(path):
    """Return where a link of /proc leads, or None."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def pipe(pid, fd):
    """Return the name of the pipe that a process has open so, or None."""
    name = link(f"/proc/{pid}/fd/{fd}")
    return name if name and name.startswith("pipe:") else None


def command_line(pid):
    """Return the words of a process, in one line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def runs(pid, programs):
    """Return whether it is one of these programs; not by its name, which may be a script's."""
    return os.path.basename(link(f"/proc/{pid}/exe") or "") in programs


def is_background(pid, shell):
    """Return whether a script started it with `&`: it ignores SIGINT then, the script does not."""
    return ignores(pid, signal.SIGINT) and not ignores(shell, signal.SIGINT)


def filters(living):
    """Return those that read what another one writes to its standard output or error."""
    writers = collections.defaultdict(set)
    for pid in living:
        for fd in (1, 2):
            writers[pipe(pid, fd)].add(pid)
    writers[None] = set()  # what is no pipe
    return {pid for pid in living if writers[pipe(pid, 0)] - {pid}}


class Tree:
    """Who is asked by a signal, among the living processes of one process of the job.

    A program that has a handler is asked, and answers for what it forked: its loaders of data go on
    until it has saved. A program without one may only wait for another one that has.
    """

    def __init__(self, living):
        self.living, self.below = living, started_by(living)
        self.tops = [pid for pid, entry in living.items() if entry.parent not in living]
        self.passed_on = set()  # a trap may pass it on to these: a script started them with `&`

    def choose(self, number, spared, is_first):
        """Return who is asked, and whether they can act on the signal; else it ends them.

        The last of a pipe acts only if none before it can.
        """
        ways = [(self.actors, spared), (self.actors, ()), (self.programs, spared)]
        for way, without in ways if is_first else ways[::2]:
            found = self.each(way, self.tops, number, without)
            if found:
                return found, way == self.actors
        return [], False

    def each(self, way, pids, number, spared):
        """Return what a function finds at each of these processes, in one list."""
        found = (way(pid, number, spared) for pid in pids if pid not in spared)
        return list(itertools.chain.from_iterable(found))

    def actors(self, pid, number, spared):
        """Return those who can act on a signal, at a process and below."""
        has_handler, kids = catches(pid, number), self.below[pid]
        is_shell = runs(pid, SHELLS)
        if has_handler and not is_shell and not runs(pid, PASS_ON):
            return [pid]
        if not (has_handler and is_shell) or has_exit_trap(pid):
            found = self.each(self.actors, kids, number, spared)
            if found or not has_handler:
                return found
        if not is_shell:
            return [pid]
        # It runs the trap when the program has ended that it waits for.
        apart = [kid for kid in kids if is_background(kid, pid)]
        waited = [kid for kid in kids if kid not in apart]
        found = self.each(self.actors, apart, number, spared)
        self.passed_on.update(found)
        ways = self.actors, self.programs
        waited_for = (self.each(way, waited, number, spared) for way in ways)
        return [pid, *found, *next(filter(None, waited_for), [])]

    def programs(self, pid, number, spared):
        """Return the programs that shells wait for, or a shell that waits for none."""
        if not runs(pid, SHELLS):
            return [pid]
        return self.each(self.programs, self.below[pid], number, spared) or [pid]


def has_exit_trap(pid):
    """Return whether it is a bash with a trap for its end: it catches all signals, and ends."""
    return catches(pid, signal.SIGILL)

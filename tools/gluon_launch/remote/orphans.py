"""Be the parent of whoever lost its own, so that nobody is lost who changed all else.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.
"""

import os
import signal
import time

from tree import descendants, scan, send_signal, started_by

PR_SET_CHILD_SUBREAPER = 36


def children():
    """Return all children of this process, also those that have ended."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return {entry.pid for entry in scan() if entry.parent == os.getpid()}


class Orphans:
    """Those below this process that lost their parents. Its `own` children are none.

    Nor are those that it had before: a login shell that became this process had started them.
    """

    def __init__(self):
        self.strangers = children()
        self.sessions = {}  # of the orphans, by pid

    def adopt(self):
        """Ask the kernel for them."""
        try:
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (ImportError, OSError, AttributeError):  # not Linux, or a Python without it
            pass

    def find(self, own):
        """Return their pids."""
        return children() - self.strangers - own

    def look(self, own):
        """Records for the guard, which can find them only by their sessions."""
        before, self.sessions = self.sessions, {}
        for pid in self.find(own):
            try:
                self.sessions[pid] = os.getsid(pid)
            except OSError:  # it has just gone
                pass
        kept, known = set(self.sessions.values()), {*before.values(), *own, os.getsid(0)}
        yield from (f"+{session:7}" for session in kept - known)
        yield from (f"-{session:7}" for session in {*before.values()} - kept - own)

    def reap(self, own):
        """Yield the pid and the status (-n for signal n) of each that has ended."""
        found = hasattr(os, "waitid")
        while found:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None or found.si_pid in own:  # which is waited for elsewhere
                return
            os.waitpid(found.si_pid, 0)
            self.strangers.discard(found.si_pid)
            is_exit = found.si_code == os.CLD_EXITED
            yield found.si_pid, found.si_status if is_exit else -found.si_status

    def end(self, own):
        """KILL them all, and what they have started."""
        for _ in range(100):
            list(self.reap(own))
            left = self.find(own)
            if not left:
                break
            below = started_by({entry.pid: entry for entry in scan()})
            send_signal(signal.SIGKILL, left | descendants(below, left))
            time.sleep(0.02)

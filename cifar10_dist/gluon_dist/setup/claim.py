"""Which of the Python processes below the launcher's process is the worker."""

import os
import time

from gluon_dist.setup import environment


def take():
    """Return whether this process is the worker: the first that imports mxnet, while it lives.

    It writes its number to a file, which the launcher sees, too. Without a launcher, or with one
    that does not ask, every process is its own.
    """
    path = environment.worker_file()
    if not path:
        return True
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        return True
    except FileExistsError:
        pass
    except OSError:  # the launcher has ended and removed its folder
        return True
    first = _content(path)
    if first.isdigit() and int(first) != os.getpid() and _lives(int(first)):
        return False
    with open(path, "w", encoding="utf-8") as file:  # a script that tries again
        file.write(str(os.getpid()))
    return True


def _content(path):
    """Return what the file says; it is empty between its creation and its first write."""
    for _ in range(100):
        with open(path, encoding="utf-8") as file:
            content = file.read()
        if content:
            break
        time.sleep(0.01)
    return content


def _lives(pid):
    """Return whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True

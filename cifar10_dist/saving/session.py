"""What a process that saves needs from its first moment to its last."""

import contextlib

from ground.environment import is_first_worker
from saving.lock import check_prefix, hold
from saving.stopper import Stopper

FINISH_S = 15  # for files under way, where an exception ends the program


class Session:
    """Takes requests to stop, holds the place of the checkpoints, and lets files be finished.

    From ``with Session(...)`` on, TERM and USR1 are such requests, if there is a prefix. Whatever
    ends it, files under way get some seconds to be written, and then the prefix is free again.

    Parameters
    ----------
    prefix : str or None
        ``--model-prefix``. Worker 0 sees at once whether its folder takes files.

    Attributes
    ----------
    stopper : saving.stopper.Stopper
    writing : threading.Thread or None
        Writes the newest checkpoint.

    Raises
    ------
    UsageError
        If the folder takes no files.
    """

    def __init__(self, prefix):
        self._prefix, self._lock = prefix, contextlib.ExitStack()
        self.stopper, self.writing = Stopper(is_active=bool(prefix)), None
        if prefix and is_first_worker():
            check_prefix(prefix)

    def __enter__(self):
        self.stopper.__enter__()
        return self

    def __exit__(self, *error):
        self.stopper.__exit__(*error)
        if self.writing:
            self.writing.join(FINISH_S)
        self._lock.close()

    def hold_prefix(self):
        """Keep other jobs from writing there, until the end; worker 0 does so for all."""
        if self._prefix:
            self._lock.enter_context(hold(self._prefix))

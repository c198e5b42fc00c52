"""What a process that saves needs from its first moment to its last."""

import contextlib

from gluon_dist.checkpoint.lock import OPTION, check_prefix, hold
from gluon_dist.checkpoint.stopper import Stopper
from gluon_dist.setup.environment import is_first_worker
from gluon_dist.setup.exceptions import before_end

FINISH_S = 15  # for files under way, where an exception ends the program


class Session:
    """Takes requests to stop, holds the place of the checkpoints, and lets files be finished.

    From ``with Session(...)`` on, TERM and USR1 are such requests, if there is a prefix. Whatever
    ends it, files under way get some seconds to be written, and then the prefix is free again.

    Parameters
    ----------
    prefix : str or None
        Of the checkpoints. Worker 0 sees at once whether its folder takes files.
    option : str
        How the user knows the prefix, for messages.

    Attributes
    ----------
    stopper : gluon_dist.checkpoint.stopper.Stopper
    writing : threading.Thread or None
        Writes the newest checkpoint.

    Raises
    ------
    UsageError
        If the folder takes no files.
    """

    def __init__(self, prefix, option=OPTION):
        self._prefix, self._option = prefix, option
        self._lock = contextlib.ExitStack()
        self.stopper, self.writing = Stopper(is_active=bool(prefix)), None
        if prefix and is_first_worker():
            check_prefix(prefix, option)

    def __enter__(self):
        self.stopper.__enter__()
        before_end.append(self.finish_files)
        return self

    def __exit__(self, *error):
        self.stopper.__exit__(*error)
        self.finish_files()
        before_end.remove(self.finish_files)
        self._lock.close()

    def finish_files(self):
        """Wait some seconds for files that are under way."""
        if self.writing:
            self.writing.join(FINISH_S)

    def hold_prefix(self):
        """Keep other jobs from writing there, until the end; worker 0 does so for all."""
        if self._prefix:
            self._lock.enter_context(hold(self._prefix, self._option))

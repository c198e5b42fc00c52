"""Write checkpoints by a thread, while the training goes on."""

import datetime
import threading

from gluon_dist.checkpoint import files
from gluon_dist.common.errors import last_line
from gluon_dist.common.messages import warn

import mxnet as mx


def new_run():
    """Name a run by the time of its beginning: names sort as the runs began."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")


class Writer:
    """Writes the checkpoints of a run, one after the other; worker 0 has one.

    Parameters
    ----------
    prefix : str
    keep : int or None
        Checkpoints of this run that stay; None: all.
    run : str
        The run's name, see :func:`new_run`.
    session : gluon_dist.checkpoint.session.Session
        Lets the last files be finished, whatever ends the process.
    newest : str or None
        The newest checkpoint that is there.

    Attributes
    ----------
    newest : str or None
    failed : bool
        Whether the last one could not be written.
    """

    def __init__(self, prefix, keep, run, session, newest=None):
        self._prefix, self._keep, self._run, self._session = prefix, keep, run, session
        self.newest, self.failed = newest, False

    def start(self, manifest, symbol, params, arrays):
        """Begin to write what :func:`files.write` takes; nothing in it may change any more."""
        self.wait()  # for the checkpoint before
        manifest.run = self._run
        work = manifest, symbol, params, arrays
        self._session.writing = threading.Thread(target=self._write, args=work)
        self._session.writing.start()

    def wait(self):
        """Wait until all is written."""
        if self._session.writing:
            self._session.writing.join()

    def _write(self, manifest, *contents):
        """Write a checkpoint, and remove old ones; what fails is a warning."""
        self.failed = True  # also if an exception ends this thread, which Python only prints
        try:
            self.newest = files.write(self._prefix, manifest, *contents)
            self.failed = False
        except (OSError, mx.MXNetError, MemoryError, ValueError) as error:
            name = f"{self._prefix}-{files.tag(manifest.epoch, manifest.step)}"
            newest = f"the newest checkpoint is {self.newest}" if self.newest else "there is none"
            warn(f"{name} could not be saved: {reason_of(error)}; {newest}")
            return
        try:
            self._remove_old(manifest.epoch, manifest.step)
        except OSError as error:
            warn(f"{error.filename}: could not be removed: {error.strerror}")

    def _remove_old(self, epoch, step):
        """Remove this run's checkpoints beyond ``keep``."""
        if self._keep is None:
            return
        found = [entry for entry in files.find(self._prefix) if entry.manifest]
        own = [entry for entry in found if entry.manifest.run == self._run]
        before = [entry for entry in own if (entry.epoch, entry.step) <= (epoch, step)]
        for entry in before[self._keep :]:
            files.remove(entry)


def reason_of(error):
    """Say in one line why a file could not be written."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if "FileStream.Write incomplete" in str(error):
        return "No space left on device"
    return last_line(error)

"""Lines that all workers print, an accuracy or an error, are shown once."""

import re

ACCURACY = re.compile(r"Epoch (\d+): Test_acc ")
ERROR = re.compile(r"^\S+: error: ")  # as argparse writes it
AGREE = " ({} workers agree)"  # behind a line that is shown once for several workers


class Agreement:
    """Holds back accuracies and errors until all workers have told the same, or others.

    Parameters
    ----------
    num_workers : int
    """

    HOLD_S = 2

    def __init__(self, num_workers):
        self.num_workers = num_workers
        self._held = []  # each (process, stream, text)
        self._after = []  # what these workers printed after it
        self._since = 0

    def take(self, process, stream, text, now):
        """Take a line of a worker; return the lines that are to be shown now, or None: as it is."""
        is_holding = process in [who for who, _, _ in self._held]
        if self.num_workers < 2 or not (ACCURACY.match(text) or ERROR.match(text)):
            if not is_holding:
                return None
            self._after.append((process, stream, text))
            return []
        shown = self.release() if is_holding or (self._held and self._held[0][2] != text) else []
        self._since = self._since if self._held else now
        self._held.append((process, stream, text))
        return shown + (self.release() if len(self._held) == self.num_workers else [])

    def late(self, now):
        """Return the lines that were held for too long."""
        return self.release() if self._held and now - self._since > self.HOLD_S else []

    def release(self):
        """Return all lines that are held: one of the lowest rank where several workers agree."""
        held, after, self._held, self._after = self._held, self._after, [], []
        if len(held) > 1:
            process, stream, text = min(held, key=lambda line: line[0].rank)
            held = [(process, stream, text + AGREE.format(len(held)))]
        return [*held, *after]

"""Let the processes wait before they write more while the screen or a disk is slow."""

from gluon_launch.telling.writer import HOLD_BYTES, LAST_BYTES


class Flow:
    """Holds the output of all processes above a limit of what waits to be written."""

    def __init__(self, links, writers):
        self.links, self.writers = links, writers
        self.is_held = False  # the processes are to wait before they write more
        self.limit = HOLD_BYTES

    def waiting_bytes(self):
        """Return what the slowest of the screen and the log's disk has not taken yet."""
        return max(writer.waiting for writer in self.writers)

    def regulate(self):
        """Hold the output, or let it go on."""
        limit = self.limit - HOLD_BYTES / 2 if self.is_held else self.limit
        is_held = self.waiting_bytes() > limit
        if is_held != self.is_held:
            self.is_held = is_held
            self.links.order("output", held=is_held)

    def allow_last_words(self):
        """Take more output at the end: a process that waits to write cannot save."""
        self.limit = self.waiting_bytes() + LAST_BYTES * len(self.links.all())

"""What the launcher and its supervisors on the hosts have agreed on."""

import os

SILENCE_S = 10  # neither side has heard of the other for so long: the host is lost, all is ended
KILL_S = 3  # between TERM and KILL


def to_wire(value):
    """Names of files, words and values as they are sent: as the bytes that they are here."""
    return _each(value, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def from_wire(value):
    """The same bytes as a text of this system, whose locale may have another encoding."""
    return _each(value, lambda text: os.fsdecode(text.encode("utf-8", "surrogateescape")))


def _each(value, change):
    """Change a text, or each one in a list or among the values of a dict."""
    if isinstance(value, dict):
        return {name: change(text) for name, text in value.items()}
    if isinstance(value, (list, tuple)):
        return [change(text) for text in value]
    return value and change(value)

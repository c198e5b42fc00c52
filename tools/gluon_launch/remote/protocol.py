"""What the launcher and its supervisors on the hosts have agreed on."""

import os

# Every message: its name, and its fields. One JSON object a line. At the other end it is handled by
# the method `take_NAME`, with the fields as arguments.
ORDERS = {
    "beat": "",  # the launcher lives
    "bring": "part",
    "hold": "mark asks",
    "address": "toward interface",
    "own": "addresses",
    "port": "address port",
    "release": "",  # the port
    "start": "name command cwd env stdin plain",
    "output": "held",
    "signal": "number names",
    "stop": "grace names",
    "leave": "",
}
REPORTS = {  # some have a "why" where it failed
    "ready": "hostname python executable processors ssh machine uid",
    "beat": "",  # the supervisor lives
    "bring": "",
    "port": "port",
    "address": "address interface",
    "own": "addresses",
    "started": "name pid",
    "line": "name stream text end",  # a part of a line ends with ""
    "wrote": "name",
    "hung": "name",
    "idle": "name how",
    "prepared": "name",
    "left": "name commands",
    "exit": "name status",
    "asked": "number",
    "leaving": "why",
    "done": "",
}
NAMES = {"command", "cwd", "env"}  # fields whose texts a locale has decoded: see `to_wire`

SILENCE_S = 10  # neither side has heard of the other for so long: the host is lost, all is ended
KILL_S = 3  # between TERM and KILL
HUNG_S = 10  # a process that has neither written nor computed for so long is idle


def to_wire(value):
    """Return names of files, words and values as they are sent: as the bytes that they are here."""
    return _each(value, lambda text: os.fsencode(text).decode("utf-8", "surrogateescape"))


def from_wire(value):
    """Return the same bytes as a text of this system, whose locale may have another encoding."""
    return _each(value, lambda text: os.fsdecode(text.encode("utf-8", "surrogateescape")))


def _each(value, change):
    """Change a text, or each one in a list or among the values of a dict."""
    if isinstance(value, dict):
        return {name: change(text) for name, text in value.items()}
    if isinstance(value, (list, tuple)):
        return [change(text) for text in value]
    return value and change(value)

"""The hosts of a job, from a file or from the command line.

# a comment
d1
10.0.0.7:2222 slots=4 user=ubuntu
[fd00::7]:22
"""

import os
import pathlib
import re
from dataclasses import dataclass

from launcher.job.statuses import UsageError

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_HOST = re.compile(rf"(?:({_NAME})@)?(?:({_NAME})|\[([0-9A-Fa-f:.]+(?:%{_NAME})?)\])(?::(.*))?")


@dataclass(frozen=True)
class Host:
    """One host as the user wrote it; ssh chooses a `port` or `user` that is None."""

    name: str
    port: int = None
    slots: int = 1
    user: str = None

    def __str__(self):
        return self.name

    @property
    def address(self):
        """The host as it is written, without its fields."""
        return f"{self}:{self.port}" if self.port else str(self)


LOCAL = Host("localhost")


def _whole(text, highest, what):
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= highest:
        raise UsageError(f"{what} must be a whole number from 1 to {highest}")
    return int(text)


def parse_host(text):
    """Read one host.

    Parameters
    ----------
    text : str
        `host[:port] [slots=N] [user=NAME]`, an IPv6 address in brackets. `user@host` is the same
        as `user=`.

    Raises
    ------
    UsageError
        The message does not say where the host stands: `read_hosts` adds that.
    """
    address, *fields = text.split() or [""]
    match = _HOST.fullmatch(address)
    if address.count(":") > 1 and "[" not in address:
        raise UsageError("an IPv6 address stands in brackets, as in [fd00::7]:22")
    if not match:
        raise UsageError(f"{address!r} is not a host name: letters, digits, '.', '-' and '_' only")
    user, name, ipv6, port = match.groups()
    values = {"user": user} if user else {}
    if port is not None:
        values["port"] = _whole(port, 65535, "the port")
    for item in fields:
        key, equals, value = item.partition("=")
        if key not in ("slots", "user") or not equals:
            raise UsageError(f"{item!r} is not known (slots=N and user=NAME are)")
        if key in values:
            raise UsageError(f"{key} is given twice")
        if key == "user" and not re.fullmatch(_NAME, value):
            raise UsageError(f"user={value!r}: letters, digits, '.', '-' and '_' only")
        values[key] = _whole(value, 4096, "slots") if key == "slots" else value
    return Host(name or ipv6, **values)


def read_hosts(source):
    """Read the hosts of a job.

    Parameters
    ----------
    source : str
        A hosts file, or hosts separated by commas (one host: `d1,`).

    Returns
    -------
    list of Host
        In the order given; the same line twice counts twice.

    Raises
    ------
    UsageError
        Naming the file and the line.
    """
    path = pathlib.Path(source)
    try:
        if "," in source and not os.path.exists(source):
            lines = [(f"-H {source}", text) for text in source.split(",")]
        else:
            text = path.read_text(encoding="utf-8-sig")
            lines = [(f"{source}:{i + 1}", line) for i, line in enumerate(text.split("\n"))]
    except UnicodeDecodeError:
        raise UsageError(f"{source}: not a text file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{source}: {reason} (-H takes a file, or hosts as in -H d1,d2)") from None
    hosts, known = [], {}
    for where, line in lines:
        line = line.partition("#")[0].strip()
        if not line:
            continue
        try:
            host = parse_host(line)
            same, before = known.setdefault((host.name, host.port), (host, where))
            if same != host:
                raise UsageError(f"is on {before} already, with other fields")
        except UsageError as error:
            raise UsageError(f"{where}: {line!r}: {error}") from None
        hosts.append(host)
    if not hosts:
        raise UsageError(f"{source}: no hosts in it")
    return hosts

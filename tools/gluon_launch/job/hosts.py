"""The hosts of a job, from a file or from the command line.

# a comment
d1
10.0.0.7:2222 slots=4 user=ubuntu
[fd00::7]:22
gpu[01-16,20] slots=4

Files of Open MPI, MPICH and Slurm are read, too.
"""

import ipaddress
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Optional

from gluon_launch.job import hostlist
from gluon_launch.job.statuses import UsageError

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_HOST = re.compile(rf"(?:({_NAME})@)?(?:({_NAME})|\[([0-9A-Fa-f:.]+(?:%{_NAME})?)\])(?::(.*))?")
# By the name of a field in files of Open MPI or MPICH, what it is here. No port is below 22.
_FIELDS = {
    **dict.fromkeys(("slots", "count", "cpu"), "slots"),
    **dict.fromkeys(("max_slots", "max_count", "max_cpu"), "max_slots"),
    **dict.fromkeys(("slots_max", "count_max", "cpu_max"), "max_slots"),
    **dict.fromkeys(("user", "username", "user_name"), "user"),
    **dict.fromkeys(("boards", "sockets", "sockets_per_board", "cores"), "of processors"),
    **dict.fromkeys(("cores_per_socket", "cpu_set", "binding"), "of processors"),
}
_LOWEST_PORT, _MOST_SLOTS = 22, 4096


@dataclass(frozen=True)
class Host:
    """One host as the user wrote it; ssh chooses a `port` or `user` that is None."""

    name: str
    port: Optional[int] = None
    slots: int = 1
    user: Optional[str] = None

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
    """Read one host: `host[:port] [slots=N] [user=NAME]`, an IPv6 address in brackets.

    `user@host` is the same as `user=`. Fields of Open MPI and MPICH that say nothing to us are
    passed over. A number too low for a port is that of the slots, as MPICH has it: `host:4`. The
    message of a `UsageError` does not say where the host stands: `read_hosts` adds that.
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
        number = _whole(port, 65535, "the port")
        values.update({"port": number} if number >= _LOWEST_PORT else {"slots": number})
    for item in fields:
        _read_field(item, values)
    slots, most = values.get("slots"), values.pop("max_slots", None)
    if most and slots and most < slots:
        raise UsageError(f"max_slots={most} is less than slots={slots}")
    values["slots"] = slots or most or 1
    return Host(name or _ipv6(ipv6), **values)


def _read_field(item, values):
    """Read `slots=4`, `user=me` or another field into a dict."""
    key, equals, value = item.partition("=")
    kind = _FIELDS.get(key.replace("-", "_"))
    if not kind or not equals:
        raise UsageError(f"{item!r} is not known (slots=N and user=NAME are)")
    if kind == "of processors":
        return
    if kind in values:
        raise UsageError(f"{kind} is given twice")
    if kind == "user" and not re.fullmatch(_NAME, value):
        raise UsageError(f"user={value!r}: letters, digits, '.', '-' and '_' only")
    values[kind] = value if kind == "user" else _whole(value, _MOST_SLOTS, kind)


def _ipv6(text):
    try:
        ipaddress.IPv6Address(text.partition("%")[0])
    except ValueError:
        raise UsageError(f"[{text}] is not an IPv6 address") from None
    return text


def read_hosts(source):
    """Read the hosts of a job, in the order given; the same line twice counts twice.

    `source` is a hosts file, or hosts separated by commas (one host: `d1,`), with ranges in
    brackets. A `UsageError` names the file and the line.
    """
    hosts, known, left_out = [], {}, set()
    for where, line in _lines(source):
        line = re.sub(r"\s*=\s*", "=", re.sub("(#|//).*", "", line)).strip()
        if not line:
            continue
        try:
            address, *fields = line.split(maxsplit=1)
            for item in hostlist.expand(address.lstrip("^")):
                host = parse_host(" ".join([item, *fields]))
                if address[0] == "^":  # Open MPI's way to leave one out
                    left_out.add(host.name)
                    continue
                same, before = known.setdefault((host.name, host.port), (host, where))
                if same != host:
                    raise UsageError(f"is on {before} already, with other fields")
                hosts.append(host)
        except UsageError as error:
            raise UsageError(f"{where}: {line!r}: {error}") from None
    hosts = [host for host in hosts if host.name not in left_out]
    if not hosts:
        raise UsageError(f"{source}: no hosts in it")
    return hosts


def _lines(source):
    """Return where each line or item stands, and its text."""
    is_one = re.fullmatch(r"[\w.-]+:\d+", source)  # as mpirun and horovodrun have it
    if (set(source) & set(",[") or is_one) and not os.path.exists(source):
        return [(f"-H {source}", text) for text in hostlist.split(source)]
    try:
        text = pathlib.Path(source).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{source!r}: not a text file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{source!r}: {reason} (-H takes a file, or hosts: d1,d2)") from None
    text = re.sub(r"(?s)/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text)
    return [(f"{source}:{i + 1}", line) for i, line in enumerate(text.split("\n"))]

"""The hosts of a job."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """One host, as the hosts file has it; `port` and `user` are None to leave them to ssh."""

    name: str
    port: int = None
    slots: int = 1
    user: str = None

    def __str__(self):
        return self.name


LOCAL = Host("localhost")

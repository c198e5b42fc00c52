"""Exceptions with a message for the user, and the exit status of a program that they end."""

from gluon_dist import contract


class UsageError(Exception):
    """A mistake that the user can correct: the message says what, where and what to do.

    Uncaught, it ends a program that has a :class:`gluon_dist.Checkpoint` with this one line and
    status 2, after which the launcher does not start the job again.

    Parameters
    ----------
    message : str

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(1, in_units=1)
    >>> net.initialize()
    >>> trainer = gd.Trainer(net.collect_params(), "sgd")
    >>> try:
    ...     gd.Checkpoint("/dev/null/net", net, trainer).restore()
    ... except gd.UsageError as error:
    ...     print(error)
    prefix /dev/null/net: cannot write to /dev/null: Not a directory
    """

    exit_status = contract.USAGE

    def __init__(self, message: str) -> None:
        super().__init__(message)


class NotSaved(OSError):
    """The last checkpoint could not be written; an earlier line says why."""

    exit_status = 1


class Diverged(Exception):
    """The training diverged: the program is right, but numbers are not finite."""

    exit_status = 1


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message, shortened; its class if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]

"""What is raised for a user to read, each with the exit status of a program that it ends."""

from gluon_dist import contract


class UsageError(Exception):
    """Something that the user can mend: the message says what, where and what to do.

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
    """The last checkpoint could not be written, and why was said before."""

    exit_status = 1


class Diverged(Exception):
    """The training cannot go on, with no mistake in the program; the message says why."""

    exit_status = 1


def last_line(error: BaseException) -> str:
    """Return the last line of an error's message, cut if it is long; its kind if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]

"""The optimizer that the command line asks for, with its settings for this number of workers."""

import inspect
from dataclasses import dataclass

from gluon_dist.common.errors import UsageError
from gluon_dist.exchange.optimizers import optimizer_class

from run.schedule import scaled_learning_rate
from run.staleness import allow_for_staleness, explain_staleness


@dataclass(frozen=True)
class OptimizerOptions:
    """What the command line says of the optimizer.

    Attributes
    ----------
    name : str
        MXNet's, in lower case.
    lr : float
        The learning rate, before ``lr_scale`` changes it.
    lr_scale : {'none', 'sqrt', 'linear', 'staleness'}
    momentum : float
        For optimizers that have one.
    weight_decay : float
    lookahead : int
        Steps between two averagings of the weights; 0 for no.
    batch_size : int
        Examples of one worker in one step.
    """

    name: str
    lr: float
    lr_scale: str
    momentum: float
    weight_decay: float
    lookahead: int
    batch_size: int

    @classmethod
    def of(cls, args):
        """Return those in the values of all flags."""
        return cls(
            name=args.optimizer.lower(),
            lr=args.lr,
            lr_scale=args.lr_scale,
            momentum=args.mom,
            weight_decay=args.wd,
            lookahead=args.lookahead,
            batch_size=args.batch_size,
        )


def choose_optimizer(options, workers):
    """Choose the optimizer for this number of workers.

    Parameters
    ----------
    options : OptimizerOptions
    workers : Workers

    Returns
    -------
    kind : class
    arguments : dict
        For ``kind``.

    Raises
    ------
    UsageError
        If these workers cannot train with it.
    """
    if options.name == "sgld" and workers.count > 1 and not workers.is_async:
        raise UsageError("--optimizer sgld: each worker would add noise of its own; take -n 1")
    kind = optimizer_class(options.name, on_servers=workers.is_async)
    update_size = options.batch_size * (1 if workers.is_async else workers.count)
    lr = scaled_learning_rate(options.lr, options.lr_scale, update_size)
    inits = [inspect.signature(each).parameters for each in kind.__mro__[:-1]]  # without object
    has_momentum = any("momentum" in parameters for parameters in inits)
    momentum = options.momentum if has_momentum else None
    if options.lr_scale == "staleness":
        lr, momentum = allow_for_staleness(lr, momentum, workers.count)
    arguments = {"learning_rate": lr, "wd": options.weight_decay}
    return kind, arguments if momentum is None else dict(arguments, momentum=momentum)


def explain_optimizer(options, workers):
    """Yield lines on what ``dist_async`` changes of the options."""
    if not workers.is_async:
        return
    if options.lr_scale == "staleness":
        asked = {"learning_rate": options.lr, "momentum": options.momentum}
        _, chosen = choose_optimizer(options, workers)
        yield from explain_staleness(asked, chosen, workers.count)
    if options.lookahead:
        yield "dist_async: no --lookahead: the weights are the servers'"

"""Two programs measured side by side: alternating order, fresh processes, medians, an interval.

A machine's speed drifts: other tenants, heat, the clock of the processor. So A and B run in the
order A B B A, as often as it takes. The result is the ratio of their medians with a bootstrap
interval (Efron 1979), never a figure alone.
"""

import statistics
from dataclasses import dataclass

import numpy as np
from scipy.stats import bootstrap


@dataclass(frozen=True)
class Ratio:
    """How much larger A's figure is than B's.

    Attributes
    ----------
    value : float
        Median of A over median of B.
    low, high : float
        Its 95 % bootstrap interval.
    """

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio(a, b):
    """Compare the figures of two programs.

    Parameters
    ----------
    a, b : sequence of float
        One figure of each run, in the order of the runs.

    Returns
    -------
    Ratio
    """
    value = statistics.median(a) / statistics.median(b)
    if len(a) < 2 or len(b) < 2:
        return Ratio(value, float("nan"), float("nan"))

    def of_medians(a, b, axis=-1):
        return np.median(a, axis=axis) / np.median(b, axis=axis)

    interval = bootstrap(
        (a, b), of_medians, method="percentile", vectorized=True, random_state=0
    ).confidence_interval
    return Ratio(value, interval.low, interval.high)


def verdict(value, aim, is_upper_limit=False, edge=None):
    """Tell whether a ratio reaches its aim: by its interval, not by itself.

    Parameters
    ----------
    value : Ratio
    aim : float or None
        At least, or with ``is_upper_limit`` at most.
    edge : float, optional
        Where the interval may begin, if the aim is for the ratio alone.

    Returns
    -------
    str
        ``reached`` or ``missed`` where the whole interval is on one side of the aim, else
        ``undecided``; empty without an aim.
    """
    if aim is None:
        return ""
    if is_upper_limit:
        value, aim = Ratio(-value.value, -value.high, -value.low), -aim
    if value.value >= aim and value.low >= (aim if edge is None else edge):
        return "reached"
    return "missed" if value.high < aim else "undecided"  # also without an interval


def there_and_back(runs):
    """Return the turns of a round, in the order A B C C B A.

    Parameters
    ----------
    runs : dict
        name: function without arguments that runs the program in processes of its own and returns
        {figure: number}.

    Returns
    -------
    list of (str, callable)
    """
    return [*runs.items(), *reversed(runs.items())]


def take_turns(
    turns, rounds, report=print, take=lambda name, act: act(), is_enough=lambda found, count: False
):
    """Run programs, round by round.

    Parameters
    ----------
    turns : dict or callable
        As in :func:`there_and_back`; or called with what was found so far, once a round, for the
        name and the function of one program after the other.
    rounds : int
        At most so many.
    report : callable
        Called with a line after each run.
    take : callable
        Called with a program's name and function for its figures.
    is_enough : callable
        Called after each round with what was found and the number of rounds; true to end.

    Returns
    -------
    dict
        name: list of what its runs returned.
    """
    found = {}
    for count in range(1, rounds + 1):
        for name, act in turns(found) if callable(turns) else there_and_back(turns):
            figures = take(name, act)
            found.setdefault(name, []).append(figures)
            report(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
        if is_enough(found, count):
            break
    return found

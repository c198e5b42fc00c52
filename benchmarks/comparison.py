"""Two programs measured side by side: alternating order, fresh processes, medians, an interval.

A machine's speed drifts: other tenants, heat, the clock of the processor. So A and B run in the
order A B B A, as often as wished. The result is the ratio of their medians with a bootstrap
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


def take_turns(contenders, rounds, report=print):
    """Run programs in the order A B C C B A, ``rounds`` times.

    Parameters
    ----------
    contenders : dict
        name: function without arguments that runs the program in processes of its own and returns
        {figure: number}.
    rounds : int
        Each runs every program twice.
    report : callable
        Called with a line after each run.

    Returns
    -------
    dict
        name: list of what its runs returned.
    """
    results = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in [*contenders, *reversed(contenders)]:
            figures = contenders[name]()
            results[name].append(figures)
            report(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
    return results

"""Programs measured side by side: alternating order, fresh processes, medians, an interval.

A machine's speed drifts: other tenants, heat, the clock of the processor. So A and B run in the
order A B B A, as often as it takes. The result is the ratio of their medians with a bootstrap
interval (Efron 1979), never a figure alone.
"""

import inspect
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
    """Return the ratio of the figures of two programs.

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


def there_and_back(programs):
    """Return the programs of a round, in the order A B C C B A.

    Parameters
    ----------
    programs : dict
        name: function without arguments that runs the program in processes of its own and returns
        {figure: number}.

    Returns
    -------
    list of (str, callable)
    """
    return [*programs.items(), *reversed(programs.items())]


def take_turns(turns, rounds, report=print):
    """Run programs, round by round; return what their runs returned.

    Parameters
    ----------
    turns : callable
        Called in each round with what was found so far, for the name and the function of one
        program after the other, as :func:`there_and_back` returns them.
    rounds : int
    report : callable
        Called with a line after each run.

    Returns
    -------
    dict
        name: list of what its runs returned.
    """
    found = {}
    for _ in range(rounds):
        for name, act in turns(found):
            figures = act()
            found.setdefault(name, []).append(figures)
            report(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()))
    return found


@dataclass(frozen=True)
class Row:
    """A line of the results.

    Attributes
    ----------
    title, note : str
    a, b : list of float
        The figures whose ratio it is, one of each run.
    in_page : bool
        Whether RESULTS.md shows it; ratios.csv has all.
    """

    title: str
    a: list
    b: list
    in_page: bool = False
    note: str = ""


def figures(found, name, figure="speed"):
    """Return a figure of each run of a program."""
    if any(figure not in run for run in found[name]):
        raise RuntimeError(f"{name} printed nothing to take {figure} from")
    return [run[figure] for run in found[name]]


def compared(title, found, a, b, figure="speed", in_page=False, note=""):
    """Return the row of two programs' figures.

    Raises
    ------
    RuntimeError
        If one of them has no such figure, or their networks have different sizes.
    """
    sizes = {run["parameters"] for name in (a, b) for run in found[name] if "parameters" in run}
    if len(sizes) > 1:
        raise RuntimeError(f"{title}: networks of different sizes: {sizes}")
    both = (figures(found, name, figure) for name in (a, b))
    return Row(title, *both, in_page=in_page, note=note)


class Group:
    """Programs that are run alternately, and the rows of their results.

    Attributes
    ----------
    round_s : float
        Seconds that a round takes on two cores.
    rounds : int
    needs_data : bool
        Whether it needs real images.
    programs : dict
        As in :func:`there_and_back`; :meth:`setup` makes it.
    """

    needs_data = False

    def __init__(self, round_s, rounds=2):
        self.round_s, self.rounds = round_s, rounds

    def setup(self, stack, is_quick=False, data=None):
        """Get ready to run.

        Parameters
        ----------
        stack : contextlib.ExitStack
            Closes at the end what is opened here.
        is_quick : bool
            Fewer steps and programs: to see that it works.
        data : str, optional
            Folder of CIFAR-10's RecordIO files.
        """
        raise NotImplementedError

    def turns(self, found):
        """Return the programs of the next round; ``found`` has the results so far."""
        return there_and_back(self.programs)

    def rows(self, found):
        """Return the rows of the results of all rounds."""
        raise NotImplementedError

    def __str__(self):
        return inspect.getdoc(self).partition("\n")[0]

"""The plots of the notebook on scaling. The title of each, its finding, is its alternative text."""

import lab
import matplotlib.pyplot as plt
import numpy as np

from colours import EDGE, PARTS
from helpers import figure
from plots import HATCHES, bars, lines
from plots.finding import title

KINDS = "forward", "backward", "exchange", "update", "server copies", "server adds"
WORK = "forward", "backward", "update"


def parts(rows):
    """Draw ``{"JOB: RANK": {part: milliseconds}}`` as a bar for each worker."""
    shared, sent = (rows[f"{job}: 0"]["exchange"] for job in ("2 workers", "2, servers"))
    found = f"The exchange takes {shared:.0f} ms in shared memory, {sent:.0f} ms through servers"
    bars(rows, "milliseconds of a step", found, title=title(found))


def growth(curves):
    """Draw the seconds of a step over the number of hosts, measured and by the formulas."""
    found = "Up to four hosts the measured steps lie near the formulas, with more hosts above them"
    lines(curves, "hosts", "seconds of a step", found, ylim=(0, None), title=title(found))


def steps(workers, needed):
    """Draw ``{rule: steps to an accuracy}`` over the number of workers."""
    ends = ", ".join(f"{rule} {values[-1]:.0f}" for rule, values in needed.items())
    found = f"Steps of {workers[-1]} workers: {ends}; of one worker {needed['linear'][0]:.0f}"
    curves = {rule: (workers, values) for rule, values in needed.items()}
    lines(curves, "workers", "steps", found, ylim=(0, None), title=title(found))


def race(runs, target):
    """Draw the accuracy of each job over the seconds since its beginning."""
    ends = (f"{way} {lab.seconds_to(rows, target):.1f} s" for way, rows in runs.items())
    found = f"Time to an accuracy of {target}: {'; '.join(ends)}"
    curves = {way: lab.over_time(rows) for way, rows in runs.items()}
    lines(curves, "seconds", "accuracy, training images", found, title=title(found))


def slow(rows):
    """Draw computing and waiting of each worker of two jobs; in the second, worker 1 is slow."""
    waits = [rows[f"one slow: {rank}"]["waiting"] for rank in (0, 1)]
    found = f"In the second job worker 0 waits {waits[0]:.1f} s, slow worker 1 {waits[1]:.1f} s"
    bars(rows, "seconds of an epoch", found, title=title(found))


def _alone_s(spans, first, last):
    """Return the seconds from ``first`` to ``last`` of exchange, and those without any work."""
    times = np.linspace(first, last, 4000)
    busy = {kind: np.zeros(len(times), bool) for kind in KINDS}
    for kind, start, end in spans:
        if kind in busy:
            busy[kind] |= (times >= start) & (times <= end)
    works = np.any([busy[kind] for kind in WORK], axis=0)
    share = [busy["exchange"].mean(), (busy["exchange"] & ~works).mean()]
    return [(last - first) * value for value in share]


def timeline(traces, seconds):
    """Draw what processes of one machine did at the end of their traces.

    Parameters
    ----------
    traces : dict of str to list of traces.Span
    seconds : float
        How much of the end, up to the last update.
    """
    last = max(span.end for spans in traces.values() for span in spans if span.kind == "update")
    first = last - seconds
    fig, ax = plt.subplots(figsize=(6.4, 2.4))
    for row, spans in enumerate(traces.values()):
        for kind, start, end in spans:
            if kind in KINDS and end > first and start < last:
                low, high = (0.2, 0.2) if kind == "exchange" else (-0.4, 0.6)
                start, end = max(start, first), min(end, last)
                place = 1e3 * (start - first), 1e3 * (end - start)
                look = {"color": PARTS[kind], "edgecolor": EDGE, "linewidth": 0}
                ax.broken_barh([place], (row + low, high), hatch=HATCHES.get(kind), **look)
    for kind in KINDS:
        look = {"color": PARTS[kind], "edgecolor": EDGE, "linewidth": 0.5}
        ax.barh(0, 0, hatch=HATCHES.get(kind), label=kind, **look)
    ax.set(xlabel="time (ms)", xlim=(0, 1e3 * seconds))
    ax.set(yticks=range(len(traces)), yticklabels=list(traces))
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    whole, alone = (1e3 * s for s in _alone_s(traces["worker 0"], first, last))
    found = f"Worker 0 exchanges for {whole:.0f} ms, and computes nothing in {alone:.0f} ms of them"
    ax.set_title(title(found))
    figure(fig, found)

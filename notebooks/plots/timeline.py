"""The time lines of two workers that share a store."""

import matplotlib.pyplot as plt

from colours import EDGE, PARTS
from helpers import figure


def timelines(times, alt):
    """Draw ``{(kind, rank): [updates]}``, as slow_worker.py writes them, a panel for each kind."""
    kinds = list(dict.fromkeys(kind for kind, _ in times))
    fig, panels = plt.subplots(len(kinds), sharex=True, figsize=(8, 4), layout="constrained")
    for axes, kind in zip(panels, kinds):
        zero = min(times[kind, rank][0]["began"] for rank in range(2))
        for rank in range(2):
            for update in times[kind, rank]:
                began, pushed, answered = (
                    update[name] - zero for name in ("began", "pushed", "answered")
                )
                look = {"height": 0.5, "edgecolor": EDGE, "linewidth": 0.5}
                axes.barh(rank, pushed - began, left=began, color=PARTS["computing"], **look)
                axes.barh(rank, answered - pushed, left=pushed, color=PARTS["waiting"], **look)
                axes.plot([answered] * 2, [rank - 0.32, rank + 0.32], color="black", lw=1)
                axes.text(answered, rank - 0.36, update["others"], ha="center", size=8)
        axes.set(title=kind, ylabel="rank", yticks=range(2), ylim=(1.5, -0.65))
    panels[-1].set_xlabel("time since the first worker began (s)")
    names = [
        plt.Rectangle((0, 0), 1, 1, facecolor=PARTS[part], edgecolor=EDGE)
        for part in ("computing", "waiting")
    ]
    fig.legend(names, ["computing", "waiting for the answer"], loc="outside upper right", ncols=2)
    figure(fig, alt)

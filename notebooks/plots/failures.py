"""Pictures of trainings that fail: what is computed twice, and what saving costs."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import figure
from plots import COLOURS, lines


def tries(whole, first, second, steps_per_epoch):
    """Draw both tries of a killed job on top of an undisturbed one; points are (step, share)."""
    fig, ax = plt.subplots(figsize=(5.6, 2.8))
    (x, y), first_try, second_try = ((np.array(p) * (1, 100)).T for p in (whole, first, second))
    ax.plot(x, y, color=COLOURS[5], lw=10, alpha=0.5, label="undisturbed")
    ax.plot(*first_try, color=COLOURS[3], lw=3, marker="x", label="first try, until killed")
    ax.plot(*second_try, color="black", ls=":", marker=".", label="second try")
    twice = second[0][0] - 0.5, first[-1][0] + 0.5
    ax.axvspan(*twice, color=COLOURS[1], alpha=0.3, label="computed twice")
    for step in range(steps_per_epoch, len(whole) + 1, steps_per_epoch):
        label = "checkpoint" if step == steps_per_epoch else None
        ax.axvline(step + 0.5, color=COLOURS[2], lw=2, label=label)
    ax.set(xlabel="steps done", ylabel="accuracy of worker 0's batch (%)")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    again = first[-1][0] - second[0][0] + 1
    title = f"{again} steps are computed twice, and both tries lie on the undisturbed curve"
    ax.set_title(title, fontsize=9)
    figure(fig, title)


def saving(periods_s, save_s, between_s, simulated):
    """Draw what saving and repeating cost at each period, and what a simulation gave."""
    minutes, periods_s = np.array(periods_s) / 60, np.array(periods_s)
    save, repeat = 100 * save_s / periods_s, 50 * periods_s / between_s
    curves = {"saving": save, "repeating": repeat, "both": save + repeat}
    curves["simulated"] = 100 * np.array(simulated)
    best = (2 * save_s * between_s) ** 0.5 / 60
    title = f"Saving and repeating together cost least at {best:.0f} minutes"
    names = "minutes between two checkpoints", "additional time (%)"
    look = {"xscale": "log", "yscale": "log", "title": title}
    alt = f"{title}: with a longer period saving costs less, and repeating more"
    lines({name: (minutes, y) for name, y in curves.items()}, *names, alt, **look)

"""Plots of numbers of 16 bits: their ranges, a loss scale, speeds and accuracies.

The title of each, its finding, is its alternative text.
"""

import matplotlib.pyplot as plt
import numpy as np

from colours import EDGE
from helpers import figure
from plots import COLOURS, lines
from plots.finding import title

LARGEST, SMALLEST = 65504, 2.0**-24  # of float16


def ranges(limits):
    """Draw what each type holds, from ``{type: (largest, smallest, step)}``."""
    fig, ax = plt.subplots(figsize=(6.4, 2))
    for row, ((name, (largest, smallest, step)), colour) in enumerate(zip(limits.items(), COLOURS)):
        low, high = np.log10(smallest), np.log10(largest)
        ax.barh(row, high - low, 0.6, left=low, color=colour)
        ax.text(low - 2, row, f"{name}, step {step:.1g}", va="center", ha="right")
    ax.invert_yaxis()
    ax.set(xlim=(-75, 41), xlabel="size of a number (power of ten)", yticks=[])
    ax.set_xticks(range(-45, 41, 15))
    found = "float16 has by far the shortest range, bfloat16 nearly that of float32"
    ax.set_title(title(found))
    figure(fig, found)


def histogram(sizes, scales):
    """Draw how large gradients are, times each loss scale, and what float16 holds."""
    fig, ax = plt.subplots(figsize=(5.6, 2.4))
    low, high = np.log2(SMALLEST), np.log2(LARGEST)
    ax.axvspan(low, high, color=COLOURS[1], alpha=0.2, label="what float16 holds")
    weights = np.full(len(sizes), 100 / len(sizes))
    for scale, colour in zip(scales, (COLOURS[0], COLOURS[3])):
        label = f"loss scale {scale:,}"
        ax.hist(
            np.log2(sizes * scale),
            np.arange(-50, 21),
            weights=weights,
            alpha=0.7,
            color=colour,
            label=label,
        )
    ax.set(xlabel="size of a gradient (power of two)", ylabel="gradients (%)")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    small = [f"{100 * (sizes * scale < SMALLEST / 2).mean():.1f} %" for scale in scales]
    found = f"Too small for float16: {small[0]} of the gradients, with a loss scale {small[1]}"
    ax.set_title(title(found))
    figure(fig, found)


def loss_scale(scales, skipped, gradient):
    """Draw the scale of each step near the places where it changes, and the skipped updates."""
    fig, axes = plt.subplots(1, 3, figsize=(6.4, 2), sharey=True)
    used, bad = np.array(scales), np.array(skipped)
    for ax, first in zip(axes, (0, 2000, 4000)):
        near = np.arange(first, first + 10)
        crosses = near[bad[near]]
        ax.step(near, used[near], where="mid", color=COLOURS[0], label="loss scale")
        ax.plot(crosses, used[crosses], "x", color=COLOURS[3], label="update skipped")
        ax.axhline(LARGEST / gradient, color="#222222", ls="--", lw=1, label="overflow above")
        ax.set_xticks(near[::4])
    axes[0].set_yscale("log", base=2)
    axes[0].set_ylabel("loss scale")
    axes[1].set_xlabel("step")
    axes[2].legend(loc="center left", bbox_to_anchor=(1.05, 0.5), frameon=False)
    found = f"The scale falls, rises twice and falls again; {bad.sum()} updates are skipped"
    axes[1].set_title(title(found))
    figure(fig, found)


def weight(paths):
    """Draw ``{way: values of a weight, one for each 100 updates}``."""
    updates = range(100, 100 * len(paths["float32"]) + 1, 100)
    ends = "; ".join(f"{way}: {path[-1]:.2f}" for way, path in paths.items())
    found = f"A weight of 1 ends at: {ends}"
    curves = {way: (updates, path) for way, path in paths.items()}
    lines(curves, "updates", "value of the weight", found, title=title(found))


def speeds(ms):
    """Draw the speed of stacks of layers in bfloat16, as a multiple of float32's."""
    fig, ax = plt.subplots(figsize=(5.6, 2.4))
    stacks = list(ms["float32"])
    for row, name in enumerate(list(ms)[1:3]):
        ratios = [ms["float32"][s] / ms[name][s] if ms[name][s] else 0 for s in stacks]
        look = {"color": COLOURS[row], "edgecolor": EDGE, "linewidth": 0.5}
        look["hatch"] = "///" if row else ""
        ax.barh(np.arange(len(stacks)) + 0.4 * row - 0.2, ratios, 0.38, label=name, **look)
    ax.axvline(1, color="#222222", linestyle="--", linewidth=1)
    ax.set(yticks=range(len(stacks)), xlabel="speed, as a multiple of float32")
    ax.set_yticklabels(stacks)
    ax.invert_yaxis()
    ax.legend(loc="upper center", bbox_to_anchor=(0.3, -0.22), ncol=2, frameon=False)
    known = [s for s in stacks if ms["bfloat16"][s]]
    faster = sum(ms["bfloat16"][s] < ms["float32"][s] for s in known)
    found = f"bfloat16 is faster in {faster} of {len(stacks)} stacks"
    if not known:
        found = "This processor refuses bfloat16"
    ax.set_title(title(found))
    figure(fig, found)


def two_types(runs):
    """Draw the test accuracy over epochs for each seed of each type."""
    fig, ax = plt.subplots(figsize=(5.6, 2.6))
    for (dtype, results), colour, shift in zip(runs.items(), COLOURS, (-0.06, 0.06)):
        for line, mark in zip(results, "os^"):
            percent = 100 * np.array(line["accuracy"])
            label = f"{dtype}, seed {line['seed']}"
            ax.plot(
                1 + shift + np.arange(len(percent)), percent, f"{mark}-", color=colour, label=label
            )
    ax.set(xlabel="epochs", ylabel="test accuracy (%)", xticks=(1, 2, 3))
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    means = [
        f"{100 * np.mean([line['accuracy'][-1] for line in results]):.1f} % in {dtype}"
        for dtype, results in runs.items()
        if results
    ]
    found = f"Mean accuracy after the last epoch: {', '.join(means)}"
    ax.set_title(title(found))
    figure(fig, found)

"""The pictures of the notebooks, in one look: colours that colour-blind people tell apart."""

import matplotlib.pyplot as plt
import numpy as np

from colours import EDGE, PARTS
from helpers import figure

COLOURS = ["#0072B2", "#B87700", "#009E73", "#D55E00", "#BD6495", "#3389BF", "#666666"]
MARKS = "os^Dvx+"
# Bars that touch differ in more than colour; the first part, and forward, are plain.
HATCHES = {
    "backward": "///",
    "exchange": "...",
    "update": "xxx",
    "server copies": "---",
    "server adds": "+++",
    "waiting": "|||",
}

plt.rcParams["font.size"] = 9
plt.rcParams["lines.linewidth"] = 2
plt.rcParams["hatch.linewidth"] = 0.5


def lines(curves, xlabel, ylabel, alt, below=None, **axis):
    """Draw ``{label: y values, or (x, y)}`` as lines with marks, each named at its end.

    The curve ``below`` is wide and pale, so that one that lies upon it does not hide it. Further
    arguments, such as ``ylim=(0, 1)`` or ``xscale="log"``, go to ``Axes.set``.
    """
    fig, ax = plt.subplots(figsize=(5.6, 2.6))
    for (label, values), colour, mark in zip(curves.items(), COLOURS, MARKS):
        x, y = values if isinstance(values, tuple) else (np.arange(len(values)), values)
        look = {"lw": 7, "alpha": 0.35} if label == below else {"marker": mark, "ms": 4}
        ax.plot(x, y, color=colour, label=label, **look)
    ax.set(xlabel=xlabel, ylabel=ylabel, **axis)
    ax.grid(alpha=0.3)
    name_ends(ax)
    figure(fig, alt)


def name_ends(ax, gap=0.085):
    """Write each line's name beside its end, ``gap`` of the axes' height apart or more."""
    ax.get_ylim()  # the limits are found now
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = {}
    for line in ax.get_lines():
        height = to_axes.transform((line.get_xdata()[-1], line.get_ydata()[-1]))[1]
        heights[line] = float(np.clip(np.nan_to_num(height), 0, 1))
    order, last = sorted(heights, key=heights.get), -1.0
    for line in order:  # upwards, then down from the top
        last = heights[line] = max(heights[line], last + gap)
    last = 1 + gap
    for line in reversed(order):
        last = heights[line] = min(heights[line], last - gap)
        look = {"transform": ax.transAxes, "clip_on": False}
        key, own = ax.plot([1.02, 1.07], [last, last], **look)[0], line.get_label()
        key.update({"color": line.get_color(), "lw": line.get_lw(), "alpha": line.get_alpha()})
        ax.plot([1.045], [last], line.get_marker(), color=line.get_color(), ms=4, **look)
        ax.text(1.09, last, own, va="center", transform=ax.transAxes)


def bars(rows, xlabel, alt, **axis):
    """Draw ``{row: {part: width}}`` as horizontal bars made of parts.

    Parts of a step have the colours and hatches that they have everywhere. ``axis`` goes to
    ``Axes.set``.
    """
    fig, ax = plt.subplots(figsize=(5.6, 0.7 + 0.4 * len(rows)))
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    left = np.zeros(len(rows))
    for part, colour, hatch in zip(parts, COLOURS, ["", *HATCHES.values()]):
        widths = np.array([row.get(part, 0) for row in rows.values()])
        look = {"color": PARTS.get(part, colour), "edgecolor": EDGE, "linewidth": 0.5}
        look["hatch"] = "" if part == "forward" else HATCHES.get(part, hatch)
        ax.barh(list(rows), widths, left=left, label=part, **look)
        left += widths
    ax.set(xlabel=xlabel, **axis)
    ax.invert_yaxis()
    if len(parts) > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure(fig, alt)


def pictures(images, titles, alt, columns=8):
    """Draw images, (height, width) in grey or (height, width, 3), in rows, a title above each."""
    rows = -(-len(images) // columns)
    fig, axes = plt.subplots(rows, columns, figsize=(0.95 * columns, 1.15 * rows), squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, image, title in zip(axes.flat, images, titles):
        ax.imshow(image, cmap="gray_r" if image.ndim == 2 else None)
        ax.set_title(title, fontsize=8)
    figure(fig, alt)

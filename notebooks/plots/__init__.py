"""The pictures of the notebooks, in one look: colours that colour-blind people tell apart."""

import matplotlib.pyplot as plt
import numpy as np

from helpers import figure

COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#666666"]
MARKS = "os^Dvx+"

plt.rcParams["font.size"] = 9


def lines(curves, xlabel, ylabel, alt, **axis):
    """Draw ``{label: y values, or (x, y)}`` as lines with marks.

    Further arguments, such as ``ylim=(0, 1)`` or ``xscale="log"``, go to ``Axes.set``.
    """
    fig, ax = plt.subplots(figsize=(5.6, 2.6))
    for (label, values), colour, mark in zip(curves.items(), COLOURS, MARKS):
        x, y = values if isinstance(values, tuple) else (np.arange(len(values)), values)
        ax.plot(x, y, f"{mark}-", color=colour, ms=4, lw=1.2, label=label)
    ax.set(xlabel=xlabel, ylabel=ylabel, **axis)
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure(fig, alt)


def bars(rows, xlabel, alt):
    """Draw ``{row: {part: width}}`` as horizontal bars made of parts."""
    fig, ax = plt.subplots(figsize=(5.6, 0.7 + 0.4 * len(rows)))
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    left = np.zeros(len(rows))
    for part, colour in zip(parts, COLOURS):
        widths = np.array([row.get(part, 0) for row in rows.values()])
        ax.barh(list(rows), widths, left=left, color=colour, label=part)
        left += widths
    ax.set(xlabel=xlabel)
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

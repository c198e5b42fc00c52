"""The plot of ratios: what each compares, its dot and interval beside 1, and its number.

It has two forms: what is compared stands beside its dot, or, narrow enough for a phone, above it.
"""

import math
import re
from typing import NamedTuple

LIMIT = re.compile(r"the limit of")
EQUAL = 0.02  # so near to 1 is equal
LINE = 0.19  # inches
TICKS = 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20
MARKS = {  # of a dot: its shape, its colour, what it says
    "reached": ("o", "#00734D", "better: the whole interval"),
    "equal": ("s", "#666666", f"equal within {EQUAL:.0%}".replace("%", " %")),
    "missed": ("v", "#B3261E", "worse: the whole interval"),
    "undecided": ("o", "#666666", "undecided: the interval holds 1"),
    "limit": ("D", "#666666", "1 is the limit"),
}


class Form(NamedTuple):
    """Where things stand: inches, parts of the width, and lines of a row."""

    width: float
    left: float  # of the axis
    lines: float  # of a row
    places: tuple  # of its name, what it compares, its dot


WIDE = Form(8.0, 0.46, 2.4, (0.6, 1.6, 1.1))
NARROW = Form(4.2, 0.03, 3.4, (0.6, 1.6, 2.75))


def verdict(row):
    """Return how a ratio of which more is better lies to 1: a key of MARKS."""
    if LIMIT.search(row["title"]):
        return "limit"
    value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
    low, high = (value, value) if math.isnan(low) else (low, high)
    if abs(value - 1) <= EQUAL and low > 1 - 2 * EQUAL and high < 1 + 2 * EQUAL:
        return "equal"
    if low <= 1 <= high:
        return "undecided"
    return "reached" if low > 1 else "missed"


def draw(rows, path, form=WIDE):
    """Draw each ratio by its name and what it compares: a dot, its interval, its number.

    Parameters
    ----------
    rows : list of dict
        Of ratios.csv, with a name and what is compared: :func:`report.in_page`. More is better.
    path : pathlib.Path
        Of the SVG file.
    form : Form
    """
    plt = plotting("ratios")
    from matplotlib.ticker import FixedFormatter, FixedLocator
    from matplotlib.transforms import blended_transform_factory

    used = [kind for kind in MARKS if kind in {verdict(row) for row in rows}]
    above, below = 0.5, 0.45 + 0.2 * len(used)  # inches
    height = form.lines * max(len(rows), 1)
    size = form.width, above + LINE * (height + 0.5) + below
    figure = plt.figure(figsize=size)
    right = 1 - 0.67 / form.width
    room = form.left, below / size[1], right - form.left, 1 - (above + below) / size[1]
    axis = figure.add_axes(room, xscale="log", ylim=(height, -0.5), yticks=[])
    across = blended_transform_factory(figure.transFigure, axis.transData)
    words = {"transform": across, "va": "center_baseline", "fontsize": 10.5}
    dots = [form.lines * i + form.places[2] for i in range(len(rows))]
    for i, (row, dot) in enumerate(zip(rows, dots)):
        name, what = (form.lines * i + line for line in form.places[:2])
        axis.text(0, name, row["name"], **words, fontweight="bold")
        axis.text(0, what, row["what"], **words)
        value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
        axis.text(1, dot, f"{value:.2f}", ha="right", **words, fontweight="bold")
        kind = verdict(row)
        mark, colour, _ = MARKS[kind]
        if not math.isnan(low):
            axis.plot([low, high], [dot, dot], color=colour, linewidth=2.5)
        axis.plot(value, dot, mark, **filled_with(kind, colour), markersize=8)
    low, high = axis.get_xlim()
    low, high = axis.set_xlim(min(low, 0.95), max(high, 2.1))
    axis.hlines(dots, low, high, color="#DDDDDD", linewidth=1, zorder=0)
    ends = [dot - 0.4 for dot in dots], [dot + 0.4 for dot in dots]
    axis.vlines([1] * len(dots), *ends, color="#666666", linewidth=1, zorder=0)
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axis.xaxis.set_major_locator(FixedLocator(ticks))
    axis.xaxis.set_major_formatter(FixedFormatter([f"{tick:g}" for tick in ticks]))
    axis.xaxis.set_minor_locator(FixedLocator([]))
    axis.tick_params(top=True, labeltop=True, labelsize=10.5)
    for side in ("left", "right"):
        axis.spines[side].set_visible(False)
    top = {"va": "top", "fontsize": 10.5}
    figure.text(0, 1 - 0.04 / size[1], "1: equal; more is better ▶; log scale", **top)
    figure.text(1, 1 - 0.04 / size[1], "ratio", ha="right", fontweight="bold", **top)
    marks = [axis.plot([], [], MARKS[k][0], **filled_with(k, MARKS[k][1]))[0] for k in used]
    look = {"loc": "lower left", "frameon": False, "fontsize": 10.5, "handletextpad": 0.2}
    figure.legend(marks, [MARKS[k][2] for k in used], bbox_to_anchor=(0, 0), **look)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def filled_with(kind, colour):
    """Return how a mark is filled: wholly, by half or not; told apart without its colour."""
    style = {"reached": "full", "undecided": "left"}.get(kind, "none")
    return {"color": colour, "fillstyle": style, "markerfacecoloralt": "white"}


def plotting(salt):
    """Return pyplot, for pictures of which the same rows give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = salt
    matplotlib.rcParams["svg.fonttype"] = "none"  # text, not paths
    matplotlib.rcParams["font.sans-serif"] = ["DejaVu Sans", "Arial"]  # told with each text
    from matplotlib import pyplot

    return pyplot

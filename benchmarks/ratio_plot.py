"""The plot of ratios: what each compares, its number, and its interval beside 1."""

import math
import re
import textwrap

HEADINGS = {  # in the plot; of groups whose name begins so
    "one-process|fast": "One process",
    "workers-fast": "Two workers on one host, small network",
    "workers": "Two workers on one host, ResNet-18",
    r"\d+.?bit": "Two hosts, ResNet-18",
    "start|reading|published": "Start, memory, accuracy",
    "growth": "Eight hosts",
}
PREFIX = re.compile(  # what a heading says already
    "^two hosts at |^resnet18_v1, |(?<=bit), ResNet-18|(?<=18|rk), one process"
)
LESS_IS_BETTER = re.compile("time to the first|time of a step|peak memory")
LIMIT = re.compile(r"\(control\)|2 processes$|one repeated batch$|the limit of")
EQUAL = 0.02  # so near to 1 is equal
LESS = "Less is better ◀"  # heading of such rows
MARKS = {  # of a dot: its shape, its colour, what it says
    "reached": ("o", "#00734D", "better: all of the interval"),
    "equal": ("s", "#666666", f"equal within {EQUAL:.0%}".replace("%", " %")),
    "missed": ("v", "#B3261E", "worse: all of the interval"),
    "undecided": ("o", "#666666", "undecided: the interval holds 1"),
    "limit": ("D", "#666666", "1 is the limit, or expected"),
}


def heading(row):
    """Return the heading that a row stands below in the plot."""
    if LESS_IS_BETTER.match(row["title"]):
        return LESS
    group = row["group"]
    return next((words for start, words in HEADINGS.items() if re.match(start, group)), group)


def verdict(row):
    """Return how a ratio lies to 1: a key of MARKS."""
    if LIMIT.search(row["title"]):
        return "limit"
    value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
    low, high = (value, value) if math.isnan(low) else (low, high)
    if abs(value - 1) <= EQUAL and low > 1 - 2 * EQUAL and high < 1 + 2 * EQUAL:
        return "equal"
    if low <= 1 <= high:
        return "undecided"
    return "reached" if (high < 1) == bool(LESS_IS_BETTER.match(row["title"])) else "missed"


def layout(rows):
    """Place rows and their headings below each other, in lines of text.

    Rows of one heading stand together; those of which less is better come last. Where each row
    would have a heading of its own, there are no headings.

    Returns
    -------
    lines : list of (float, str or tuple)
        The middle of each, and what it holds: a heading, or a row and its title.
    height : float
        Of all lines.
    """
    heads = sorted(dict.fromkeys(map(heading, rows)), key=lambda head: head == LESS)
    has_heads = len(heads) < len(rows)
    lines, height = [], 0.0
    for head in heads:
        if has_heads:
            lines.append((height + 0.9, head))
            height += 1.6
        for row in (row for row in rows if heading(row) == head):
            title = PREFIX.sub("", row["title"]) if has_heads else row["title"]
            title += f" ({LESS.lower()})" * (head == LESS and not has_heads)
            title = textwrap.wrap(title, 32)
            own = len(title) + 0.5
            lines.append((height + own / 2, (row, "\n".join(title))))
            height += own
    return lines, height


def draw(rows, path):
    """Draw each ratio in columns: what it compares, its number, its interval, and both as a dot."""
    plt = plotting("ratios")
    from matplotlib.ticker import LogLocator
    from matplotlib.transforms import blended_transform_factory

    lines, height = layout(rows)
    used = [kind for kind in MARKS if kind in {verdict(row) for row in rows}]
    above, below = 0.6, 0.45 + 0.22 * math.ceil(len(used) / 2)  # inches
    size = 7.2, above + 0.18 * (height or 1) + below
    figure = plt.figure(figsize=size)
    room = 0.66, below / size[1], 0.31, 1 - (above + below) / size[1]
    axis = figure.add_axes(room, xscale="log", ylim=(height or 1, 0), yticks=[])
    across = blended_transform_factory(figure.transFigure, axis.transData)
    words = {"transform": across, "va": "center_baseline", "fontsize": 10}
    columns = (0.01, "left"), (0.43, "right"), (0.61, "right")  # what, ratio, interval
    for (x, side), name in zip(columns, ("what was compared", "ratio", "95 % interval")):
        head = {"ha": side, "fontsize": 10, "fontweight": "bold"}
        figure.text(x, 1 - 0.3 / size[1], name, **head)
    for place, held in lines:
        if isinstance(held, str):
            axis.text(0.01, place, held, **words, fontweight="bold")
            continue
        row, title = held
        value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
        kind = verdict(row)
        mark, colour, _ = MARKS[kind]
        interval = "one run"
        if not math.isnan(low):
            axis.plot([low, high], [place, place], color=colour, linewidth=2.5)
            interval = f"{short(low)} to {short(high)}"
        axis.plot(value, place, mark, **filled_with(kind, colour), markersize=8)
        for (x, side), text in zip(columns, (title, short(value), interval)):
            axis.text(x, place, text, ha=side, **words)
    axis.axvline(1, color="#666666", linewidth=1, zorder=0)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")
    axis.tick_params(top=True, labeltop=True, labelsize=10)
    for side in ("left", "right"):
        axis.spines[side].set_visible(False)
    figure.text(0.97, 1 - 0.12 / size[1], "more is better ▶", ha="right", va="top", fontsize=10)
    marks = [axis.plot([], [], MARKS[k][0], **filled_with(k, MARKS[k][1]))[0] for k in used]
    look = {"loc": "lower left", "frameon": False, "fontsize": 10, "ncol": 2, "handletextpad": 0.2}
    figure.legend(marks, [MARKS[k][2] for k in used], bbox_to_anchor=(0, 0), **look)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def short(number):
    """Return a ratio in three digits."""
    return f"{number:.2f}" if number < 10 else f"{number:.1f}"


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
    from matplotlib import pyplot

    return pyplot

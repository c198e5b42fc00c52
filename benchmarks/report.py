"""What was measured: its tables, their pages, its pictures, and the machine it was measured on.

``.venv/bin/python benchmarks/report.py`` writes the tables of the pages again, between their marks,
and draws the pictures again, from benchmarks/results/*.csv.
"""

import math
import re
import statistics
import textwrap
from itertools import groupby

from comparison import Row, ratio
from contenders import ROOT
from growth_model import Measured
from tables import RESULTS, read, replaced, write

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
PAGE = {  # the rows of RESULTS.md: what each compares
    "ResNet-18, one process, float32: ours / best of PyTorch": (
        "**One process**, ResNet-18, float32: images/s, ours / fastest way of PyTorch"
    ),
    "ResNet-18, one process, bfloat16: ours / best of PyTorch": "The same in bfloat16",
    "resnet18_v1, batch 128 a worker: ours / DDP": (
        "**Two workers, one host**, ResNet-18, batch 128 a worker: images/s, ours / PyTorch's DDP"
    ),
    "resnet18_v1, batch 32 a worker: ours / DDP": "The same, batch 32 a worker",
    "two hosts at 1gbit, ResNet-18, batch 128: ours / DDP": (
        "**Two hosts, 1 Gbit/s**, ResNet-18, batch 128 a worker: images/s, ours / DDP"
    ),
    "two hosts at 100mbit, ResNet-18, batch 128: ours / DDP": "The same, 100 Mbit/s",
    "time to the first batch, 2 workers: ours / torchrun": (
        "**Start**, two workers: seconds to the end of the first batch, ours / `torchrun` (*less is"
        " better*)"
    ),
    "peak memory of a worker: ours / published": (
        "**Memory** of a worker, ResNet-18: ours / MXNet's published example (*less is better*)"
    ),
    "time to the accuracy of five published epochs: published / ours": (
        "**Time to the accuracy** that the published example has after five epochs: published /"
        " ours (ours is a smaller network, `fast`)"
    ),
    "8 hosts at 200mbit: a step / the limit of computing and cable": (
        "**Growth**, eight hosts, 200 Mbit/s: seconds of a step / the physical limit (*1 is"
        " perfect*)"
    ),
}
NEEDS_ROOT = re.compile("bit$")  # a group of simulated hosts
HEADLINES = (
    "ResNet-18, one process, bfloat16: ours / best of PyTorch",
    "resnet18_v1, batch 128 a worker: ours / DDP",
    "two hosts at 1gbit, ResNet-18, batch 128: ours / DDP",
    "time to the first batch, 2 workers: ours / torchrun",
    "time to the accuracy of five published epochs: published / ours",
)
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


def add(folder, group, found, rows, common):
    """Put the results of a group in the place of its earlier ones; return a line for each ratio.

    Parameters
    ----------
    folder : pathlib.Path
        Of runs.csv and ratios.csv.
    group : str
    found : dict
        name: the figures of each of its runs.
    rows : list of comparison.Row
    common : dict
        Columns of every row: :func:`tables.where`.
    """
    runs = [
        {"group": group, "program": name, "run": i, "figure": k, "value": round(v, 4), **common}
        for name, figures in found.items()
        for i, of_run in enumerate(figures)
        for k, v in of_run.items()
    ]
    ratios = [ratio_row(group, row, common) for row in rows]
    for name, new in (("runs.csv", runs), ("ratios.csv", ratios)):
        write(folder / name, replaced(read(folder / name), new))
    return ["{title}: {ratio} ({low} to {high})".format(**row) for row in ratios]


def ratio_row(group, row, common):
    """Return the line of ratios.csv of a :class:`comparison.Row`."""
    value = ratio(row.a, row.b)
    numbers = {"ratio": value.value, "low": value.low, "high": value.high}
    return {
        "group": group,
        "title": row.title,
        **{name: round(number, 4) for name, number in numbers.items()},
        "runs": len(row.a),
        **common,
        "note": row.note,
    }


def page_rows(folder=RESULTS):
    """Return the rows of RESULTS.md, in its order."""
    return in_page(read(folder / "ratios.csv") + growth_row(read(folder / "growth.csv")))


def growth_row(rows):
    """Return the row of ratios.csv's form that growth.csv gives: of most hosts, overlapped."""
    if not rows:
        return []
    measured = Measured(rows)
    hosts = measured.workers[-1]
    steps, limit = (of(hosts, hosts, 1) for of in (measured.steps, measured.limit))
    title = f"{hosts} hosts at {measured.rate}: a step / the limit of computing and cable"
    common = {name: rows[0][name] for name in ("date", "machine", "python", "commit", "torch")}
    return [ratio_row("growth", Row(title, steps, [limit] * 2), common)]


def in_page(ratios):
    """Return those of some rows that RESULTS.md shows, in its order."""
    return sorted(
        (row for row in ratios if row["title"] in PAGE), key=lambda row: [*PAGE].index(row["title"])
    )


def interval(row, digits):
    """Return the columns of a ratio and its interval."""
    value, low, high = (f"{float(row[k]):.{digits}f}" for k in ("ratio", "low", "high"))
    return f"{value} | {'one run' if low == 'nan' else f'{low} to {high}'}"


def command(row):
    """Return what measures a row again."""
    group = row["group"]
    if group == "growth":
        return "sudo .venv/bin/python benchmarks/growth.py"
    data = " DATA=DIR" if group == "published" else ""
    return f"{'sudo ' * bool(NEEDS_ROOT.search(group))}make bench ONLY={group}{data}"


def results_table(folder=RESULTS):
    """Return the lines of RESULTS.md's table."""
    rows = page_rows(folder)
    yield "| what was compared | ratio | 95 % interval | runs | command |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| {PAGE[row['title']]} | {interval(row, 2)} | {row['runs']} | `{command(row)}` |"
    yield from ("", made(rows))


def rows_tables(folder=RESULTS):
    """Return the lines of benchmarks/rows.md: a table for each group of ratios.csv."""
    every = read(folder / "ratios.csv")
    yield from (made(every), "")
    for group, rows in groupby(every, key=lambda row: row["group"]):
        rows = list(rows)
        when = made(rows, ("date", "commit"))
        yield from (f"## {group}", "", f"`{command(rows[0])}` · {when}", "")
        yield from ("| what | ratio | 95 % interval | runs |", "|---|---|---|---|")
        for row in rows:
            title = row["title"] + (f" ({row['note']})" if row["note"] else "")
            yield f"| {title} | {interval(row, 3)} | {row['runs']} |"
        yield ""


def made(rows, names=("machine", "python", "torch", "date", "commit")):
    """Return on what, with what and when rows were measured."""
    words = {"python": "Python ", "torch": "PyTorch ", "commit": "commit "}
    different = {k: "; ".join(dict.fromkeys(row[k] for row in rows if row[k])) for k in names}
    line = " · ".join(words.get(k, "") + text for k, text in different.items() if text)
    return re.sub(r"(\d+) x ", r"\1 cores of ", line)


def growth_table(folder=RESULTS):
    """Return the lines of the table of docs/growth.md: measured beside the limits."""
    rows = read(folder / "growth.csv")
    measured = Measured(rows)
    yield (
        "| hosts | in turn, s | limit, s | measured / limit | overlapped, s | limit, s |"
        " measured / limit |"
    )
    yield "|---|---|---|---|---|---|---|"
    for hosts in measured.workers:
        for servers in (hosts, 1) if hosts > 1 else (1,):
            ways = [_beside_limit(measured, hosts, servers, overlap) for overlap in (0, 1)]
            name = f"{hosts}, one server in all" if servers < hosts else hosts
            if any(ways):
                yield f"| {name} | {' | '.join(way or ' | | ' for way in ways)} |"
    yield from ("", made(rows))


def _beside_limit(measured, *job):
    """Return the columns of a job: the median of its runs, its limit, and their ratio."""
    steps = measured.steps(*job)
    if not steps:
        return ""
    limit = measured.limit(*job)
    value = ratio(steps, [limit] * 2)
    beside = f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"
    return f"{statistics.median(steps):.3f} | {limit:.3f} | {beside}"


PAGES = {
    ROOT / "RESULTS.md": results_table,
    ROOT / "benchmarks" / "rows.md": rows_tables,
    ROOT / "docs" / "growth.md": growth_table,
}


def filled(text, lines):
    """Return a page with lines between its marks."""
    before, _, rest = text.partition(BEGIN)
    return "\n".join([before + BEGIN, *lines, END]) + rest.partition(END)[2]


def refresh(folder=RESULTS):
    """Write the tables of the pages, and the pictures; of another folder only what it can have."""
    draw_all(folder)
    if folder.resolve() == RESULTS:
        for page, lines in PAGES.items():
            page.write_text(filled(page.read_text(), lines()))
    else:
        (folder / "rows.md").write_text("\n".join(rows_tables(folder)))


def draw_all(folder, to=None):
    """Draw the rows of RESULTS.md, and those of the site's first page."""
    rows = page_rows(folder)
    draw(rows, (to or folder) / "ratios.svg")
    draw(headlines(rows), (to or folder) / "headlines.svg")


def headlines(ratios):
    """Return the rows of ratios.csv that the site's first page shows: at most five."""
    return [row for row in ratios if row["title"] in HEADLINES]


def heading(row):
    """Return the heading that a row stands below in the plot."""
    if LESS_IS_BETTER.match(row["title"]):
        return LESS
    group = row["group"]
    return next((words for start, words in HEADINGS.items() if re.match(start, group)), group)


def verdict(row):
    """Tell how a ratio lies to 1: a key of MARKS."""
    if LIMIT.search(row["title"]):
        return "limit"
    value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
    low, high = (value, value) if math.isnan(low) else (low, high)
    if abs(value - 1) <= EQUAL and low > 1 - 2 * EQUAL and high < 1 + 2 * EQUAL:
        return "equal"
    if low <= 1 <= high:
        return "undecided"
    return "reached" if (high < 1) == bool(LESS_IS_BETTER.match(row["title"])) else "missed"


def draw(rows, path):
    """Draw each ratio in columns: what it compares, its number, its interval, and both as a dot.

    Rows of one heading stand together; those of which less is better come last. Where each row
    would have a heading of its own, there are no headings.
    """
    plt = plotting("ratios")
    from matplotlib.ticker import LogLocator
    from matplotlib.transforms import blended_transform_factory

    heads = list(dict.fromkeys(map(heading, rows)))
    heads.sort(key=lambda head: head == LESS)
    lines, place = [], 0.0  # the middle of each line, in lines of text, and what it holds
    has_heads = len(heads) < len(rows)
    for head in heads:
        if has_heads:
            lines.append((place + 0.9, head))
            place += 1.6
        for row in (row for row in rows if heading(row) == head):
            title = PREFIX.sub("", row["title"]) if has_heads else row["title"]
            title += f" ({LESS.lower()})" * (head == LESS and not has_heads)
            title = textwrap.wrap(title, 32)
            height = len(title) + 0.5
            lines.append((place + height / 2, (row, "\n".join(title))))
            place += height
    used = [kind for kind in MARKS if kind in {verdict(row) for row in rows}]
    above, below = 0.6, 0.45 + 0.22 * math.ceil(len(used) / 2)  # inches
    size = 7.2, above + 0.18 * (place or 1) + below
    figure = plt.figure(figsize=size)
    room = 0.66, below / size[1], 0.31, 1 - (above + below) / size[1]
    axis = figure.add_axes(room, xscale="log", ylim=(place or 1, 0), yticks=[])
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
        for (x, side), told in zip(columns, (title, short(value), interval)):
            axis.text(x, place, told, ha=side, **words)
    axis.axvline(1, color="#666666", linewidth=1, zorder=0)
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")
    axis.tick_params(top=True, labeltop=True, labelsize=10)
    for side in ("left", "right"):
        axis.spines[side].set_visible(False)
    figure.text(0.97, 1 - 0.12 / size[1], "more is better ▶", ha="right", va="top", fontsize=10)
    marks = [axis.plot([], [], MARKS[k][0], **filled_with(k, MARKS[k][1]))[0] for k in used]
    told = {"loc": "lower left", "frameon": False, "fontsize": 10, "ncol": 2, "handletextpad": 0.2}
    figure.legend(marks, [MARKS[k][2] for k in used], bbox_to_anchor=(0, 0), **told)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def short(number):
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


if __name__ == "__main__":
    refresh()

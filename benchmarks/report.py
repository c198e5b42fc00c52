"""What was measured: its tables, its page, its pictures, and the machine that it was measured on.

``.venv/bin/python benchmarks/report.py`` draws the pictures of the stored tables again.
"""

import csv
import datetime
import math
import os
import platform
import re
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path

from comparison import ratio
from contenders import PEERS_PYTHON, ROOT

RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
MEASURED = ("cifar10_dist", "tools", "benchmarks/peers", "benchmarks/*.py")
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
    "start|loader|reading|memory|published": "Start, reading, memory, accuracy",
}
PREFIX = re.compile(  # what a heading says already
    "^two hosts at |^resnet18_v1, |(?<=bit), ResNet-18|(?<=18|rk), one process"
)
LESS_IS_BETTER = re.compile("time to the first|time that|time of a step|peak memory|bytes sent")
LIMIT = re.compile(r"\(control\)|share of the|2 processes$|one repeated batch$|the limit of")
EQUAL = 0.02  # so near to 1 is equal
LESS = "Less is better ◀"  # heading of such rows
MARKS = {  # of a dot: its shape, its colour, what it says
    "reached": ("o", "#00734D", "better: all of the interval"),
    "equal": ("s", "#666666", f"equal within {EQUAL:.0%}".replace("%", " %")),
    "missed": ("v", "#B3261E", "worse: all of the interval"),
    "undecided": ("o", "#666666", "undecided: the interval holds 1"),
    "limit": ("D", "#666666", "1 is the limit, or expected"),
}
TORCH_VERSION = """
import importlib.util, runpy
(folder,) = importlib.util.find_spec("torch").submodule_search_locations
print(runpy.run_path(f"{folder}/version.py")["__version__"])
"""  # importing it takes seconds


def where():
    """Describe what every row is measured with."""
    commit = _printed("git", "rev-parse", "--short", "HEAD")
    is_changed = commit and _printed("git", "status", "--porcelain", "--", *MEASURED)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine() or platform.processor(),
        "python": platform.python_version(),
        "commit": commit + ("+" if is_changed else ""),
        "torch": _printed(str(PEERS_PYTHON), "-c", TORCH_VERSION),
    }


def machine(cpuinfo=None):
    """Name the processors of a ``/proc/cpuinfo``: ``2 x AMD EPYC, family 25 model 1``.

    Processors of one name can be of different generations. Empty if they have no name.
    """
    if cpuinfo is None:
        path = Path("/proc/cpuinfo")  # of Linux
        cpuinfo = path.read_text() if path.exists() else ""
    pairs = re.findall(r"^(.*?)\s*: *(.*)$", cpuinfo, re.MULTILINE)
    fields, count = dict(pairs), [key for key, _ in pairs].count("model name")
    if not count:
        return ""
    family = ", family {cpu family} model {model}" if "cpu family" in fields else ""
    return f"{count} x {fields['model name']}{family.format(**fields)}"


def _printed(*command):
    """Return what a program prints; nothing if it fails or is missing."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def read(path):
    """Return the rows of a table; none if there is no such table."""
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    """Write a table whole: killed meanwhile, the program leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    with open(beside, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    os.replace(beside, path)


@dataclass(frozen=True)
class Results:
    """All that is known.

    Attributes
    ----------
    runs, ratios : list of dict
        The rows of runs.csv and ratios.csv.
    text : str
        The page, in which a table of ratios stands between ``BEGIN`` and ``END``.
    """

    runs: list
    ratios: list
    text: str

    @classmethod
    def read(cls, folder, page):
        """Read the tables in a folder, and a page; empty where there are none."""
        tables = (read(folder / name) for name in ("runs.csv", "ratios.csv"))
        return cls(*tables, page.read_text() if page.exists() else "")

    def with_group(self, group, found, rows, common):
        """Return the results with those of a group in the place of its earlier ones.

        Parameters
        ----------
        group : str
        found : dict
            name: the figures of each of its runs.
        rows : list of comparison.Row
        common : dict
            Columns of every row: :func:`where`.
        """
        runs = [
            {"group": group, "program": name, "run": i, "figure": k, "value": round(v, 4), **common}
            for name, figures in found.items()
            for i, of_run in enumerate(figures)
            for k, v in of_run.items()
        ]
        ratios = replaced(self.ratios, [ratio_row(group, row, common) for row in rows])
        return Results(replaced(self.runs, runs), ratios, filled(self.text, ratios))

    def told(self, group):
        """Return a line for each ratio of a group."""
        line = "{title}: {ratio} ({low} to {high})"
        return [line.format(**row) for row in self.ratios if row["group"] == group]

    def write(self, folder, page):
        """Write the tables, the picture and the page."""
        write(folder / "runs.csv", self.runs)
        write(folder / "ratios.csv", self.ratios)
        self.draw(folder)
        page.write_text(self.text)

    def draw(self, folder):
        """Draw the rows of the page, and those of the site's first page."""
        draw(in_page(self.ratios), folder / "ratios.svg")
        draw(headlines(self.ratios), folder / "headlines.svg")


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
        "in_page": int(row.in_page),
    }


def replaced(old, new):
    """Return a table with the rows of one group in the place of its earlier ones."""
    group = new[0]["group"]
    place = next((i for i, row in enumerate(old) if row["group"] == group), len(old))
    return [*old[:place], *new, *(row for row in old[place:] if row["group"] != group)]


def in_page(ratios):
    """Return the rows of ratios.csv that the page shows."""
    return [row for row in ratios if str(row["in_page"]) == "1"]


def filled(text, ratios):
    """Return a page with the table of ratios between its marks, or at its end."""
    lines = ["| what | ratio | 95 % interval | runs | date, commit |", "|---|---|---|---|---|"]
    rows = in_page(ratios)
    for row in rows:
        title = row["title"] + (f" ({row['note']})" if row["note"] else "")
        value, low, high = (float(row[name]) for name in ("ratio", "low", "high"))
        interval = "one run" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        made = f"{row['date']} {row['commit']}".strip()
        lines.append(f"| {title} | {value:.3f} | {interval} | {row['runs']} | {made} |")
    words = {"machine": "", "python": "Python ", "torch": "PyTorch "}
    ran = {k: "; ".join(dict.fromkeys(row[k] for row in rows if row[k])) for k in words}
    lines += ["", " · ".join(words[k] + ran[k] for k in words if ran[k])]
    before, _, rest = text.partition(BEGIN)
    return "\n".join([before + BEGIN, *lines, END]) + rest.partition(END)[2]


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
    Results.read(RESULTS, ROOT / "RESULTS.md").draw(RESULTS)

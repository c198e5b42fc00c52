"""What was measured: its tables, its page, its picture, and the machine that it was measured on."""

import csv
import datetime
import math
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from comparison import ratio
from contenders import PEERS_PYTHON, ROOT

RESULTS = ROOT / "benchmarks" / "results"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
MEASURED = ("cifar10_dist", "tools", "benchmarks/peers", "benchmarks/*.py")
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
        draw(in_page(self.ratios), folder / "ratios.svg")
        page.write_text(self.text)


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


def draw(rows, path):
    """Draw each ratio with its interval, its title above it."""
    plt = plotting("ratios")
    from matplotlib.ticker import LogLocator

    figure, axis = plt.subplots(figsize=(6, 1 + 0.4 * len(rows)))
    for place, row in enumerate(reversed(rows)):
        value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
        if not math.isnan(low):
            axis.plot([low, high], [place, place], color="#0072B2", linewidth=3)
        axis.plot(value, place, "o", color="#0072B2")
        across = axis.get_yaxis_transform()
        title = axis.text(0.01, place + 0.35, row["title"], fontsize=8, transform=across)
        title.set_bbox({"color": "white", "pad": 0})  # the line at 1 does not strike it through
        title.set_in_layout(False)
    axis.set_yticks([])
    axis.set_ylim(-0.5, len(rows) - 0.2)
    axis.axvline(1, color="#999999", linewidth=1)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter("")
    axis.set_xlabel("ratio, with its 95 % interval; 1: equal")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def plotting(salt):
    """Return pyplot, for pictures of which the same rows give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = salt
    matplotlib.rcParams["svg.fonttype"] = "none"  # text, not paths
    from matplotlib import pyplot

    return pyplot

"""What was measured, kept in tables and shown in RESULTS.md."""

import csv
import datetime
import math
import os
import statistics
from dataclasses import dataclass
from pathlib import Path

from comparison import Ratio, verdict
from load import NOTICED
from measured import where

RESULTS = Path(__file__).resolve().parent / "results"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


@dataclass(frozen=True)
class Row:
    """A ratio of two programs' figures, and what it should be.

    ``aim`` is at least reached, or with ``is_upper_limit`` at most; None for a mere observation.
    With ``edge`` it is an aim for the ratio alone, whose interval may begin there.
    """

    title: str
    a: str
    b: str
    figure: str
    aim: float = None
    is_upper_limit: bool = False
    edge: float = None
    note: str = ""


def positive(text):
    """Read a number of rounds, for argparse."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


class Tables:
    """What is known: runs.csv, ratios.csv, ratios.svg, and the table of a page.

    Parameters
    ----------
    folder : pathlib.Path
    page : pathlib.Path
        Whose lines between ``BEGIN`` and ``END`` are written.
    """

    def __init__(self, folder, page):
        self._folder, self._page = folder, page

    def keep_runs(self, group, found):
        """Replace what was known of a group's runs."""
        common = {"date": datetime.date.today().isoformat(), **where()}
        runs = [
            {"group": group, "program": name, "run": i, "figure": k, "value": round(v, 4), **common}
            for name, all_figures in found.items()
            for i, figures in enumerate(all_figures)
            for k, v in figures.items()
        ]
        self._replace("runs.csv", runs, "group", group)

    def keep(self, group, found, row, value):
        """Replace what was known of a ratio."""
        loads = [run["load"] for runs in found.values() for run in runs if "load" in run]
        ratios = {
            "group": group,
            "title": row.title,
            "ratio": round(value.value, 4),
            "low": round(value.low, 4),
            "high": round(value.high, 4),
            "target": "" if row.aim is None else row.aim,
            "is_upper_limit": int(row.is_upper_limit),
            "runs": len(found[row.a]),
            "date": datetime.date.today().isoformat(),
            **where(),
            "edge": "" if row.edge is None else row.edge,
            "note": row.note,
            "load": round(statistics.mean(loads or [0.0]), 2),
        }
        self._replace("ratios.csv", [ratios], "title", row.title)

    def keep_only(self, group, titles):
        """Drop the rows of a group that it does not measure any more."""
        rows = self._read("ratios.csv")
        self._write(
            "ratios.csv", [r for r in rows if r.get("group") != group or r["title"] in titles]
        )

    def write(self):
        """Fill the table in RESULTS.md, and draw it: rows with an aim, and those of one process."""
        rows = [r for r in self._read("ratios.csv") if r["target"] or r["group"] == "one-process"]
        lines = [
            "| what | ratio | 95 % interval | aim | by the interval | runs | date, commit |",
            "|---|---|---|---|---|---|---|",
            *(f"| {' | '.join(_cells(row))} |" for row in rows),
            "",
        ]
        words = {"machine": "", "python": "Python ", "torch": "PyTorch "}
        ran = {k: "; ".join(dict.fromkeys(row[k] for row in rows if row.get(k))) for k in words}
        lines.append(" · ".join(words[k] + ran[k] for k in words if ran[k]))
        if any(_load(row) >= NOTICED for row in rows):
            lines += ["", "*Under load*: so many processors were busy with something else."]
        draw(rows, self._folder / "ratios.svg")
        text = self._page.read_text() if self._page.exists() else ""
        before, _, rest = text.partition(BEGIN)
        after = rest.partition(END)[2]
        self._page.write_text("\n".join([before + BEGIN, *lines, END]) + after)

    def _read(self, name):
        path = self._folder / name
        if not path.exists():
            return []
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    def _replace(self, name, rows, column, key):
        """Write rows to a table in the place of those with the same key."""
        old = self._read(name)
        place = next((i for i, r in enumerate(old) if r[column] == key), len(old))
        others = [(i, r) for i, r in enumerate(old) if r[column] != key]
        self._write(
            name, [r for i, r in others if i < place] + rows + [r for i, r in others if i > place]
        )

    def _write(self, name, rows):
        """Write a table whole: killed meanwhile, the program leaves the old one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._folder / f"{name}.new"
        with open(beside, "w", newline="") as file:
            writer = csv.DictWriter(file, max(rows, key=len))
            writer.writeheader()
            writer.writerows(rows)
        os.replace(beside, self._folder / name)


def _cells(row):
    """Return the cells of a row of the table."""
    value = Ratio(*(float(row[name]) for name in ("ratio", "low", "high")))
    aim, edge = (float(row[k]) if row.get(k) else None for k in ("target", "edge"))
    is_upper_limit = row["is_upper_limit"] == "1"
    wanted = "" if aim is None else f"{'at most' if is_upper_limit else 'at least'} {aim:.2f}"
    wanted += "" if edge is None else f", interval above {edge:.2f}"
    return (
        row["title"] + (f" ({row['note']})" if row.get("note") else ""),
        f"{value.value:.3f}",
        "one run" if math.isnan(value.low) else f"{value.low:.3f} to {value.high:.3f}",
        wanted,
        verdict(value, aim, is_upper_limit, edge),
        row["runs"] + (f", under load: {_load(row):.1f}" if _load(row) >= NOTICED else ""),
        f"{row['date']} {row.get('commit') or ''}".strip(),
    )


def _load(row):
    return float(row.get("load") or 0)


def draw(rows, path):
    """Draw each ratio with its interval, a bar at its target, and its title above it."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ratios"  # the same rows, the same bytes
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, axis = plt.subplots(figsize=(6, 1 + 0.4 * len(rows)))
    for place, row in enumerate(reversed(rows)):
        value, low, high = (float(row[k]) for k in ("ratio", "low", "high"))
        if not math.isnan(low):
            axis.plot([low, high], [place, place], color="#0072B2", linewidth=3)
        axis.plot(value, place, "o", color="#0072B2")
        if row["target"]:
            edge = float(row["target"])
            axis.plot([edge, edge], [place - 0.25, place + 0.25], color="#D55E00", linewidth=3)
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
    axis.set_xlabel("ratio (blue, with its 95 % interval)\nand what it should be (vermillion)")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)

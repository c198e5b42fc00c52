"""What was measured, kept in tables and shown in RESULTS.md."""

import csv
import datetime
import math
import platform
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


@dataclass(frozen=True)
class Row:
    """A ratio of two programs' figures, and what it should be.

    ``target`` is at least reached, or with ``less_is_better`` at most; None for a mere observation.
    """

    title: str
    a: str
    b: str
    figure: str
    target: float = None
    less_is_better: bool = False


def positive(text):
    """Read a number of rounds, for argparse."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def machine():
    """Describe the processor in a few words."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return f"{len(names)} x {names[0]}" if names else platform.processor()


def keep(group, found, row, value):
    """Replace what was known of a group's runs and of a ratio."""
    today = datetime.date.today().isoformat()
    common = {"date": today, "machine": machine(), "python": platform.python_version()}
    runs = [
        {"group": group, "program": name, "run": i, "figure": k, "value": round(v, 4), **common}
        for name, all_figures in found.items()
        for i, figures in enumerate(all_figures)
        for k, v in figures.items()
    ]
    _replace("runs.csv", runs, ("group",), [group])
    ratios = {
        "group": group,
        "title": row.title,
        "ratio": round(value.value, 4),
        "low": round(value.low, 4),
        "high": round(value.high, 4),
        "target": "" if row.target is None else row.target,
        "is_upper_limit": int(row.less_is_better),
        "runs": len(found[row.a]),
        **common,
    }
    _replace("ratios.csv", [ratios], ("title",), [row.title])


def keep_only(group, titles):
    """Drop the rows of a group that it does not measure any more."""
    rows = _read("ratios.csv")
    _write("ratios.csv", [r for r in rows if r.get("group") != group or r["title"] in titles])


def write():
    """Fill the table in RESULTS.md, and draw it."""
    rows = _read("ratios.csv")
    lines = [
        "| what | ratio | 95 % interval | target | reached | runs | date |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        target, sign = row["target"], "at most" if row["is_upper_limit"] == "1" else "at least"
        reached = ""
        if target:
            gap = float(row["ratio"]) - float(target)
            reached = "yes" if (gap <= 0 if row["is_upper_limit"] == "1" else gap >= 0) else "no"
        low, high = (f"{float(row[k]):.3f}" for k in ("low", "high"))
        interval = "one round" if math.isnan(float(row["low"])) else f"{low} to {high}"
        wanted = f"{sign} {float(target):.2f}" if target else ""
        cells = (row["title"], f"{float(row['ratio']):.3f}", interval, wanted, reached)
        lines.append(f"| {' | '.join([*cells, row['runs'], row['date']])} |")
    draw(rows)
    path = HERE.parent / "RESULTS.md"
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text("\n".join([before + BEGIN, *lines, END]) + after)


def draw(rows):
    """Draw each ratio with its interval, a bar at its target, and its title above it."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ratios"  # the same rows, the same bytes
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(5.2, 1 + 0.4 * len(rows)))
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
        title.set_in_layout(False)
    axis.set_yticks([])
    axis.margins(y=0.01)
    axis.axvline(1, color="#999999", linewidth=1)
    axis.set_xscale("log")
    axis.set_xlabel("ratio (blue, with its 95 % interval)\nand what it should be (vermillion)")
    figure.tight_layout()
    figure.savefig(RESULTS / "ratios.svg", metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def _read(name):
    path = RESULTS / name
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def _replace(name, rows, columns, key):
    """Write rows to a table in the place of those with the same key."""
    old = _read(name)
    place = next((i for i, r in enumerate(old) if [r[c] for c in columns] == key), len(old))
    others = [(i, r) for i, r in enumerate(old) if [r[c] for c in columns] != key]
    _write(name, [r for i, r in others if i < place] + rows + [r for i, r in others if i > place])


def _write(name, rows):
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / name, "w", newline="") as file:
        writer = csv.DictWriter(file, max(rows, key=len))
        writer.writeheader()
        writer.writerows(rows)

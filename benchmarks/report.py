"""What was measured: its tables, and the pages and pictures that are made of them.

``.venv/bin/python benchmarks/report.py`` writes the tables of the pages again, between their marks,
and draws the pictures again, from benchmarks/results/*.csv.
"""

import re
import statistics
from itertools import groupby

from comparison import Row, ratio
from contenders import ROOT
from growth_model import Measured
from ratio_plot import NARROW, draw
from tables import RESULTS, read, replaced, write

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
PYTORCH = "images/s: ours / PyTorch (fastest way)"
DDP = "images/s: ours / PyTorch (DDP)"
PAGE = {  # the rows of RESULTS.md: a name, and what is compared
    "ResNet-18, one process, float32: ours / best of PyTorch": (
        "One process, ResNet-18, float32",
        PYTORCH,
    ),
    "ResNet-18, one process, bfloat16: ours / best of PyTorch": (
        "One process, ResNet-18, bfloat16",
        PYTORCH,
    ),
    "resnet18_v1, batch 128 a worker: ours / DDP": ("Two workers, one host, batches of 128", DDP),
    "resnet18_v1, batch 32 a worker: ours / DDP": ("Two workers, one host, batches of 32", DDP),
    "two hosts at 1gbit, ResNet-18, batch 128: ours / DDP": ("Two hosts, 1 Gbit/s", DDP),
    "two hosts at 100mbit, ResNet-18, batch 128: ours / DDP": ("Two hosts, 100 Mbit/s", DDP),
    "time to the first batch, 2 workers: ours / torchrun": (
        "Start of two workers",
        "seconds to the first batch: torchrun / ours",
    ),
    "peak memory of a worker: ours / published": (
        "Memory of a worker",
        "published example / ours",
    ),
    "time to the accuracy of five published epochs: published / ours": (
        "Another, smaller network, same accuracy",
        "seconds: published example / ours",
    ),
    "8 hosts at 200mbit: the limit of computing and cable / a step": (
        "Eight hosts, 200 Mbit/s",
        "seconds of a step: limit / measured",
    ),
}
LESS_IS_BETTER = {  # in ratios.csv; RESULTS.md shows the inverse
    "time to the first batch, 2 workers: ours / torchrun",
    "peak memory of a worker: ours / published",
}
NEEDS_ROOT = re.compile("bit$")  # a group of simulated hosts
HEADLINES = (
    "ResNet-18, one process, bfloat16: ours / best of PyTorch",
    "resnet18_v1, batch 128 a worker: ours / DDP",
    "two hosts at 1gbit, ResNet-18, batch 128: ours / DDP",
    "time to the first batch, 2 workers: ours / torchrun",
    "peak memory of a worker: ours / published",
)


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
    title = f"{hosts} hosts at {measured.rate}: the limit of computing and cable / a step"
    common = {name: rows[0][name] for name in ("date", "machine", "python", "commit", "torch")}
    return [ratio_row("growth", Row(title, [limit] * len(steps), steps), common)]


def in_page(ratios):
    """Return those of some rows that RESULTS.md shows, in its order and words: more is better."""
    shown = {row["title"]: row for row in ratios}
    return [
        {**better_upwards(shown[title]), "name": name, "what": what}
        for title, (name, what) in PAGE.items()
        if title in shown
    ]


def better_upwards(row):
    """Return a row of ratios.csv, or its inverse if less is better there."""
    if row["title"] not in LESS_IS_BETTER:
        return row
    value, low, high = (1 / float(row[k]) for k in ("ratio", "low", "high"))
    return {**row, "ratio": value, "low": high, "high": low}


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
        what = f"**{row['name']}**, {row['what']}"
        yield f"| {what} | {interval(row, 2)} | {row['runs']} | `{command(row)}` |"
    yield from ("", *provenance(rows))


def provenance(rows):
    """Return lines with on what, with what, when and at which commit rows were measured."""
    first = rows[0]
    yield f"- Machine: {made(rows[:1], ('machine',))}."
    yield f"- Versions: {made(rows, ('python', 'torch')).replace(' · ', ', ')}."
    for date in dict.fromkeys(row["date"] for row in rows):
        then = [row for row in rows if row["date"] == date]
        parts = []
        for commit in dict.fromkeys(row["commit"] for row in then):
            groups = dict.fromkeys(row["group"] for row in then if row["commit"] == commit)
            names = ", ".join(f"`{group}`" for group in groups)  # as in the column of commands
            where = f"at commit {commit}" if commit else "(the commit was not recorded)"
            parts.append(f"{names} {where}")
        machine = made([row for row in then if row["machine"] != first["machine"]], ("machine",))
        on = f" on {machine}" if machine else ""
        yield f"- Measured on {date}{on}: {'; '.join(parts)}."


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
        "| hosts | in turn, s | limit, s | limit / measured | overlapped, s | limit, s |"
        " limit / measured |"
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
    value = ratio([limit] * len(steps), steps)
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
    """Draw the rows of RESULTS.md, and those of the site's first page; each for a phone, too."""
    rows = page_rows(folder)
    for name, shown in ("ratios", rows), ("headlines", headlines(rows)):
        draw(shown, (to or folder) / f"{name}.svg")
        draw(shown, (to or folder) / f"{name}-narrow.svg", NARROW)


def headlines(ratios):
    """Return the rows of ratios.csv that the site's first page shows: at most five."""
    return [row for row in ratios if row["title"] in HEADLINES]


if __name__ == "__main__":
    refresh()

"""The tables of what was measured, and the machine that it was measured on."""

import csv
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"
MEASURED = ("cifar10_dist", "tools", "benchmarks/peers", "benchmarks/*.py")
TORCH_VERSION = """
import importlib.util, runpy
(folder,) = importlib.util.find_spec("torch").submodule_search_locations
print(runpy.run_path(f"{folder}/version.py")["__version__"])
"""  # importing it takes seconds


def where(peers_python):
    """Describe what every row is measured with: columns that rows of one sitting share."""
    commit = _printed("git", "rev-parse", "--short", "HEAD")
    is_changed = commit and _printed("git", "status", "--porcelain", "--", *MEASURED)
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine() or platform.processor(),
        "python": platform.python_version(),
        "commit": commit + ("+" if is_changed else ""),
        "torch": _printed(str(peers_python), "-c", TORCH_VERSION),
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
        done = subprocess.run(command, cwd=RESULTS.parents[1], capture_output=True, text=True)
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


def replaced(old, new):
    """Return a table with the rows of one group in the place of its earlier ones."""
    group = new[0]["group"]
    place = next((i for i, row in enumerate(old) if row["group"] == group), len(old))
    return [*old[:place], *new, *(row for row in old[place:] if row["group"] != group)]

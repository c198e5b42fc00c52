#!/usr/bin/env python3
"""Write what the launcher really said of the faults of the page `pushpull.md`, as JavaScript.

    python docs/site/pushpull_data.py build/site/_static/pushpull_data.js

All of it are outputs that the committed notebooks hold. Needs no package.
"""

import json
import re
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FAILURES, HOSTS = "06-survive-failures", "05-train-on-your-own-hosts"


def output(notebook, source):
    """Return what the one cell with this in its source printed, without the line of its command."""
    text = (NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    (cell,) = (cell for cell in cells if source in "".join(cell["source"]))
    lines = "".join(text for out in cell["outputs"] for text in out.get("text", [])).splitlines()
    return [line for line in lines if line and not line.startswith("$ ")]


def told(words, lines, notebook):
    """Return an output with the words above it, and the notebook that it is of."""
    assert lines, words
    return {"words": words, "lines": lines, "notebook": notebook}


def data():
    """Return the outputs by fault: alone is MXNet without the launcher."""
    stuck = output(HOSTS, "where_it_hangs(lines)")
    first = next(i for i, line in enumerate(stuck) if "asnumpy" in line)
    (silence,) = (re.search(r"for (\d+) s$", line) for line in stuck if "--stall-timeout" in line)
    cut = output(FAILURES, 'Job("cut"')
    return {
        "alone": {
            "sync": told("MXNet alone", output(FAILURES, 'run(*ALONE, "dist_sync")'), FAILURES),
            "async": told("MXNet alone", output(FAILURES, 'run(*ALONE, "dist_async")'), FAILURES),
        },
        "kill": [
            told("With the launcher", output(FAILURES, 'Job("death"'), FAILURES),
            told("With --max-restarts 2", output(FAILURES, 'Job("killed"'), FAILURES),
        ],
        "slow": [told(f"With --stall-timeout {silence[1]}", stuck[first:], HOSTS)],
        "cable": [
            told("With --max-restarts 2", [li for li in cut if "difference" not in li], FAILURES)
        ],
    }


def write(path):
    """Write the data as a script."""
    text = f"const pushPullData = {json.dumps(data(), ensure_ascii=False)};\n"
    Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])

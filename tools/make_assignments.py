#!/usr/bin/env python3
"""Make nbgrader's ``source/`` from the notebooks: ``make assignments``.

What is one cell to a reader becomes two: the answer, with the folded one as the solution that
nbgrader takes out again, and the check, which is locked. Also writes down for nbgrader how it
grades: what a teacher may change in the course's ``nbgrader_config.py``, unless there is one, and
what every course needs in nbgrader's own environment, with a kernel that is ``.venv``'s.
"""

import argparse
import copy
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
KERNEL = Path(sys.prefix, "share/jupyter/kernels/gluon-grading/kernel.json")
CONFIG = Path(sys.prefix, "etc/jupyter/nbgrader_config.py")
CHECK = re.compile(r"^(?:from checks|check_).*\n?", re.M)


def main(argv=None):
    """Write the course that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("course", type=Path, help="folder of the course, made if it is missing")
    args = parser.parse_args(argv)
    if not PYTHON.exists():
        print("make assignments: .venv is missing, which grades: make setup", file=sys.stderr)
        return 2
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        folder = args.course / "source" / path.stem
        folder.mkdir(parents=True, exist_ok=True)
        notebook = assignment(json.loads(path.read_text(encoding="utf-8")))
        (folder / path.name).write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    if not (args.course / "nbgrader_config.py").exists():
        shutil.copy(ROOT / "docs" / "teaching" / "nbgrader_config.py", args.course)
    words = [str(PYTHON), "-E", str(ROOT / "tools" / "grading_kernel.py")]
    words += ["-f", "{connection_file}"]
    spec = {"argv": words, "display_name": "MXNet", "language": "python"}
    config = f"import sys\nsys.path.append({str(ROOT / 'tools')!r})\n"
    config += "import grading\ngrading.configure(get_config())\n"
    for path, text in (KERNEL, json.dumps(spec)), (CONFIG, config):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def assignment(notebook):
    """Return a notebook as nbgrader wants it: answers and checks in cells of their own."""
    answers = iter(cell for cell in notebook["cells"] if has_tag(cell, "answer"))
    cells = []
    for cell in notebook["cells"]:
        if has_tag(cell, "exercise"):
            cells += split(cell, answer_code("".join(next(answers)["source"])))
        elif not has_tag(cell, "answer"):
            cells.append(cell)
    return {**notebook, "cells": cells}


def has_tag(cell, tag):
    """Return whether a cell has a tag."""
    return tag in cell["metadata"].get("tags", [])


def answer_code(text):
    """Return the code in a folded answer."""
    assert text.startswith("<details><summary>Answer</summary>\n\n")
    assert text.rstrip().endswith("</details>")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M))


def split(exercise, solution):
    """Return the cell to answer in and the cell that checks."""
    source = "".join(exercise["source"])
    answer, check = ({**copy.deepcopy(exercise), "outputs": []} for _ in range(2))
    mark = "### {} SOLUTION\n"
    answer["source"] = CHECK.sub("", source).strip() + "\n" + mark.format("BEGIN")
    answer["source"] += solution + mark.format("END")
    answer["metadata"]["nbgrader"]["grade"] = False
    del answer["metadata"]["nbgrader"]["points"]
    check["source"] = "".join(CHECK.findall(source)).strip()
    check["id"] += "-check"
    check["metadata"]["nbgrader"].update(solution=False, locked=True)
    check["metadata"]["nbgrader"]["grade_id"] += "-check"
    return answer, check


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Run the notebooks and keep what they put out: ``make notebooks``, with real images ``DATA=DIR``.

A notebook that fails stays as it was. Its line "Takes about N minutes" is brought up to date from
what its last line says.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
TOOK = re.compile(r"Took (\d+) minutes?\b.* on (\d{4}-\d\d-\d\d)")
TAKES = re.compile(r"Takes about \d+ minutes?\b(.*measured )\d{4}-\d\d-\d\d")


def main(argv=None):
    """Run what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all")
    parser.add_argument("--data", help="folder with mnist/ and cifar10/; default: as the readers")
    args = parser.parse_args(argv)
    environ = dict(os.environ)
    if args.data:
        if not os.path.isdir(args.data):
            parser.error(f"--data {args.data}: no such folder")
        environ["TUTORIAL_DATA"] = os.path.abspath(args.data)
    for path in args.notebooks or sorted(FOLDER.glob("*.ipynb")):
        print(f"{path.name} ...", flush=True)
        command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
        options = ["--inplace", "--log-level=WARN"]
        options += ["--ExecutePreprocessor.record_timing=False"]
        if subprocess.run([*command, *options, str(path)], env=environ).returncode:
            print(f"{path.name}: a cell failed; the file is as it was", file=sys.stderr)
            return 1
        print(update_time(path))
    return 0


def update_time(path):
    """Write the minutes and the date that the notebook's last output says at its top."""
    notebook = nbformat.read(path, as_version=4)
    said = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    *_, (minutes, date) = TOOK.findall(said)
    plural = "" if minutes == "1" else "s"
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            line = rf"Takes about {minutes} minute{plural}\g<1>{date}"
            cell.source = TAKES.sub(line, cell.source)
    nbformat.write(notebook, path)
    hosts = ", without ssh hosts: its text tells of them" * ("No ssh hosts can be made" in said)
    return f"{path.name}: {minutes} min, {path.stat().st_size // 1000} kB{hosts}"


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Which exercises are solved: checks note it, and ``make progress`` shows it.

    python notebooks/progress.py

Needs the standard library only. Nothing is sent anywhere.
"""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
EXERCISES = 3  # of each notebook


def place():
    """Return the file of what is solved: a line for each exercise, such as ``01 3``."""
    return Path(os.environ.get("TUTORIAL_PROGRESS", FOLDER.parent / "build" / "progress.txt"))


def notebooks():
    """Return the notebooks by number, as in ``{"00": "00-start-here", …}``."""
    return {path.name[:2]: path.stem for path in sorted(FOLDER.glob("[0-9][0-9]-*.ipynb"))}


def solved():
    """Return the solved exercises as a set of (notebook's number, exercise's number)."""
    try:
        lines = place().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    every = {f"{book} {n}": (book, n) for book in notebooks() for n in range(1, EXERCISES + 1)}
    return {every[line] for line in lines if line in every}


def note(notebook, number):
    """Note that an exercise is solved; where that cannot be written, do nothing."""
    if (notebook, number) in solved():
        return
    try:
        place().parent.mkdir(exist_ok=True)
        with open(place(), "a", encoding="utf-8") as file:
            file.write(f"{notebook} {number}\n")
    except OSError:
        pass


def overview():
    """Return what ``make progress`` prints."""
    books, done = notebooks(), solved()
    every = [(book, number) for book in books for number in range(1, EXERCISES + 1)]
    names = {
        book: f"{book} {name[3:].replace('-', ' ').capitalize().replace('pytorch', 'PyTorch')}"
        for book, name in books.items()
    }
    width = max(map(len, names.values()))
    rows = ["exercises 1 to 3 of each notebook: ✓ solved, · open"]
    for book, name in names.items():
        signs = ["✓" if (book, n) in done else "·" for n in range(1, EXERCISES + 1)]
        rows.append(f"{name:{width}}  {''.join(signs)}")
    text = "\n".join(rows) + f"\n{len(done)} of {len(every)} exercises solved."
    coming = [exercise for exercise in every if exercise not in done]
    if not coming:
        return text
    book, number = coming[0]
    return f"{text} Next: exercise {number} of notebooks/{books[book]}.ipynb"


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    print(overview())

"""The checks of the exercises: each says in a line whether an answer is right, and what is next.

A check is a function that returns what to look at, or nothing if the answer is right.
:func:`exercise` makes of it what a notebook calls.
"""

import functools
import html
import json
import os
import re
import zlib
from pathlib import Path

from IPython import get_ipython
from IPython.display import display

import progress
from checks.reasons import REASONS

# Of each exercise as it was handed out: a number made from its cell (`fingerprint`).
HANDED_OUT = json.loads(Path(__file__).with_name("handed_out.json").read_text(encoding="utf-8"))
SIGNS = {"Correct": ("✓", "#009E73"), "Not yet": ("✗", "#D55E00"), "Your turn": ("○", "#767676")}


class Verdict:
    """A line on an exercise: as a box in a notebook, as text in a terminal."""

    def __init__(self, word, where, sentence, link=None):
        self.word, self.where, self.sentence, self.link = word, where, sentence, link

    def __repr__(self):
        """Return the text."""
        following = f" Next: {self.link[1]}." if self.link else ""
        return (
            f"{SIGNS[self.word][0]} {self.word}: {self.where}. {self.sentence}{following}".strip()
        )

    def _repr_html_(self):
        sign, colour = SIGNS[self.word]
        text = html.escape(self.sentence, quote=False)
        if self.link:
            file, name = self.link
            text += f' Next: <a href="{file}">{name}</a>.' if file else f" Next: {name}."
        return (
            f'<div style="border-left: 6px solid {colour}; padding: 6px 10px; margin: 2px 0">'
            f'<span aria-hidden="true">{sign} </span><strong>{self.word}</strong>: '
            f"{self.where}. {text}</div>"
        )


def exercise(notebook, number, like=None):
    """Make a check say what it finds.

    Where nbgrader grades, an answer that did not pass raises an error: it counts these.

    Parameters
    ----------
    notebook : str
        Its number, such as ``"00"``.
    number : int
        That of the exercise in its notebook.
    like : object
        What the answer is of the same type as: see :func:`fault_of_type`.
    """

    def decorate(check):
        @functools.wraps(check)
        def checked(*answer):
            if is_untouched(notebook, number):
                return say(notebook, number, "Your turn", "Change the cell, and run it again.")
            fault = fault_of_type(answer[0], like) if like is not None else ""
            fault = fault or check(*answer)
            if fault:
                return say(notebook, number, "Not yet", fault)
            progress.note(notebook, number)
            because = REASONS[notebook][number - 1]
            return say(notebook, number, "Correct", because, following(notebook, number))

        return checked

    return decorate


def say(notebook, number, word, sentence, link=None):
    """Display a verdict on an exercise."""
    display(Verdict(word, f"exercise {number} of {progress.EXERCISES}", sentence, link))
    if word == "Not yet" and "NBGRADER_EXECUTION" in os.environ:
        raise AssertionError(sentence)


def following(notebook, number):
    """Return the file and the name of what comes after an exercise, or None after the last."""
    if number < progress.EXERCISES:
        return "", f"exercise {number + 1}"
    later = [book for book in progress.notebooks().items() if book[0] > notebook]
    return (f"{later[0][1]}.ipynb", f"notebook {later[0][0]}") if later else None


def fingerprint(source):
    """Return a number made from the code of a cell, whatever its comments and spaces are."""
    return zlib.crc32(re.sub(r"#.*|\s", "", source).encode())


def is_untouched(notebook, number):
    """Return whether the cell that is being run is an exercise as it was handed out."""
    shell = get_ipython()
    cells = shell.user_ns.get("_ih") if shell else None
    return bool(cells) and fingerprint(cells[-1]) == HANDED_OUT[notebook][number - 1]


def fault_of_type(given, wanted):
    """Return what is wrong with the type of an answer, and what to write; nothing if it is right.

    Parameters
    ----------
    given : object
        The reader's answer, or a part of it.
    wanted : object
        A value of the right type: a text, a whole number, another number, a list, or a function.
    """
    import numpy as np

    if callable(wanted):
        kind, right = "a function, by its name alone", callable(given)
    elif isinstance(wanted, str):
        kind, right = "text, in quotes", isinstance(given, str)
    elif isinstance(wanted, (list, tuple)):
        kind, right = "a list", isinstance(given, (list, tuple, range, np.ndarray))
    else:
        kind = "a whole number" if isinstance(wanted, int) else "a number"
        right = isinstance(given, (int, float, np.integer, np.floating))
        right = right and not isinstance(given, bool)
    if right:
        return ""
    if isinstance(given, str):
        try:
            number = str(float(given)) if "." in given else str(int(given))
        except ValueError:
            number = ""
        if number and "number" in kind:
            return f'"{given}" is text: write the number {number}'
        return f'"{given}" is text: write {kind}'
    if isinstance(wanted, str) and isinstance(given, (int, float)):
        return f'{given} is no text: write "…", in quotes'
    return f"{_called(given)}: write {kind}"


def function():
    """Stand for an answer that is a function."""


def _called(given):
    """Say what an answer is."""
    if given is None:
        return "None is no answer yet"
    if callable(given):
        return f"{getattr(given, '__name__', 'it')} is a function"
    return f"{given!r} is of type {type(given).__name__}"


def fault_of_parts(answer, wanted, hints, close=1e-9):
    """Return the first fault of an answer that has parts: of a type, then of a value.

    Parameters
    ----------
    answer : dict
        The reader's. A part that is ``None`` or empty is open: its hint is given.
    wanted : dict
        Of each part, what is right.
    hints : dict or callable
        Of each part, what to look at; or a function that makes this from a part's name.
    close : float
        The difference that still counts as equal, between numbers with a fraction.
    """
    if not isinstance(answer, dict):
        parts = ", ".join(f'"{name}": …' for name in wanted)
        return f"{_called(answer)}: write {{{parts}}}"
    for name, value in wanted.items():
        given = answer.get(name)
        fault = "" if given is None or given == "" else fault_of_type(given, value)
        if fault:
            return f"{name}: {fault}"
    for name, value in wanted.items():
        given = answer.get(name)
        near = isinstance(value, float) and isinstance(given, (int, float))
        if not (abs(given - value) <= close if near else given == value):
            return f"{name}: {hints(name) if callable(hints) else hints[name]}"
    return ""


def compare(function, cases, close=1e-6):
    """Call an answer with each case's arguments, and return the first fault.

    Parameters
    ----------
    function : callable
        The reader's answer.
    cases : list of (tuple, number or list)
        Arguments, and the value that an independent way of working it out gives.
    close : float
        The relative difference that still counts as equal.
    """
    import numpy as np

    name = getattr(function, "__name__", "your function")
    for arguments, wanted in cases:
        call = f"{name}({', '.join(map(repr, arguments))})"
        try:
            got = function(*arguments)
            right = np.shape(got) == np.shape(wanted) and np.allclose(got, wanted, rtol=close)
        except Exception as error:
            return f"{call} raised {type(error).__name__}: {error}"
        if not right:
            return f"{call} must give {wanted}, not {got}"
    return ""

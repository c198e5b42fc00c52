"""How many columns a text takes on a terminal, and lines broken at words."""

import re
import unicodedata

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEAST = 16  # columns of text beside an indentation; with fewer there is no indentation


def width(text):
    """How many columns a text takes."""
    if text.isascii() and "\x1b" not in text:
        return len(text)
    plain = COLOUR.sub("", text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain
    )


def wrapped(prefix, text, columns, following=None):
    """A line as rows of a terminal, broken between words; a single row where it fits.

    Parameters
    ----------
    prefix : str
        Stands in front of the first row.
    text : str
    columns : int
        Of the terminal.
    following : str, optional
        Stands in front of the others; default: blanks, as wide as the prefix.

    Returns
    -------
    list of str
        A word that is longer than a row stays whole: the terminal breaks it, so it can be copied.
    """
    if "\t" in text:
        text = text.expandtabs() if width(prefix + text.expandtabs()) <= columns else text
        text = text.replace("\t", "  ")
    if width(prefix) + width(text) <= columns:
        return [prefix + text]
    own = text[: len(text) - len(text.lstrip(" "))]
    if following is None:
        following = " " * width(prefix)
    indent = following + own
    if columns - width(indent) < LEAST:
        indent = ""
    rows, row, is_empty = [], prefix + own, True
    for gap, word in re.findall(r"( *)(\S+)", text[len(own) :]):
        if is_empty:
            row += word
        elif width(row) + len(gap) + width(word) <= columns:
            row += gap + word
        else:
            rows.append(row)
            row = indent + word
        is_empty = False
    return [*rows, row]

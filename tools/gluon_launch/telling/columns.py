"""How many columns a text takes on a terminal; lines that are broken, or cut, at words."""

import re
import unicodedata

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
WORD = re.compile(r"( *)(\S+)")
TOGETHER = re.compile(r"\([^()]{,20}\)|(?<![\w-])--?\w[\w-]* (?=[^\s-])")  # (30 s), -H d1
ARGUMENT = re.compile(r"""(?:'[^']*'|"'"|[^\s'"])+""")  # as shlex quotes it
UNSAFE = set("\"'$`\\!\n")  # within double quotes
GOES_ON = " \\"  # behind a row of a command line
MORE = " ..."  # behind what was cut
LEAST = 16  # columns of text beside an indentation; with fewer there is no indentation


def width(text):
    """Return how many columns a text takes."""
    plain = COLOUR.sub("", text) if "\x1b" in text else text
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain
    )


def wrapped(prefix, text, columns, following=None):
    """Return a line as rows of a terminal, broken between words; a single row where it fits.

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
    before = width(prefix)
    if "\t" in text:
        whole = text.expandtabs()
        text = whole if before + width(whole) <= columns else text.replace("\t", "  ")
    if before + width(text) <= columns:
        return [prefix + text]
    own = text[: len(text) - len(text.lstrip(" "))]
    indent = (" " * before if following is None else following) + own
    if columns - width(indent) < LEAST:
        indent = ""
    rows, row, taken, is_empty = [], prefix + own, before + len(own), True
    for gap, word in WORD.findall(text, len(own)):
        more = width(word)
        if is_empty or taken + len(gap) + more <= columns:
            gap = "" if is_empty else gap
            row, taken, is_empty = row + gap + word, taken + len(gap) + more, False
        else:
            rows.append(row)
            row, taken = indent + word, width(indent) + more
    return [*rows, row]


def command_rows(command, columns):
    """Return a command line, quoted as shlex does, as rows that a shell takes for it when pasted.

    It is broken between arguments. One that is too long for a row, such as a command line within
    this one, is broken at its own blanks if it stands in double quotes as well.
    """
    words = []
    for word in ARGUMENT.findall(command):
        is_long = width(word) > columns - len(GOES_ON) and word[0] == word[-1] == "'"
        is_plain = is_long and not set(word[1:-1]) & UNSAFE
        words += f'"{word[1:-1]}"'.split(" ") if is_plain else [word]
    if width(command) <= columns or not words:
        return [command]
    rows = words[:1]
    for number, word in enumerate(words[1:], 2):
        room = columns - (len(GOES_ON) if number < len(words) else 0)
        if width(f"{rows[-1]} {word}") <= room:
            rows[-1] += f" {word}"
        else:
            rows[-1] += GOES_ON
            rows.append(word)
    return rows


def kept_together(text):
    """Return a text with a NUL for each blank at which it is not broken: :func:`spaced` after it.

    Such blanks are in short brackets, and between an option and what it takes.
    """
    return TOGETHER.sub(lambda found: found[0].replace(" ", "\0"), text)


def spaced(rows):
    """Return rows of such a text as they are shown."""
    return [row.replace("\0", " ") for row in rows]


def joined(pieces, between):
    """Return the words of pieces, see `fitted`, that are not empty."""
    return between.join(words for words, *_ in pieces if words)


def fitted(pieces, between, columns):
    """Join pieces to a row of so many columns at most, without a word that is cut.

    A piece is (words, when, others): in a row that is too long it becomes `others`, which may be a
    piece, too; the piece with the lowest `when` first; 0 is never. What is still too long ends
    after a whole word.
    """
    pieces = list(pieces)
    while True:
        row = joined(pieces, between)
        may_go = [piece for piece in pieces if piece[1]]
        if width(row) <= columns or not may_go:
            return whole_words(row, columns)
        first = min(may_go, key=lambda piece: piece[1])
        others = first[2]
        pieces[pieces.index(first)] = others if isinstance(others, tuple) else (others, 0, "")


def whole_words(text, columns):
    """Return the beginning of a text that fits, up to the end of a word, and a sign for more."""
    if width(text) <= columns:
        return text
    room = columns - len(MORE)
    while text and width(text) > room:
        shorter, _, _ = text.rstrip().rpartition(" ")
        text = shorter if shorter.strip() else text[: max(0, room)]
    return text.rstrip(" ,·|") + MORE if room > 0 else ""

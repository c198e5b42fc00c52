"""Colours on a terminal. They help to tell processes apart, and say nothing that words do not."""

import re

BOLD, RED, GREEN, YELLOW, GREY = "1", "31", "32", "33", "90"
HUES = ("36", "33", "35", "34", "96", "93", "95", "94")  # of workers, by rank


def is_terminal(file, environ):
    """Return whether a stream is a terminal that can move its cursor."""
    try:
        return file.isatty() and environ.get("TERM", "dumb") != "dumb"
    except ValueError:  # closed
        return False


def is_wanted(choice, file, environ):
    """Return whether to colour: `choice` is that of `--color`; see https://no-color.org."""
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or is_terminal(file, environ)


def of_process(process):
    """Return the colour of a process's name."""
    return HUES[process.rank % len(HUES)] if process.role == "worker" else GREY


def painted(text, colour):
    """Return the text in a colour; as it is without one."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour else text


def painted_help(text):
    """Return argparse's help with its headings, and the options where they are explained, bold."""
    text = re.sub(r"(?m)^(usage:|[a-z].*:$|[a-z][a-z ]{,30}$)", lambda m: painted(m[0], BOLD), text)
    names = re.compile(r"(?<!\S)--?\w[\w-]*")
    return re.sub(
        r"(?m)^  -.*?(?=  |$)",
        lambda line: names.sub(lambda name: painted(name[0], BOLD), line[0]),
        text,
    )

"""Advice to the user: some parts are of use with some ways of starting only.

An advice is a text, or a list of parts: (words, what they need), where a need is an option, such as
"--interface", or "ssh", or None.
"""


def anything(need):
    """Return True: all is of use."""
    return True


def fitting(advice, knows=anything):
    """Return the parts of an advice that are of use, "" if the first is not.

    `knows` says whether a need is met: see `Way.knows`.
    """
    parts = [(advice, None)] if isinstance(advice, str) else advice
    useful = [words for words, need in parts if need is None or knows(need)]
    return "".join(useful) if parts[0][0] in useful else ""

"""What a plot shows, above it: the words that are its alternative text, too."""

import textwrap


def title(words):
    """Return a finding, broken into lines that are no wider than a plot."""
    return textwrap.fill(words, 66)

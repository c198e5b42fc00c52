"""What a plot shows, above it: the words that are its alternative text, too."""

import textwrap

WIDEST = 66  # letters: as wide as a plot


def title(words):
    """Return a finding, broken into lines of about the same length."""
    lines = -(-len(words) // WIDEST)
    return textwrap.fill(words, len(words) // lines + 8)

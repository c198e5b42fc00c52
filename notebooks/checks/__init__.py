"""The checks of the exercises: each prints one line that begins with "Correct" or "Not yet"."""

import os


def say(passed, hint):
    """Print whether an answer passed, and what to look at if it did not.

    Where nbgrader grades, an answer that did not pass raises an error: it counts these.
    """
    print("Correct." if passed else f"Not yet: {hint}")
    if not passed and "NBGRADER_EXECUTION" in os.environ:
        raise AssertionError(hint)


def compare(function, cases, close=1e-6):
    """Call an answer with each case's arguments and compare with what is wanted.

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
            return say(False, f"{call} raised {type(error).__name__}: {error}")
        if not right:
            return say(False, f"{call} must give {wanted}, not {got}")
    return say(True, "")

"""The picture of notebook 04: how far runs of one program are apart."""

import matplotlib.pyplot as plt

from helpers import figure
from plots import COLOURS


def differences(far, tolerance, title):
    """Draw ``{run: largest difference of a parameter}`` on a scale of powers of ten."""
    fig, ax = plt.subplots(figsize=(5.6, 0.9 + 0.4 * len(far)))
    for row, value in enumerate(far.values()):
        is_right = value < tolerance
        look = {"color": COLOURS[0 if is_right else 3], "hatch": "" if is_right else "//"}
        ax.barh(row, value, 0.7, left=0, edgecolor="white", **look)
        ax.text(value * 1.3, row, f"{value:.0e}", va="center")
    ax.axvline(tolerance, color="black", ls=":")
    ax.set(xlabel="largest difference of a parameter from one worker's", title=title)
    ax.set(xscale="log", xlim=(1e-8, 30))
    ax.set_yticks(range(len(far)))
    ax.set_yticklabels(far)
    ax.invert_yaxis()
    values = ", ".join(f"{name} {value:.0e}" for name, value in far.items())
    figure(fig, f"{title}: {values}; the dotted line is the tolerance, {tolerance:.0e}")

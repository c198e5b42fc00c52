"""The plot of the notebook on PyTorch."""

from plots import lines
from plots.finding import title


def falling_rate(path):
    """Draw ``{library: values of a weight}``; the rate falls after ten steps."""
    ways = ", ".join(f"{values[-1] - values[9]:.2f} in {name}" for name, values in path.items())
    found = f"Equal for ten steps; in the next ten the weight moves by {ways}"
    lines(path, "step", "weight", found, title=title(found))

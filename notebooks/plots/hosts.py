"""Pictures of jobs on several hosts: which worker has which GPU."""

import matplotlib.pyplot as plt

from helpers import figure
from plots import COLOURS


def gpus_of_workers(placed, shares, num_gpus, title):
    """Draw the GPUs of each host as squares, in the colour of the worker that takes them.

    Parameters
    ----------
    placed : dict
        Host to names of processes.
    shares : dict
        Name of a worker to the numbers of its GPUs.
    num_gpus : int
        Of each host.
    title : str
        What the picture shows; its alternative text, too.
    """
    fig, ax = plt.subplots(figsize=(6.4, 0.7 + 0.45 * len(placed)))
    for row, names in enumerate(placed.values()):
        for place, name in enumerate(name for name in names if name in shares):
            numbers = list(shares[name])
            ax.barh(row, len(numbers) - 0.06, 0.8, left=numbers[0] - 0.47, color=COLOURS[place])
            middle = sum(numbers) / len(numbers)
            ink = "black" if place else "white"
            ax.text(middle, row, name, va="center", ha="center", color=ink)
    ax.set(
        xlabel="number of the GPU on its host", xticks=range(num_gpus), xlim=(-0.6, num_gpus - 0.4)
    )
    ax.set_yticks(range(len(placed)))
    ax.set_yticklabels(placed)
    ax.invert_yaxis()
    ax.set_title(title, fontsize=9)
    figure(fig, title)

"""Pictures of photos and of speeds of reading."""

import matplotlib.pyplot as plt
from PIL import Image

from helpers import figure
from plots import COLOURS


def photos(paths):
    """Draw photos to one scale, each with the square that goes into the network."""
    opened = [Image.open(path) for path in paths]
    fig, axes = plt.subplots(1, len(opened), figsize=(7, 1.9), sharex=True, sharey=True)
    for ax, photo in zip(axes, opened):
        width, height = photo.size
        coarse = photo.resize((width // 30, height // 30))
        ax.imshow(coarse, extent=(0, width, height, 0), interpolation="nearest")
        ax.add_patch(plt.Rectangle((0, 0), 224, 224, fill=False, color=COLOURS[3], linewidth=2))
        ax.tick_params(labelsize=8)
    axes[0].set(xlabel="pixels", ylabel="pixels", xlim=(0, max(p.width for p in opened)))
    axes[0].set_ylim(max(p.height for p in opened), 0)
    fig.tight_layout()
    figure(fig, "Photos of buildings and flowers of different sizes, with a square of 224 pixels")


def speeds(rows):
    """Draw images a second on a logarithmic scale, the number beside each bar."""
    fig, ax = plt.subplots(figsize=(5.6, 0.7 + 0.35 * len(rows)))
    drawn = ax.barh(list(rows), list(rows.values()), color=COLOURS[: len(rows)])
    ax.bar_label(drawn, labels=[f"{value:,.0f}" for value in rows.values()], padding=3)
    ax.set(xscale="log", xlabel="images/s (log scale)", xlim=(None, 6 * max(rows.values())))
    ax.invert_yaxis()
    words = ", ".join(f"{name} {value:,.0f}" for name, value in rows.items())
    figure(fig, f"Images a second: {words}")

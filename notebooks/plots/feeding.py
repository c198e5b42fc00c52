"""Pictures of photos, of the parts of reading and of its speeds."""

import matplotlib.pyplot as plt
from PIL import Image

from helpers import figure
from plots import COLOURS, bars
from plots.finding import title


def parts(ms):
    """Draw ``{kind of image: {part: milliseconds}}`` as shares of an image's time."""
    shares = {k: {p: 100 * v / sum(m.values()) for p, v in m.items()} for k, m in ms.items()}
    decode = ", ".join(f"{kind}: {share['decode']:.0f} %" for kind, share in shares.items())
    found = f"The share of decoding in an image's time: {decode}"
    bars(shares, "share of an image's time (%)", found, title=title(found))


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
    best = max(rows, key=rows.get)
    factor = rows[best] / rows["DataLoader"]
    found = f"{best}: {factor:.0f} times as fast as a plain DataLoader"
    ax.set_title(title(found))
    figure(fig, found)

"""The pictures of the notebook on scaling that need more than lines and bars."""

import matplotlib.pyplot as plt
import numpy as np
import roofline

from colours import EDGE, PARTS
from helpers import figure
from plots import COLOURS, MARKS

KINDS = "forward", "backward", "exchange", "update", "server copies", "server adds"


def timeline(traces, seconds, alt):
    """Draw what processes of one machine did at the end of their traces.

    Parameters
    ----------
    traces : dict of str to list of traces.Span
    seconds : float
        How much of the end, up to the last update.
    alt : str
    """
    last = max(span.end for spans in traces.values() for span in spans if span.kind == "update")
    first = last - seconds
    fig, ax = plt.subplots(figsize=(6.4, 2.4))
    for row, spans in enumerate(traces.values()):
        for kind, start, end in spans:
            if kind in KINDS and end > first and start < last:
                low, high = (0.2, 0.2) if kind == "exchange" else (-0.4, 0.6)
                start, end = max(start, first), min(end, last)
                place = 1e3 * (start - first), 1e3 * (end - start)
                ax.broken_barh([place], (row + low, high), color=PARTS[kind])
    for kind in KINDS:
        ax.barh(0, 0, color=PARTS[kind], edgecolor=EDGE, linewidth=0.5, label=kind)
    ax.set(xlabel="time (ms)", xlim=(0, 1e3 * seconds))
    ax.set(yticks=range(len(traces)), yticklabels=list(traces))
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure(fig, alt)


def roof(device, links, network, batches, workers, alt):
    """Draw the FLOP/s of a worker over the FLOP for each byte that it exchanges, and its limits."""
    fig, ax = plt.subplots(figsize=(5.6, 2.8))
    peak = roofline.REACHED * roofline.DEVICES[device].flops
    x = np.logspace(2, 5.2, 200)
    for name, colour in zip(links, COLOURS):
        y = np.minimum(peak, x * roofline.LINKS[name].rate)
        ax.plot(x, y / 1e12, color=colour, label=name)
    net, bytes_sent = roofline.NETWORKS[network], roofline.bytes_of_host(workers, 4)
    for batch, mark in zip(batches, MARKS):
        place = batch * net.flop / (bytes_sent * net.weights)
        label = f"{network}, batch {batch}"
        ax.plot([place], [peak / 1e12], mark, color="black", ms=6, label=label)
        ax.axvline(place, color="#666666", lw=1, ls=":")
    ax.set(xscale="log", yscale="log", ylim=(0.05, 20))
    ax.set(xlabel="FLOP for each byte exchanged", ylabel="TFLOP/s of a worker")
    ax.grid(alpha=0.3)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure(fig, alt)

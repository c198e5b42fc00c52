"""The picture of growth.py: what was measured with its limits, and where it leads."""

import numpy as np

from growth_model import (
    Future,
    bytes_a_second,
    in_turn,
    one_server,
    overlapped,
    ring,
    servers_everywhere,
)

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def draw(measured, path):
    """Draw the measurement with its limits, and the extrapolation."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"  # the same rows, the same bytes
    from matplotlib import pyplot as plt

    fitted = measured.fit()
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.6))
    draw_measured(left, measured, fitted)
    draw_extrapolated(right, fitted, Future())
    for axis in (left, right):
        axis.grid(color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.13)}
        axis.legend(ncol=2, fontsize=9, frameon=False, **place)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(figure)


def draw_measured(axis, measured, fitted):
    """Seconds a step over the workers: runs as points, limits as lines."""
    work = measured.forward, measured.backward
    workers = np.linspace(1, measured.workers[-1], 141)
    array = measured.size, measured.rate
    servers = [servers_everywhere(w, *array) for w in workers]
    around = [ring(w, *array, fitted.latency) for w in workers]
    alone = [one_server(w, *array, buckets=measured.buckets) for w in workers]
    for name, join, exchanges, look in (
        ("limit: one server, in turn", in_turn, alone, (GREEN, "-")),
        ("limit: a server a host, in turn", in_turn, servers, (VERMILLION, "-")),
        ("limit: ring, in turn", in_turn, around, ("black", ":")),
        ("limit: a server a host, perfect overlap", overlapped, servers, (BLUE, "-")),
        ("limit: ring, perfect overlap", overlapped, around, ("#666666", ":")),
    ):
        color, style = look
        steps = [join(*work, exchange) for exchange in exchanges]
        width = 2.4 if style == ":" else 1.8
        axis.plot(workers, steps, color=color, linestyle=style, linewidth=width, label=name)
    highest = 0.0
    for name, marker, color, overlap, is_single in (
        ("measured: one server, in turn", "^", GREEN, 0, True),
        ("measured: a server a host, in turn", "o", VERMILLION, 0, False),
        ("measured: a server a host, overlapped", "s", BLUE, 1, False),
    ):
        runs = {
            w: sorted(measured.figures(w, overlap, is_single=is_single))
            for w in measured.workers
            if not (is_single and w == 1)
        }
        best = [(w, steps[0]) for w, steps in runs.items() if steps]
        others = [(w, step) for w, steps in runs.items() for step in steps[1:]]
        look = {"color": color, "markeredgecolor": "white", "markersize": 8}
        if others:
            axis.plot(*zip(*others), marker, alpha=0.35, **look)
        if best:
            axis.plot(*zip(*best), marker, label=name, **look)
        highest = max([highest, *(step for _, step in best + others)])
    axis.set_ylim(0, 1.1 * highest)
    axis.set_xticks(measured.workers)
    axis.set_xlabel("workers, each on a host of its own")
    axis.set_ylabel("seconds a step")
    axis.set_title(
        f"Measured: {measured.size / 1e6:g} MB in {measured.buckets} buckets, "
        f"cables of {measured.rate * 8 / 1e6:g} Mbit/s,\n"
        f"{sum(work):g} s of computing a step (slept); pale: the slower runs",
        fontsize=11,
    )


def draw_extrapolated(axis, fitted, future):
    """Efficiency over the workers, as far as the assumptions go."""
    workers = np.unique(np.geomspace(1, future.most, 200).round().astype(int))
    for name, color in zip(future.rates, (VERMILLION, BLUE)):
        rate = bytes_a_second(name)
        for what, style, options in (
            ("cables alone, overlapped", "-.", {}),
            ("ring, overlapped", ":", {"fitted": fitted, "is_ring": True}),
            ("a server a host, overlapped", "-", {"fitted": fitted}),
            ("a server a host, in turn", "--", {"fitted": fitted, "overlap": False}),
        ):
            label = f"{name.replace('gbit', ' Gbit/s')}: {what}"
            shares = [100 * future.efficiency(w, rate, **options) for w in workers]
            axis.plot(workers, shares, color=color, linestyle=style, linewidth=1.8, label=label)
    axis.set_xscale("log", base=2)
    ticks = [2**i for i in range(int(np.log2(future.most)) + 1)]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.set_ylim(0, 105)
    axis.set_xlabel("hosts")
    axis.set_ylabel("time of computing / time of a step, %")
    axis.set_title(
        f"Extrapolated, not measured: {future.size / 1e6:g} MB in {future.buckets} buckets,\n"
        f"{future.forward + future.backward:g} s of computing a step, "
        f"{future.latency * 1e6:g} µs a message",
        fontsize=11,
    )

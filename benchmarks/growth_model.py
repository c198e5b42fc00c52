"""The least cost of exchanging gradients: the formulas of notebook 07 and docs/growth.md.

Sizes are in bytes, rates in bytes a second. A cable has its full rate in both directions at once.
docs/site/static/step_model.js has what happens inside a step, with any number of servers,
compression or a slow worker; a test compares it with these formulas.
"""

import re

UNITS = {"kbit": 125, "mbit": 125_000, "gbit": 125_000_000}  # bytes a second of tc's units


def bytes_a_second(rate):
    """Return the bytes a second of a rate in tc's notation, such as 200mbit.

    Raises a ValueError for any other notation.
    """
    found = re.fullmatch(r"([\d.]+)([kmg]bit)", rate)
    if not found:
        raise ValueError(f"{rate}: not a rate like 200mbit or 1gbit")
    return float(found[1]) * UNITS[found[2]]


def servers_everywhere(workers, size, rate, latency=0.0):
    """Return the seconds to add up an array with a parameter server on each host.

    A host's worker sends all but its own server's part, and its server sends its part of the sum to
    all other workers: 2 (W - 1) / W of the array.

    Parameters
    ----------
    workers : int
    size : float
        Bytes of the array.
    rate : float
        Of a host's cable, bytes a second each way.
    latency : float
        Seconds of an empty message; an exchange takes one in each direction.

    Returns
    -------
    float
    """
    return bytes_of_host(workers, size) / rate + (2 * latency if workers > 1 else 0.0)


def ring(workers, size, rate, latency=0.0):
    """Return the seconds of a ring all-reduce: the same bytes, in 2 (W - 1) rounds."""
    return bytes_of_host(workers, size) / rate + 2 * (workers - 1) * latency


def one_server(workers, size, rate, latency=0.0, buckets=1):
    """Return the seconds with one server, on a worker's host: (W - 1) G cross its cable each way.

    The sum of a bucket leaves while the next bucket arrives: only one bucket is not overlapped.
    """
    crossing = (workers - 1) * size * (1 + 1 / buckets)
    return crossing / rate + (2 * latency if workers > 1 else 0.0)


def bytes_of_host(workers, size, servers=None):
    """Return the bytes that a host with a worker and a server sends, and receives.

    Its worker sends all but its own server's part; its server sends its part of the sum to all
    other workers. With a server on each host (the default) that is 2 (W - 1) / W of the array.
    """
    servers = servers or workers
    of_worker = (servers - 1) / servers * size
    of_server = (workers - 1) / servers * size
    return of_worker + of_server


def in_turn(forward, backward, exchange):
    """Return the seconds of a step that first computes, then exchanges."""
    return forward + backward + exchange


def overlapped(forward, backward, exchange, buckets=None):
    """Seconds of a step that sends each bucket as soon as backward has filled it.

    Either the last bucket's exchange comes after all of backward, or the exchange of all comes
    after the first bucket's part of it.

    Parameters
    ----------
    forward, backward, exchange : float
        Seconds; nothing is exchanged during the forward pass.
    buckets : int, optional
        Of equal size. None for infinitely many: forward + max(backward, exchange).

    Returns
    -------
    float
    """
    part = 1 / buckets if buckets else 0.0
    return forward + max(backward + exchange * part, backward * part + exchange)

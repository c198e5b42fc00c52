"""The least cost of exchanging gradients, and an extrapolation of measured costs to more hosts.

Sizes are in bytes, rates in bytes a second. A cable has its full rate in both directions at once.
step_model.py has what happens inside a step, with any number of servers, compression or a slow
worker.
"""

import re
from dataclasses import dataclass

from contenders import Failed

UNITS = {"kbit": 125, "mbit": 125_000, "gbit": 125_000_000}  # bytes a second of tc's units


def bytes_a_second(rate):
    """Turn a rate in tc's notation, such as 200mbit, into bytes a second."""
    found = re.fullmatch(r"([\d.]+)([kmg]bit)", rate)
    if not found:
        raise Failed(f"--rate {rate}: not like 200mbit or 1gbit")
    return float(found[1]) * UNITS[found[2]]


def servers_everywhere(workers, size, rate, latency=0.0):
    """Seconds to add up an array with a parameter server on each host.

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
    """Seconds of an all-reduce around a ring: the same bytes, in 2 (W - 1) rounds."""
    return bytes_of_host(workers, size) / rate + 2 * (workers - 1) * latency


def one_server(workers, size, rate, latency=0.0, buckets=1):
    """Seconds with one server, beside one of the workers: (W - 1) G cross its cable each way.

    The sum of a bucket leaves while the next bucket comes in, so that only one is not overlapped.
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
    """Seconds of a step that first computes, then exchanges."""
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


@dataclass(frozen=True)
class Fit:
    """What the measurement says about the hosts.

    Attributes
    ----------
    share : float
        Of the nominal rate, that the bytes of the arrays reach.
    fixed : float
        Seconds a byte of the array, whatever the number of workers: copying and adding.
    latency : float
        Seconds of a message: half of what two workers need to exchange one number.
    message : float
        Seconds that each worker's message, with its answer, adds to what a server has to do.
    """

    share: float
    fixed: float
    latency: float
    message: float


def fit(workers, exchanges, of_many, round_trip, size, rate):
    """Fit the model of :func:`expected` to the exchanges: least squares of the relative errors.

    So a single worker's short time, only for copies, counts as much as the others.

    Parameters
    ----------
    workers : sequence of int
        At least two different ones.
    exchanges, of_many : sequence of float
        For each of them, seconds of exchanging the array, and one of many numbers.
    round_trip : float
        Seconds of exchanging one number.
    size, rate : float

    Returns
    -------
    Fit
    """
    import numpy as np  # only here: the site's build has none

    exchanges = np.array(exchanges)
    weights = 1 / np.maximum(exchanges, 1e-3 * exchanges.max())
    parts = np.array([(size, bytes_of_host(w, size)) for w in workers]) * weights[:, None]
    (fixed, slope), *_ = np.linalg.lstsq(parts, exchanges * weights, rcond=None)
    message, _ = np.polyfit(workers, of_many, 1)
    return Fit(1 / (float(slope) * rate), float(fixed), round_trip / 2, float(message))


def expected(workers, size, rate, fitted, latency, buckets, is_ring=False):
    """Seconds of an exchange on hosts like the measured ones, with other cables.

    Parameters
    ----------
    workers : int
    size, rate, latency : float
        As in :func:`servers_everywhere`.
    fitted : Fit
    buckets : int
        Of each, every server gets a message from every worker.
    is_ring : bool
        A ring instead, which has rounds in the place of messages to servers.

    Returns
    -------
    float
    """
    if workers == 1:
        return 0.0
    away = ring if is_ring else servers_everywhere
    messages = 0.0 if is_ring else buckets * workers * fitted.message
    return away(workers, size, rate * fitted.share, latency) + size * fitted.fixed + messages


@dataclass(frozen=True)
class Future:
    """The hosts of the extrapolation: all that is assumed and not measured."""

    size: int = 45_000_000  # gradients of ResNet-18
    buckets: int = 5
    forward: float = 0.1 / 3
    backward: float = 0.2 / 3  # a step of 100 ms
    latency: float = 50e-6
    rates: tuple = ("10gbit", "100gbit")
    most: int = 256

    def efficiency(self, workers, rate, fitted=None, is_ring=False, overlap=True):
        """Return the time of computing over that of a step; without a fit, only cables cost."""
        if fitted:
            exchange = expected(
                workers, self.size, rate, fitted, self.latency, self.buckets, is_ring
            )
        else:
            exchange = servers_everywhere(workers, self.size, rate)
        if overlap:
            step = overlapped(self.forward, self.backward, exchange, self.buckets)
        else:
            step = in_turn(self.forward, self.backward, exchange)
        return (self.forward + self.backward) / step

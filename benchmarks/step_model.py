"""The model of a step: when each bucket is computed, sent, added up and fetched.

It agrees with growth_model's formulas where those hold, and goes on from there: any number of
servers, two-bit pushes, a slow worker. docs/site/static/step_model.js is the same in JavaScript.
Times are in seconds, sizes in bytes, rates in bytes a second.

What it assumes: hosts are equal, each with one worker, and the first ones with a server. Every
bucket is cut over all servers (MXNet cuts arrays from a million numbers on). A cable sends and
receives at its full rate at once. What comes first is sent first, added first: with few servers
this is too kind, for pushes and pulls share a cable. The update is made on the workers, after the
last sum has arrived.
"""

import heapq
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

FRAMES = 1448 / 1538  # of a cable's rate: the rest is headers of Ethernet, IP and TCP
ADDS = 1e9  # bytes/s that a server receives and adds up: measured, growth.py prints 1 ms a MB
MESSAGE = 30e-6  # seconds besides, of each message to a server: measured, too
UPDATE_BYTES = 20  # of a weight: weight, gradient and momentum are read, two of them written
PACKED = 32 / 2  # times fewer bytes in two-bit pushes
FINE = 0.95  # an efficiency above which nothing is to be mended


@dataclass(frozen=True)
class Setup:
    """What a step is made of.

    Attributes
    ----------
    weights : float
        Of the network; each has a gradient of four bytes.
    forward, backward, update : float
        Seconds of one worker alone.
    hosts : int
        At least 1.
    rate, latency : float
        Of a host's cable, each way; seconds of an empty message.
    servers : int
        Not more than there are hosts are used. 0: one on each host.
    is_ring : bool
        No servers: the workers add up around a ring, in 2 (W - 1) rounds for each bucket.
    overlap : bool
        Send a bucket as soon as backward has filled it, not after the last.
    buckets : int
        At least 1, of equal size.
    two_bits : bool
        Pushes carry two bits a number. Pulls do not, and a ring has no pushes.
    slow : float
        At least 1: the last worker computes so many times as long. A single worker does not.
    adds : float
        Bytes/s that a server, or a worker in a ring, receives and adds up.
    """

    weights: float
    forward: float
    backward: float
    update: float
    hosts: int
    rate: float
    latency: float
    servers: int = 0
    is_ring: bool = False
    overlap: bool = True
    buckets: int = 5
    two_bits: bool = False
    slow: float = 1.0
    adds: float = ADDS


class Interval(NamedTuple):
    """A part of a step.

    `lane` is who is busy: `worker`, `slow worker`, `server`; `sends` and `receives` are the cable
    of the first host, `slow sends` and `slow receives` that of the slow worker's. `kind` is
    forward, backward, update, push, sum or pull; `bucket` counts from 0, or is -1.
    """

    lane: str
    kind: str
    bucket: int
    start: float
    end: float


class _Parts(NamedTuple):
    """For how long a bucket holds each cable, before the sum and after it."""

    before: dict  # of the usual workers' pushes
    late: dict  # of the slow worker's push
    after: dict
    sum_early: float
    sum_late: float
    delay: float  # between a cable's end and the next act, without holding the cable


def _parts(s):
    w = s.hosts
    size = 4 * s.weights / s.buckets
    rate = s.rate * FRAMES
    if s.is_ring:
        half = (w - 1) * (size / w / rate + s.latency)  # rounds: each waits for the one before
        both = {"sends": half, "receives": half}
        return _Parts({}, both, both, 0.0, (w - 1) / w * size / s.adds, 0.0)
    n = min(s.servers or w, w)
    push = (size / PACKED if s.two_bits else size) / rate
    pull = size / rate
    add = size / n / s.adds + MESSAGE
    before = {"sends": (n - 1) / n * push, "receives": (w - 2) / n * push}
    late = {"receives": push / n}
    after = {"sends": (w - 1) / n * pull, "receives": (n - 1) / n * pull}
    if n == w:  # the slow worker's host has a server, too
        before["slow receives"] = (w - 1) / n * push
        late["slow sends"] = (n - 1) / n * push
        after["slow sends"] = (w - 1) / n * pull
        after["slow receives"] = (n - 1) / n * pull
    else:
        late["slow sends"] = push
        after["slow receives"] = pull
    return _Parts(before, late, after, (w - 1) * add, add, s.latency)


def timeline(s):
    """Return the intervals of a step, in the order in which they were decided.

    Parameters
    ----------
    s : Setup

    Returns
    -------
    list of Interval
        Some may be empty. Without a slow worker, the lanes of its host mirror the first host's.
    """
    slow = s.slow if s.hosts > 1 else 1.0
    found = []
    for lane, times in (("worker", 1.0), ("slow worker", slow)):
        forward, backward = times * s.forward, times * s.backward
        found.append(Interval(lane, "forward", -1, 0.0, forward))
        for b in range(s.buckets):
            start = forward + backward * (b / s.buckets)
            end = forward + backward * ((b + 1) / s.buckets)
            found.append(Interval(lane, "backward", b, start, end))
    done = s.forward + s.backward
    last = slow * s.forward + slow * s.backward
    if s.hosts > 1:
        last = max(last, _exchange(s, slow, found))
    found.append(Interval("worker", "update", -1, max(done, last), max(done, last) + s.update))
    found.append(Interval("slow worker", "update", -1, last, last + slow * s.update))
    return found


def _exchange(s, slow, found):
    """Add the intervals of the exchange; return when the last sum has arrived."""
    parts = _parts(s)
    free = {}

    def hold(lanes, kind, bucket, ready):
        ends = [ready]
        for lane, seconds in lanes.items():
            start = max(ready, free.get(lane, 0.0))
            free[lane] = start + seconds
            found.append(Interval(lane, kind, bucket, start, free[lane]))
            ends.append(free[lane])
        return max(ends)

    waiting = []  # ready, bucket, act: what is ready first comes first
    for b in range(s.buckets):
        part = (b + 1) / s.buckets if s.overlap else 1.0
        heapq.heappush(waiting, (s.forward + s.backward * part, b, 0))
        heapq.heappush(waiting, (slow * s.forward + slow * s.backward * part, b, 1))
    last, added = 0.0, {}
    while waiting:
        ready, b, act = heapq.heappop(waiting)
        if act < 2:  # push
            end = hold(parts.late if act else parts.before, "push", b, ready)
            heapq.heappush(waiting, (end + parts.delay, b, act + 2))
        elif act < 4:  # sum, which is done when both parts are
            seconds = parts.sum_late if act == 3 else parts.sum_early
            end = hold({"server": seconds}, "sum", b, ready)
            if b in added:
                heapq.heappush(waiting, (max(end, added[b]), b, 4))
            added[b] = end
        else:  # pull
            last = max(last, hold(parts.after, "pull", b, ready) + parts.delay)
    return last


def seconds(s):
    """Return the seconds of a step: until the last worker has made its update."""
    return max(interval.end for interval in timeline(s))


def efficiency(s):
    """Return the seconds of a worker alone over those of the step: 1 if hosts cost nothing."""
    return (s.forward + s.backward + s.update) / seconds(s)


def efficiencies(s, hosts):
    """Return the efficiency for each number of hosts."""
    return [efficiency(replace(s, hosts=w)) for w in hosts]


def bottleneck(s):
    """Return what costs most: without it, the step would be shortest.

    Returns
    -------
    str
        `computing` (nothing is to be mended), `slow worker`, `rate`, `latency` or `sums`.
    """
    if efficiency(s) >= FINE:
        return "computing"
    without = {
        "slow worker": {"slow": 1.0},
        "rate": {"rate": math.inf},
        "latency": {"latency": 0.0},
        "sums": {"adds": math.inf},
    }
    left = {name: seconds(replace(s, **change)) for name, change in without.items()}
    return min(left, key=left.get)


class Remedy(NamedTuple):
    """What may be changed, and the efficiency that it would bring."""

    name: str
    is_free: bool  # a setting, nothing to be bought
    efficiency: float


REMEDIES = {  # name: is it free, when does it apply, what does it change
    "sending while computing": (True, lambda s: not s.overlap, lambda s: {"overlap": True}),
    "a server on each host": (
        True,
        lambda s: not s.is_ring and 0 < s.servers < s.hosts,
        lambda s: {"servers": 0},
    ),
    "a ring": (True, lambda s: not s.is_ring, lambda s: {"is_ring": True}),
    "a server on each host instead of the ring": (
        True,
        lambda s: s.is_ring,
        lambda s: {"is_ring": False, "servers": 0},
    ),
    "two-bit pushes": (
        True,
        lambda s: not s.is_ring and not s.two_bits,
        lambda s: {"two_bits": True},
    ),
    "twice as many buckets": (
        True,
        lambda s: s.overlap and s.buckets <= 10,
        lambda s: {"buckets": 2 * s.buckets},
    ),
    "half as many buckets": (
        True,
        lambda s: s.buckets > 1,
        lambda s: {"buckets": s.buckets // 2},
    ),
    "mending the slow worker": (False, lambda s: s.slow > 1, lambda s: {"slow": 1.0}),
    "twice the batch": (
        False,
        lambda s: True,
        lambda s: {"forward": 2 * s.forward, "backward": 2 * s.backward},
    ),
    "a link ten times as fast": (False, lambda s: True, lambda s: {"rate": 10 * s.rate}),
    "a tenth of the latency": (False, lambda s: True, lambda s: {"latency": s.latency / 10}),
    "sums four times as fast": (False, lambda s: True, lambda s: {"adds": 4 * s.adds}),
}
GAIN = 0.01  # of the efficiency: less is not worth a word


def remedies(s):
    """Return what would help, the best first; settings and purchases alike."""
    now = efficiency(s)
    found = [
        Remedy(name, is_free, efficiency(replace(s, **change(s))))
        for name, (is_free, applies, change) in REMEDIES.items()
        if applies(s)
    ]
    found = [remedy for remedy in found if remedy.efficiency >= now + GAIN]
    return sorted(found, key=lambda remedy: -remedy.efficiency)


def percent(share):
    """Return a share in whole percent, as JavaScript rounds."""
    return math.floor(100 * share + 0.5)


BLAMED = {
    "slow worker": "All wait for the slow worker.",
    "rate": "The workers wait for the link: its rate is too low.",
    "latency": "The workers wait for the link: its latency is too high.",
    "sums": "The workers wait for the sums: adding up is too slow.",
}


def advice(s):
    """Return in words what the bottleneck is and what would help."""
    now = percent(efficiency(s))
    if s.hosts == 1:
        return "A single worker exchanges nothing: its step is all computing."
    if bottleneck(s) == "computing":
        return f"Computing is {now} % of the step: this is what you want."
    best = [next((r for r in remedies(s) if r.is_free is free), None) for free in (True, False)]
    best = [r for r in best if r]
    sentence = f"{BLAMED[bottleneck(s)]} The efficiency is {now} %."
    if not best:
        return f"{sentence} No single change would help."
    name = best[0].name[0].upper() + best[0].name[1:]
    sentence += f" {name} would raise it to {percent(best[0].efficiency)} %"
    if len(best) > 1:
        sentence += f", {best[1].name} to {percent(best[1].efficiency)} %"
    return f"{sentence}."

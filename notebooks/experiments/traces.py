"""Read MXNet's traces: what a worker or a server computes, and when."""

import json
import re
from pathlib import Path
from typing import NamedTuple

# Operators of several layers are recorded as one, with all their names.
KINDS = {
    "backward": "_backward",
    "update": "_update",
    "exchange": "KVStore",
    "forward": "Convolution|FullyConnected|BatchNorm",
    "server copies": "CopyCPU2CPU",
    "server adds": "BinaryOpKernel",
}


class Span(NamedTuple):
    """From when to when an operator worked, in seconds."""

    kind: str
    start: float
    end: float


def read_trace(path):
    """Return what was computed, as a list of Span, in the order of the ends.

    ``kind`` is a key of KINDS, or the operator's own name.
    """
    begun, spans = {}, []
    for event in json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]:
        place = event["name"], event.get("tid")
        if event["ph"] == "B":
            begun[place] = event["ts"]
        elif event["ph"] == "E" and place in begun:
            times = begun.pop(place) / 1e6, event["ts"] / 1e6
            spans.append(Span(kind_of(event["name"]), *times))
    return spans


def kind_of(operator):
    """Return the part of a step that an operator belongs to, or its own name."""
    return next((kind for kind, words in KINDS.items() if re.search(words, operator)), operator)


def busy_s(spans, kind):
    """Add up the seconds in which at least one operator of a kind works."""
    total = until = 0
    for start, end in sorted(span[1:] for span in spans if span.kind == kind):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total

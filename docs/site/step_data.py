#!/usr/bin/env python3
"""Write the networks, devices, links and measured steps of the page `step.md` as JavaScript.

    python docs/site/step_data.py build/site/_static/step_data.js

Needs neither MXNet nor NumPy.
"""

import csv
import json
import re
import sys
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "notebooks" / "experiments")]

from roofline import DEVICES, LINKS, NETWORKS, REACHED  # noqa: E402

from growth_model import bytes_a_second  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
# ResNet-18 for images of 32 x 32, on one processor of ours.
OUR_FLOP = 6 * 37.0e6  # two for each of its multiplications, and backward takes twice as many
OUR_BATCH, OUR_UPDATE = 128, 0.14  # of a step
OUR_LATENCY = 218e-6  # half of the shortest round trip in growth.csv between two workers
UPDATE_BYTES = 20  # of a weight: weight, gradient and momentum are read, two of them written
NO_UPDATE = 1e13  # bytes/s of memory
USUAL = {"ring": 0, "servers": 0, "overlap": 1, "bits": 32, "slow": 1, "latency": OUR_LATENCY}


def rows(name):
    """Return the rows of a table of results."""
    with open(RESULTS / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slug(name):
    """Return a name as it stands in an address."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def entry(name, **facts):
    """Return an entry of a list to choose from."""
    return {"key": slug(name), "name": name, **facts}


def sleeping():
    """Return the series of growth.csv and steps.csv: hosts that sleep in the place of computing."""
    measured = rows("growth.csv") + rows("steps.csv")
    first = measured[0]
    seconds = float(first["forward"]) + float(first["backward"])
    common = {
        **USUAL, "weights": int(first["elements"]) * int(first["buckets"]),
        "flop": 1e9, "speed": 1e9 / seconds, "memory": NO_UPDATE, "batch": 1,
        "rate": bytes_a_second(first["rate"]), "buckets": int(first["buckets"]),
    }  # fmt: skip
    for name, changes in (
        ("overlapped", {}),
        ("in turn", {"overlap": 0}),
        ("one server", {"overlap": 0, "servers": 1}),
        ("two servers", {"servers": 2}),
        ("two-bit pushes", {"bits": 2}),
        ("slow worker", {"slow": 2}),
    ):
        state = {**common, **changes}
        points = [
            [int(row["workers"]), float(row["step_s"])]
            for row in measured
            if int(row["overlap"]) == state["overlap"]
            and int(row["servers"]) == (state["servers"] or int(row["workers"]))
            and int(row["two_bits"]) == (state["bits"] == 2)
            and float(row["slow"]) == state["slow"]
        ]
        words = f"{common['weights'] * 4 / 1e6:g} MB, {name}"
        yield {"name": words, "hosts": 4, "state": state, "points": points}


def found(group, program, figure):
    """Return a figure of every run of a program in runs.csv."""
    wanted = [group, program, figure]
    return [
        float(row["value"])
        for row in rows("runs.csv")
        if [row["group"], row["program"], row["figure"]] == wanted
    ]


def training():
    """Return the series of runs.csv: ResNet-18 on two hosts."""
    for group in ("1gbit", "100mbit"):
        speeds = found(group, "ours", "speed")
        weights = found(group, "ours", "parameters")[0]
        alone_s = OUR_BATCH / mean(found(group, "independent", "speed"))
        state = {
            **USUAL, "weights": weights, "flop": OUR_FLOP,
            "speed": OUR_BATCH * OUR_FLOP / ((1 - OUR_UPDATE) * alone_s),
            "memory": UPDATE_BYTES * weights / (OUR_UPDATE * alone_s), "batch": OUR_BATCH,
            "rate": bytes_a_second(group), "buckets": 5,
        }  # fmt: skip
        rate = re.sub("([mg])bit", lambda unit: f" {unit[1].upper()}bit/s", group)
        points = [[2, OUR_BATCH / speed] for speed in speeds]
        yield {"name": f"ResNet-18, {rate}", "hosts": 2, "state": state, "points": points}


def data():
    """Return all that the page does not compute."""
    measured = [*training(), *sleeping()]
    ours = measured[0]["state"]
    networks = [entry("ResNet-18, 32 x 32", weights=ours["weights"], flop=OUR_FLOP)]
    networks += [entry(name, **network._asdict()) for name, network in NETWORKS.items()]
    devices = [entry("one CPU core", speed=ours["speed"], memory=ours["memory"])]
    devices += [
        entry(name, speed=REACHED * device.flops, memory=device.memory_rate)
        for name, device in DEVICES.items()
    ]
    links = [entry(name, **link._asdict()) for name, link in LINKS.items()]
    lists = {"networks": networks, "devices": devices, "links": links}
    return {**lists, "measured": measured, "updateBytes": UPDATE_BYTES}


def write(path):
    """Write the data as a script."""
    text = f"const stepData = {json.dumps(data(), ensure_ascii=False)};\n"
    Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])

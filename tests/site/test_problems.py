"""The answers of docs/site/problems.md: calculated again, or read from the results."""

import csv
import re

import pytest
import roofline

from growth_model import bytes_of_host, one_server, overlapped, servers_everywhere
from launching import ROOT

TIME_BUDGET_S = 5
PAGE = (ROOT / "docs" / "site" / "problems.md").read_text(encoding="utf-8")
V100, A100 = roofline.DEVICES["V100"], roofline.DEVICES["A100"]
RESNET = roofline.NETWORKS["ResNet-50"]
FORWARD, BACKWARD, UPDATE = 0.04, 0.10, 0.02  # of the page's first table


def answer(number):
    """Return what is folded below a problem."""
    return PAGE.split(f"\n## {number}. ")[1].split("<summary>")[1].split("</details>")[0]


def read(name):
    """Return the rows of a table of results."""
    with open(ROOT / "benchmarks" / "results" / name, newline="") as file:
        return list(csv.DictReader(file))


def measured_steps(rate):
    """Return the seconds of a step on two hosts, in the order of the runs."""
    ours = {"group": rate, "program": "ours", "figure": "speed"}
    return [128 / float(r["value"]) for r in read("runs.csv") if ours.items() <= r.items()]


def fastest(servers):
    """Return the shortest measured step of four workers that exchange in turn."""
    facts = {"workers": "4", "servers": servers, "overlap": "0"}
    return min(float(r["step_s"]) for r in read("growth.csv") if facts.items() <= r.items())


def says(number, *words):
    missing = [word for word in words if word not in answer(number)]
    assert not missing


def says_measured(number, *seconds):
    """The page's measured seconds are near those of the results, which `make bench` replaces."""
    told = re.search(r"Measured: ([\d.]+)(?: to ([\d.]+))? s", answer(number)).groups()
    assert [float(text) for text in told if text] == pytest.approx(seconds, rel=0.15)


def test_operations_for_each_byte():
    per_byte, in_float16 = (f / V100.memory_rate for f in (V100.flops, V100.flops_16))
    relu = V100.memory_rate / 8 / V100.flops
    says(1, f"{per_byte:.1f} operations", f"{relu:.1%}".replace("%", " %"))
    says(1, f"about {2 * per_byte:.0f} on", f"about {in_float16:.0f}.")


def test_the_update():
    seconds = 20 * RESNET.weights / V100.memory_rate
    computing = roofline.computing_s(RESNET, V100, 64)
    share = 100 * seconds / computing
    says(2, f"{1e3 * seconds:.2f} ms", f"{1e3 * computing:.0f} ms", f"{share:.1f} %")


def test_two_hosts():
    for number, rate, megabytes in (3, "100mbit", 12.5), (4, "1gbit", 125):
        exchange = bytes_of_host(2, 44.7) / megabytes
        step = overlapped(FORWARD, BACKWARD, exchange, 5) + UPDATE
        says(number, f"{exchange:.2f}", f"= {step:.2f} s")
        measured = measured_steps(rate)
        says_measured(number, min(measured), max(measured))
    one_host = 128 / (FORWARD + BACKWARD + UPDATE)
    says(3, f"{one_host:.0f} images/s", f"{256 / 3.81:.0f} images/s")
    says(4, f"{44.7 / BACKWARD:.0f} MB/s")


def test_servers():
    says(
        5,
        f"{0.6 + one_server(4, 16, 25, buckets=4):.1f} s",
        f"{0.6 + servers_everywhere(4, 16, 25):.2f} s",
    )
    measured = [float(text) for text in re.findall(r"Measured: ([\d.]+) s", answer(5))]
    assert measured == pytest.approx([fastest("1"), fastest("4")], rel=0.15)


def test_workers_on_a_host():
    size = 4 * RESNET.weights
    every_gpu = 8 * size / 2 + 8 * size / 2  # pushed, and answered
    says(6, f"{every_gpu / 1e6:.0f} MB", f"{every_gpu / 1.25e9:.2f} s", f"{size / 1.25e9:.2f} s")
    says(6, f"{1e3 * bytes_of_host(8, size) / 15.75e9:.0f} ms")


def test_memory():
    adam, plain = (roofline.training_bytes(1.56e9, states) / 1e9 for states in (2, 0))
    says(7, f"{adam:.0f} GB", f"{A100.memory / 1e9 - adam:.0f} GB are left", f"{plain:.1f} GB")
    says(7, f"{roofline.training_bytes(7e9) / 1e9:.0f} GB", f"{14:.0f} GB each")


def test_a_whole_training():
    hours = 90 * roofline.computing_s(RESNET, V100, 1.28e6) / 3600
    says(8, f"{hours:.0f} hours")
    for name in "10 Gbit/s", "25 Gbit/s":
        share = roofline.efficiency(RESNET, V100, roofline.LINKS[name], 8, 64)
        says(8, f"{share:.2f}", f"{hours / 8 / share:.1f} hours")

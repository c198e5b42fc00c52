"""How the cost grows: the formulas, the table, and one job measured for real."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import growth
from growth import Job, Work
from growth_model import (
    Measured,
    bytes_a_second,
    bytes_of_host,
    in_turn,
    one_server,
    overlapped,
    ring,
    servers_everywhere,
)
from launching import ROOT, why_no_cluster

TIME_BUDGET_S = 25
SECONDS = st.floats(0, 100)


def test_seconds_of_an_exchange_are_what_a_hand_computes():
    # 16 MB at 25 MB/s; four workers: a host sends 2 * 3/4 * 16 = 24 MB
    assert servers_everywhere(4, 16e6, 25e6) == pytest.approx(0.96)
    assert servers_everywhere(4, 16e6, 25e6, 0.001) == pytest.approx(0.962)
    assert ring(4, 16e6, 25e6, 0.001) == pytest.approx(0.966)  # six rounds
    # 3 * 16 MB into the server's host, and a half of it after that, with two buckets
    assert one_server(4, 16e6, 25e6, buckets=2) == pytest.approx(2.88)


def test_seconds_of_a_step_are_what_a_hand_computes():
    assert in_turn(0.2, 0.4, 0.96) == pytest.approx(1.56)
    assert overlapped(0.2, 0.4, 0.96) == pytest.approx(1.16)
    assert overlapped(0.2, 0.4, 0.96, buckets=4) == pytest.approx(1.26)  # a tenth before it
    assert overlapped(0.2, 0.4, 0.2) == pytest.approx(0.6)
    assert overlapped(0.2, 0.4, 0.2, buckets=4) == pytest.approx(0.65)  # a quarter after it


@given(st.integers(1, 300), st.floats(0, 1))
def test_exchanges_of_one_worker_cost_nothing_and_of_more_what_bytes_and_rounds_cost(w, latency):
    servers = servers_everywhere(w, 1e6, 1e6, latency)
    difference = ring(w, 1e6, 1e6, latency) - servers
    assert difference == pytest.approx(2 * max(0, w - 2) * latency, abs=1e-9)
    assert servers <= one_server(w, 1e6, 1e6, latency)
    assert bytes_of_host(w, 1e6) < 2e6
    if w == 1:
        assert servers == one_server(w, 1e6, 1e6, latency) == 0


@given(SECONDS, SECONDS, SECONDS, st.integers(1, 100))
def test_overlap_is_never_slower_and_never_perfect(forward, backward, exchange, buckets):
    def below(a, b):
        return a <= b * (1 + 1e-12)

    some = overlapped(forward, backward, exchange, buckets)
    assert below(some, in_turn(forward, backward, exchange))
    assert below(overlapped(forward, backward, exchange), some)
    assert below(max(forward + backward, forward + exchange), some)


def test_one_bucket_cannot_be_overlapped():
    assert overlapped(0.25, 0.5, 0.75, buckets=1) == in_turn(0.25, 0.5, 0.75)


@pytest.mark.parametrize(
    "text, rate", [("200mbit", 25e6), ("1gbit", 125e6), ("1.5gbit", 187.5e6), ("80kbit", 1e4)]
)
def test_rates_are_read_as_tc_reads_them(text, rate):
    assert bytes_a_second(text) == rate


@pytest.mark.parametrize("text", ["quick", "200", "200 mbit", "200MB"])
def test_a_rate_that_tc_does_not_read_is_a_mistake(text):
    with pytest.raises(ValueError, match="not a rate like 200mbit or 1gbit"):
        bytes_a_second(text)


def test_limits_of_measured_rows_are_those_of_the_formulas():
    work = {"rate": "200mbit", "elements": 1_000_000, "buckets": 4, "forward": 0.2, "backward": 0.4}
    job = {"workers": 4, "servers": 4, "overlap": 1, "step_s": 1.3}
    measured = Measured([{**job, **work}])
    assert measured.steps(4, 4, 1) == [1.3] and measured.steps(4, 4, 0) == []
    assert measured.limit(4, 4, 0) == pytest.approx(1.56)
    assert measured.limit(4, 4, 1) == pytest.approx(1.26)
    assert measured.limit(4, 1, 0) == pytest.approx(0.6 + 3 * 16e6 * 1.25 / 25e6)


@pytest.mark.parametrize(
    "words, message",
    [
        ("--rate quick", "argument --rate: invalid rate value: 'quick'"),
        ("--draw --rate 7mbit", "growth.csv is not there; measure first"),
    ],
)
def test_a_mistake_of_growth_is_told_in_its_last_line(words, message):
    command = [sys.executable, "benchmarks/growth.py", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith(message)


@pytest.mark.long
@pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or "")
def test_two_hosts_are_measured():
    small = Work("1gbit", elements=1000, buckets=2, forward=0.01, backward=0.02, steps=2)
    jobs = [Job(2, 2), Job(2, 1, overlap=1, two_bits=1, slow=2.0)]
    rows = growth.measure(jobs, small, name="test-growth", rounds=1)
    assert [(r["servers"], r["two_bits"]) for r in rows] == [(2, 0), (2, 0), (1, 1), (1, 1)]
    assert all(r["step_s"] > 0 and r["number_s"] > 0 and r["of_many_s"] > 0 for r in rows)
    assert all(r["rate"] == "1gbit" and r["date"] and r["machine"] for r in rows)
    assert not (ROOT / ".cluster" / "test-growth").exists()

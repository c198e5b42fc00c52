"""How the cost grows: the formulas, the fit, the picture, and one job measured for real."""

import csv
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import growth
from growth import Measured
from growth_model import (
    Fit,
    Future,
    bytes_a_second,
    bytes_of_host,
    expected,
    fit,
    in_turn,
    one_server,
    overlapped,
    ring,
    servers_everywhere,
)
from launching import ROOT, why_no_cluster

TIME_BUDGET_S = 25
SECONDS = st.floats(0, 100)
WORKERS = st.integers(1, 300)


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


@given(st.floats(0, 1e9), st.floats(1, 1e10), SECONDS)
def test_one_worker_exchanges_nothing(size, rate, latency):
    fitted = Fit(share=0.9, fixed=1e-9, latency=1e-4, message=1e-4)
    assert servers_everywhere(1, size, rate, latency) == 0
    assert ring(1, size, rate, latency) == 0
    assert one_server(1, size, rate, latency) == 0
    assert expected(1, size, rate, fitted, latency, 3) == 0


@given(WORKERS, st.floats(0, 1e9), st.floats(1, 1e10))
def test_without_latency_a_ring_sends_as_long_as_servers_everywhere(workers, size, rate):
    assert ring(workers, size, rate) == servers_everywhere(workers, size, rate)


@given(st.integers(2, 300), st.floats(1e-6, 1))
def test_rounds_are_what_a_ring_pays_for(workers, latency):
    servers = servers_everywhere(workers, 1e6, 1e6, latency)
    difference = ring(workers, 1e6, 1e6, latency) - servers
    assert difference == pytest.approx(2 * (workers - 2) * latency, abs=1e-9)


@given(st.integers(2, 300))
def test_servers_everywhere_are_never_slower_than_one(workers):
    assert servers_everywhere(workers, 1e6, 1e6) <= one_server(workers, 1e6, 1e6)
    assert bytes_of_host(workers, 1e6) < 2e6


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


def made_up(workers, fitted, size, rate):
    exchanges = [
        size * fitted.fixed + bytes_of_host(w, size) / (fitted.share * rate) for w in workers
    ]
    return exchanges, [1e-4 + w * fitted.message for w in workers], 2 * fitted.latency


@given(st.floats(0.1, 1), st.floats(0, 1e-8), st.floats(1e-5, 1e-3), st.floats(1e-6, 1e-3))
def test_the_fit_finds_what_the_data_were_made_of(share, fixed, latency, message):
    true = Fit(share, fixed, latency, message)
    workers = (1, 2, 3, 4, 6, 8)
    found = fit(workers, *made_up(workers, true, 16e6, 25e6), 16e6, 25e6)
    assert found.share == pytest.approx(share, rel=1e-6)
    assert found.fixed == pytest.approx(fixed, abs=1e-13)
    assert found.latency == pytest.approx(latency, rel=1e-6, abs=1e-9)
    assert found.message == pytest.approx(message, rel=1e-6, abs=1e-9)


def test_hosts_that_disturb_each_other_make_no_copy_cost_less_than_nothing():
    """Measured on two cores: six and eight workers take a quarter more than the cables."""
    exchanges = [0.016, 0.664, 0.903, 1.027, 1.411, 1.388]
    found = fit(
        (1, 2, 3, 4, 6, 8), exchanges, [1e-4, 1e-4, 2e-4, 4e-4, 2e-4, 4e-4], 4e-4, 16e6, 25e6
    )
    assert found.fixed == pytest.approx(1e-9, rel=0.1)  # the 0.016 s for 16 MB
    assert 0.8 < found.share < 1


def test_the_expected_exchange_has_all_its_parts():
    fitted = Fit(share=0.5, fixed=1e-9, latency=0.0, message=1e-4)
    # 1.5 s over half a cable, 1 ms of copies, two messages there and back, 2 * 4 at a server
    there = expected(4, 1e6, 2e6, fitted, 1e-3, 2)
    assert there == pytest.approx(1.5 + 0.001 + 0.002 + 0.0008)
    around = expected(4, 1e6, 2e6, fitted, 1e-3, 2, is_ring=True)
    assert around == pytest.approx(1.5 + 0.001 + 0.006)


@given(st.sampled_from(Future().rates), st.integers(1, 256))
def test_efficiency_is_a_share_that_costs_lower(rate, workers):
    fitted = Fit(share=0.8, fixed=1e-9, latency=1e-4, message=5e-5)
    of_rate = bytes_a_second(rate)
    cables = Future().efficiency(workers, of_rate)
    real = Future().efficiency(workers, of_rate, fitted)
    late = Future().efficiency(workers, of_rate, fitted, overlap=False)
    assert 0 < late <= real <= cables <= 1
    if workers == 1:
        assert late == pytest.approx(1)


@pytest.mark.parametrize(
    "text, rate", [("200mbit", 25e6), ("1gbit", 125e6), ("1.5gbit", 187.5e6), ("80kbit", 1e4)]
)
def test_rates_are_read_as_tc_reads_them(text, rate):
    assert bytes_a_second(text) == rate


@pytest.mark.parametrize("text", ["quick", "200", "200 mbit", "200MB"])
def test_a_rate_that_tc_does_not_read_is_a_mistake(text):
    with pytest.raises(growth.Failed, match="--rate"):
        bytes_a_second(text)


def rows_of(fitted, workers=(1, 2, 4)):
    common = {"rate": "200mbit", "elements": 1_000_000, "buckets": 4}
    common.update(forward=0.2, backward=0.4, steps=8)
    exchanges, of_many, number = made_up(workers, fitted, 16e6, 25e6)
    for w, exchange, one in zip(workers, exchanges, of_many):
        for overlap, step in (
            (0, in_turn(0.2, 0.4, exchange)),
            (1, overlapped(0.2, 0.4, exchange, 4)),
        ):
            row = {"workers": w, "servers": w, "overlap": overlap}
            yield {**row, "step_s": step, "number_s": number, "of_many_s": one, **common}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's use of pyparsing
def test_the_picture_and_the_table_are_made_of_the_rows(tmp_path):
    true = Fit(share=0.8, fixed=2e-9, latency=1e-4, message=5e-5)
    measured = Measured(list(rows_of(true)))
    found = measured.fit()
    assert (found.share, found.message) == pytest.approx((true.share, true.message))
    last = measured.table()[-1].split("|")
    assert [float(cell) for cell in last[1:4]] == pytest.approx([4, 1.832, 1.56], abs=1e-3)
    for name in ("a.svg", "b.svg"):
        growth.draw(measured, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_runs_with_other_options_do_not_mix():
    rows = list(rows_of(Fit(share=0.8, fixed=2e-9, latency=1e-4, message=5e-5)))
    with pytest.raises(growth.Failed, match="different options"):
        Measured([*rows, {**rows[0], "rate": "1gbit"}])


def test_drawing_without_a_measurement_is_a_mistake_told_in_one_line(tmp_path):
    command = [sys.executable, "benchmarks/growth.py", "--draw", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("growth.py: ") and done.stderr.count("\n") == 1


@pytest.mark.long
@pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or "")
def test_two_hosts_are_measured(tmp_path):
    small = ["--elements", "1000", "--buckets", "2", "--steps", "2"]
    small += ["--forward", "0.01", "--backward", "0.02", "--rate", "1gbit"]
    command = [sys.executable, "benchmarks/growth.py", "--quick", "--workers", "2", *small]
    command += ["--name", "test-growth", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(tmp_path / "growth.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["workers"] + r["servers"] + r["overlap"] for r in rows] == ["220", "221"]
    for row in rows:
        assert float(row["step_s"]) > 0 and float(row["number_s"]) > 0
        assert 0 <= float(row["busy"]) <= 1 and row["date"] and row["machine"] and row["python"]
    assert not (ROOT / ".cluster" / "test-growth").exists()

"""The model of a step: its formulas, its properties, and what was measured."""

import csv
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import growth
import growth_model
import step_model
from step_model import FRAMES, MESSAGE, Setup, efficiency, seconds, timeline

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
TIME_BUDGET_S = 25

SETUPS = st.builds(
    Setup,
    weights=st.floats(1e4, 1e9),
    forward=st.floats(1e-3, 1),
    backward=st.floats(1e-3, 2),
    update=st.floats(0, 0.1),
    hosts=st.integers(1, 40),
    rate=st.floats(1e6, 2e10),
    latency=st.floats(0, 0.02),
    servers=st.integers(0, 40),
    is_ring=st.booleans(),
    overlap=st.booleans(),
    buckets=st.integers(1, 12),
    two_bits=st.booleans(),
    slow=st.one_of(st.just(1.0), st.floats(1, 4)),
    adds=st.floats(1e8, 1e11),
)
CABLES_ALONE = {"update": 0.0, "latency": 0.0, "adds": 1e30, "slow": 1.0, "two_bits": False}


def below(a, b, luck=0.0):
    return a <= b * (1 + luck + 1e-9)


LUCK = 0.05  # what comes first goes first: a later push may let an urgent pull pass


def cables_alone(setup, **changes):
    """The seconds of a step in which nothing but the cables costs."""
    setup = replace(setup, **{**CABLES_ALONE, **changes})
    messages = 4 * setup.buckets * max(2, setup.hosts) * MESSAGE  # which no Setup takes away
    return setup, pytest.approx(seconds(setup), rel=1e-9, abs=messages)


@given(SETUPS)
def test_servers_everywhere_take_what_the_formula_says(setup):
    s, found = cables_alone(setup, servers=0, is_ring=False)
    exchange = growth_model.servers_everywhere(s.hosts, 4 * s.weights, s.rate * FRAMES)
    if s.overlap:
        assert found == growth_model.overlapped(s.forward, s.backward, exchange, s.buckets)
    else:
        assert found == growth_model.in_turn(s.forward, s.backward, exchange)


@given(SETUPS)
def test_one_server_takes_what_the_formula_says(setup):
    s, found = cables_alone(setup, servers=1, is_ring=False, overlap=False)
    size, rate = 4 * s.weights, s.rate * FRAMES
    exchange = growth_model.one_server(s.hosts, size, rate, buckets=s.buckets)
    assert found == growth_model.in_turn(s.forward, s.backward, exchange)


@given(SETUPS)
def test_a_ring_takes_what_the_formula_says(setup):
    s = replace(setup, is_ring=True, overlap=False, buckets=1, update=0, slow=1, adds=1e30)
    exchange = growth_model.ring(s.hosts, 4 * s.weights, s.rate * FRAMES, s.latency)
    assert seconds(s) == pytest.approx(growth_model.in_turn(s.forward, s.backward, exchange))


@given(SETUPS)
def test_a_host_sends_the_bytes_that_are_counted(setup):
    s = replace(setup, is_ring=False, two_bits=False)
    assume(s.hosts > 1)
    servers = min(s.servers or s.hosts, s.hosts)
    held = sum(i.end - i.start for i in timeline(s) if i.lane == "sends")
    size = growth_model.bytes_of_host(s.hosts, 4 * s.weights, servers)
    assert held * s.rate * FRAMES == pytest.approx(size, rel=1e-6)


@given(SETUPS)
def test_one_worker_has_efficiency_1(setup):
    assert efficiency(replace(setup, hosts=1)) == pytest.approx(1)


@given(SETUPS)
def test_no_setup_is_more_than_efficient(setup):
    assert 0 < efficiency(setup) <= 1 + 1e-9


@given(SETUPS, st.integers(1, 10))
def test_more_hosts_that_are_equal_are_never_more_efficient(setup, more):
    s = replace(setup, servers=0, slow=1.0)  # a slow one has less left to add up, on more servers
    luck = LUCK if s.overlap else 0
    assert below(efficiency(replace(s, hosts=s.hosts + more)), efficiency(s), luck)


@given(SETUPS)
def test_overlap_is_never_slower(setup):
    together, after = replace(setup, overlap=True), replace(setup, overlap=False)
    assert below(seconds(together), seconds(after), LUCK)


@given(SETUPS, st.floats(1, 3))
def test_a_slower_worker_is_never_quicker(setup, factor):
    assert below(seconds(setup), seconds(replace(setup, slow=setup.slow * factor)), LUCK)


@given(SETUPS)
def test_two_bits_change_the_pushes_on_the_wire_and_nothing_else(setup):
    def held(s, *kinds):
        found = {}
        for i in timeline(s):
            if i.kind in kinds:
                key = i.lane, i.kind, i.bucket
                found[key] = found.get(key, 0) + i.end - i.start
        return found

    s = replace(setup, is_ring=False)
    plain, packed = replace(s, two_bits=False), replace(s, two_bits=True)
    for kinds in (("pull", "sum"), ("forward", "backward", "update")):
        assert held(packed, *kinds) == pytest.approx(held(plain, *kinds), abs=1e-9)
    sixteenth = {key: value / 16 for key, value in held(plain, "push").items()}
    assert held(packed, "push") == pytest.approx(sixteenth, abs=1e-9)


@given(SETUPS)
def test_nothing_happens_before_it_can(setup):
    found = timeline(setup)
    times = {}
    for i in found:
        assert i.end >= i.start >= 0
        first, last = times.get((i.kind, i.bucket), (i.start, i.end))
        times[i.kind, i.bucket] = min(first, i.start), max(last, i.end)
    for b in range(setup.buckets):
        if ("pull", b) in times:
            own = [i.end for i in found if (i.kind, i.bucket) == ("backward", b)]
            assert min(own) <= times["push", b][0] + 1e-12
            assert times["sum", b][1] <= times["pull", b][0] + 1e-12
            assert times["pull", b][1] <= times["update", -1][1] + 1e-12
    for lane in {i.lane for i in found}:  # nobody does two things at once
        parts = sorted((i.start, i.end) for i in found if i.lane == lane and i.end > i.start)
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(parts, parts[1:]))


def measured_rows(table):
    with open(RESULTS / table, newline="") as file:
        for row in csv.DictReader(file):
            setup = Setup(
                weights=int(row["elements"]) * int(row["buckets"]),
                forward=float(row["forward"]),
                backward=float(row["backward"]),
                update=0.0,
                hosts=int(row["workers"]),
                rate=growth_model.bytes_a_second(row["rate"]),
                latency=218e-6,  # half of number_s of two workers, the least
                servers=int(row["servers"]),
                overlap=row["overlap"] == "1",
                buckets=int(row["buckets"]),
                two_bits=row.get("two_bits") == "1",
                slow=float(row.get("slow", 1)),
            )
            yield setup, float(row["step_s"])


def least_seconds(table):
    """The least seconds of each setup: what else the machine does only adds to them."""
    least = {}
    for setup, step_s in measured_rows(table):
        least[setup] = min(step_s, least.get(setup, step_s))
    return least


def test_steps_of_sleeping_workers_were_measured_as_long_as_the_model_says():
    """Within 5 % to four hosts, 10 % with one server; 15 % for six and eight, on two cores."""
    least = least_seconds("growth.csv")
    assert len(least) == 14
    for setup, step_s in least.items():
        off = 0.15 if setup.hosts > 4 else 0.10 if (setup.hosts, setup.servers) == (4, 1) else 0.05
        assert seconds(setup) == pytest.approx(step_s, rel=off), setup


def test_compression_a_slow_worker_and_few_servers_were_measured_beside_the_model():
    """Within 10 %; two servers for four workers take up to 35 % longer than the model says."""
    least = least_seconds("steps.csv")
    assert len(least) == 8
    for setup, step_s in least.items():
        off = 0.35 if setup.servers == 2 else 0.10
        assert 0.97 < step_s / seconds(setup) < 1 + off, setup


@pytest.mark.parametrize("rate, ratio", [("1gbit", 0.91), ("100mbit", 0.98)])
@pytest.mark.parametrize("forward, backward", [(0.26, 0.60), (0.29, 0.57)])
def test_steps_of_a_training_were_measured_up_to_10_percent_shorter(rate, ratio, forward, backward):
    """ResNet-18 on two hosts, 128 images each, with its own shares and with the page's thirds.

    In truth the next forward begins with the first layers' sums; the model waits for all.
    """
    with open(RESULTS / "runs.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["group"] == rate]

    def found(program, figure):
        names = [program, figure]
        return [float(r["value"]) for r in rows if [r["program"], r["figure"]] == names]

    weights = found("ours", "parameters")[0]
    alone = 128 / statistics.mean(found("independent", "speed"))
    parts = [share * alone for share in (forward, backward, 0.14)]  # notebook 07
    link = {"rate": growth_model.bytes_a_second(rate), "latency": 218e-6}
    speeds = found("ours", "speed")
    assert len(speeds) >= 2
    measured = 128 / statistics.mean(speeds)
    model = seconds(Setup(weights, *parts, hosts=2, **link))
    assert measured / model == pytest.approx(ratio, abs=0.02)


def test_the_constants_are_those_of_the_measurement():
    found = growth.Measured(growth.read(RESULTS / "growth.csv")).fit()
    assert pytest.approx(found.fixed, rel=0.05) == 1 / step_model.ADDS
    assert pytest.approx(found.message, rel=0.05) == MESSAGE
    assert pytest.approx(found.share, rel=0.05) == FRAMES


BASE = Setup(25.6e6, 0.03, 0.06, 0.001, 8, 1.25e9, 50e-6)


@pytest.mark.parametrize(
    "changes, name, words",
    [
        ({"hosts": 1}, "computing", "A single worker"),
        ({"rate": 1e12, "adds": 1e12}, "computing", "this is what you want"),
        ({"rate": 1.25e8}, "rate", "its rate is too low"),
        ({"latency": 0.05}, "latency", "its latency is too high"),
        ({"adds": 1e8}, "sums", "adding up is too slow"),
        ({"slow": 3.0, "rate": 1e11, "adds": 1e11}, "slow worker", "Mending the slow worker"),
        ({"servers": 1, "adds": 1e11}, "rate", "A server on each host would raise it"),
        ({"overlap": False, "rate": 1e10, "adds": 1e11}, "rate", "Sending while computing"),
    ],
)
def test_the_bottleneck_is_named_and_something_helps(changes, name, words):
    setup = replace(BASE, **changes)
    assert step_model.bottleneck(setup) == name
    assert words in step_model.advice(setup)


@given(SETUPS)
def test_each_remedy_helps_and_the_best_comes_first(setup):
    found = step_model.remedies(setup)
    assert all(r.efficiency > efficiency(setup) for r in found)
    assert found == sorted(found, key=lambda r: -r.efficiency)

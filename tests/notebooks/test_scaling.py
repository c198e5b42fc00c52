"""What the notebook on scaling reads and calculates with."""

import json

import lab
import pytest
import roofline
import traces

from launching import ROOT, launch

TIME_BUDGET_S = 12


def test_a_trace_is_read_by_begin_and_end_of_each_thread(tmp_path):
    events = [
        ("B", "_backward_fc", 1, 0),
        ("B", "sgd_update", 2, 1e6),
        ("E", "_backward_fc", 1, 2e6),
    ]
    events += [("E", "sgd_update", 2, 4e6), ("E", "begun before", 1, 5e6)]
    keys = "ph", "name", "tid", "ts"
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [dict(zip(keys, event)) for event in events]}))
    assert traces.read_trace(path) == [("backward", 0, 2), ("update", 1, 4)]


def test_overlapping_operators_are_counted_once():
    spans = [traces.Span("forward", *times) for times in ((0, 2), (1, 3), (5, 6))]
    assert traces.busy_s([*spans, traces.Span("update", 3, 5)], "forward") == 4


def test_the_time_to_an_accuracy_lies_on_the_line_between_two_epochs():
    rows = [{"seconds": 10, "train_accuracy": 0.3}, {"seconds": 20, "train_accuracy": 0.5}]
    assert lab.seconds_to(rows, 0.2) == pytest.approx(5)
    assert lab.seconds_to(rows, 0.4) == pytest.approx(20)
    assert lab.seconds_to(rows, 0.6) == float("inf")


def test_the_table_of_links_has_the_milliseconds_of_an_exchange():
    head, rows = roofline.links(4)
    ms = dict(zip(head, next(row for row in rows if row[0] == "1 Gbit/s")))["VGG-16, ms"]
    # 552 MB; 1.5 times that at 125 MB/s, and two latencies
    assert float(ms) == pytest.approx(6624.2)


def test_a_ring_sends_each_bucket_in_more_and_the_servers_in_as_many_messages_as_servers():
    found = {way: count for way, count, _ in lab.messages("resnet18_v1", 4)}
    # 62 arrays, four of them large; five buckets
    assert list(found.values()) == [58 + 4 * 4, 5 * 4, 5 * 2 * 3]


def test_adam_needs_sixteen_bytes_a_weight_and_momentum_twelve():
    assert roofline.training_bytes(1e9) == 16e9
    assert roofline.training_bytes(1e9, states=1) == 12e9


def test_an_epoch_with_fewer_steps_than_are_timed_is_refused_in_a_line(tmp_path):
    options = "--data synthetic --num-examples 20 --batch-size 8 --network resnet --num-layers 8"
    program = ROOT / "notebooks/programs/time_parts.py"
    job = launch(tmp_path, *options.split(), program=program)
    assert job.status == 2 and "error: 3 steps an epoch, and 5 are timed" in job.stderr
    assert "Traceback" not in job.stderr


def test_saved_results_lie_above_the_formulas():
    curves = lab.saved_growth()
    for name in "compute, then exchange", "overlapped":
        _, measured = curves[f"{name}: measured"]
        _, formula = curves[f"{name}: formula"]
        assert all(a >= b for a, b in zip(measured, formula))

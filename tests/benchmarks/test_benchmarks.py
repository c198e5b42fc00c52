"""The measuring itself: order, ratio and interval, and what is read from the programs."""

import subprocess
import sys
from pathlib import Path

import pytest

import report
from bench import figures
from comparison import ratio, take_turns
from contenders import Failed, ours, read, run
from groups import GROUPS

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TIME_BUDGET_S = 30


def test_programs_take_turns_so_that_a_drift_of_the_machine_touches_all_alike():
    order = []
    runs = {name: lambda name=name: order.append(name) or {"speed": len(order)} for name in "ABC"}
    found = take_turns(runs, 2, report=lambda line: None)
    assert "".join(order) == "ABCCBA" * 2
    assert {sum(f["speed"] for f in figures) for figures in found.values()} == {26}


def test_a_ratio_is_of_medians_and_its_interval_holds_it():
    a, b = [10.0, 12.0, 11.0, 50.0], [5.0, 6.0, 5.5, 5.5]
    value = ratio(a, b)
    assert value.value == pytest.approx(11.5 / 5.5)
    assert value.low < value.value < value.high
    swapped = ratio(b, a)
    assert swapped.value == pytest.approx(1 / value.value)


def test_the_same_figures_have_the_ratio_one():
    assert ratio([3.0] * 4, [3.0] * 4) == ratio([7.0] * 4, [7.0] * 4)
    assert ratio([3.0] * 4, [3.0] * 4).high == 1


@pytest.mark.long
def test_what_the_program_prints_is_what_is_read():
    found = run([*ours("fast", batch_size=16, steps=9, lines=3)])
    assert {"speed", "parameters", "peak_mb", "first_batch_s", "accuracy", "seconds"} <= {*found}
    assert 0 < found["first_batch_s"] < found["seconds"]
    assert 100 < found["peak_mb"] < 4000


def test_the_speed_is_that_of_all_lines_together_but_the_first():
    speeds = (1, 20, 30, 25)
    found = read([(0, f"Batch\tSpeed: {s} samples/sec\n") for s in speeds])["speed"]
    assert found == pytest.approx(3 / (1 / 20 + 1 / 30 + 1 / 25))


def test_an_accuracy_is_read_with_the_time_that_it_came_at():
    lines = [(103.0, "Epoch 0: Test_acc 0.5\n"), (107.5, "Epoch 1: Test_acc 0.75\n")]
    assert read(lines, start=100) == {"accuracy": 0.75, "last_epoch_s": 7.5}


def test_a_program_that_fails_ends_the_measurement_with_what_it_said():
    with pytest.raises(Failed, match="status 3\nno luck"):
        run([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"])


def test_a_figure_that_a_program_did_not_print_is_told():
    assert figures({"ours": [{"speed": 2.0}, {"speed": 3.0}]}, "ours", "speed") == [2.0, 3.0]
    with pytest.raises(Failed, match="ours printed nothing to take speed from"):
        figures({"ours": [{"speed": 2.0}, {}]}, "ours", "speed")


def test_the_groups_are_listed_each_with_a_line_about_it():
    command = [sys.executable, FOLDER / "bench.py", "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(GROUPS)
    assert all(len(line.split()) > 2 for line in listed)


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A folder for results, in which a row is kept."""
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(report, "HERE", tmp_path / "benchmarks")
    (tmp_path / "RESULTS.md").write_text(f"Before\n{report.BEGIN}\nold\n{report.END}\nAfter\n")
    keep("speed of both")
    return tmp_path


def keep(title):
    found = {"ours": [{"speed": 3.0}, {"speed": 4.0}], "theirs": [{"speed": 2.0}, {"speed": 2.0}]}
    row = report.Row(title, "ours", "theirs", "speed", 2.0)
    report.keep("both", found, row, ratio([3.0, 4.0], [2.0, 2.0]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's use of pyparsing
def test_the_table_and_the_plot_are_made_of_what_was_kept(results):
    report.write()
    keep("speed of both")  # it replaces the first
    report.write()
    lines = (results / "RESULTS.md").read_text().splitlines()
    assert lines[0] == "Before" and lines[-1] == "After" and "old" not in lines
    (line,) = [line for line in lines if line.startswith("| speed of both")]
    assert "| 1.750 | 1.500 to 2.000 | at least 2.00 | no | 2 |" in line
    assert len((results / "runs.csv").read_text().splitlines()) == 5
    assert "speed of both" in (results / "ratios.svg").read_text()


def test_rows_that_a_group_no_longer_has_are_removed_and_those_of_others_stay(results):
    report.keep_only("other", ["another"])
    assert "speed of both" in (results / "ratios.csv").read_text()
    keep("renamed")
    report.keep_only("both", ["renamed"])
    kept = (results / "ratios.csv").read_text()
    assert "renamed" in kept and "speed of both" not in kept

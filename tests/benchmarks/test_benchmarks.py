"""The measuring itself: turns, ratio, interval, what is read from the programs and what is kept."""

import csv
import math
import signal
import subprocess
import sys
from argparse import Namespace
from functools import partial

import pytest
from mxnet.recordio import MXRecordIO

import groups
import load
import peak
from bench import figures, minutes
from between_hosts import extrapolated, link
from comparison import Ratio, ratio, take_turns, verdict
from contenders import Failed, ours, read, run
from groups import GROUPS
from growth_model import Fit, Future, bytes_of_host
from kept import Kept
from launching import ROOT
from measured import changed_files, machine, measured_files
from record_files import write as write_records
from report import BEGIN, END, Row, Tables

BENCH = [sys.executable, str(ROOT / "benchmarks" / "bench.py")]
TIME_BUDGET_S = 60


def test_programs_take_turns_so_that_a_drift_of_the_machine_touches_all_alike():
    order = []
    runs = {name: lambda name=name: order.append(name) or {"speed": len(order)} for name in "ABC"}
    found = take_turns(runs, 2, report=lambda line: None)
    assert "".join(order) == "ABCCBA" * 2
    assert {sum(f["speed"] for f in figures) for figures in found.values()} == {26}


def test_turns_end_as_soon_as_enough_is_known_and_at_the_limit():
    for enough_after, rounds in ((2, 2), (9, 3)):
        found = take_turns(
            {"A": lambda: {"speed": 1}},
            3,
            print,
            is_enough=lambda _, n, last=enough_after: n == last,
        )
        assert len(found["A"]) == 2 * rounds


def test_turns_may_depend_on_what_was_found():
    def turns(found):
        yield "first", lambda: {"speed": 1 + len(found)}
        yield "second", lambda: {"speed": 10 * found["first"][-1]["speed"]}

    found = take_turns(turns, 2)
    assert found == {
        "first": [{"speed": 1}, {"speed": 3}],
        "second": [{"speed": 10}, {"speed": 30}],
    }


@pytest.mark.parametrize(
    "value, aim, is_upper_limit, edge, expected",
    [
        ((1.3, 1.2, 1.4), 1.2, False, None, "reached"),
        ((1.3, 1.19, 1.4), 1.2, False, None, "undecided"),
        ((1.1, 1.0, 1.2), 1.2, False, None, "undecided"),
        ((1.1, 1.0, 1.19), 1.2, False, None, "missed"),
        ((0.5, 0.4, 0.6), 0.6, True, None, "reached"),
        ((0.5, 0.4, 0.7), 0.6, True, None, "undecided"),
        ((0.7, 0.61, 0.8), 0.6, True, None, "missed"),
        ((1.2, 1.06, 1.4), 1.15, False, 1.05, "reached"),
        ((1.1, 1.06, 1.4), 1.15, False, 1.05, "undecided"),
        ((1.2, 1.04, 1.4), 1.15, False, 1.05, "undecided"),
        ((1.3, math.nan, math.nan), 1.2, False, None, "undecided"),
        ((1.3, 1.2, 1.4), None, False, None, ""),
    ],
)
def test_the_interval_decides(value, aim, is_upper_limit, edge, expected):
    assert verdict(Ratio(*value), aim, is_upper_limit, edge) == expected


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
    listed = bench("--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(GROUPS)
    assert all(len(line.split()) > 2 for line in listed)


def bench(*words):
    return subprocess.run([*BENCH, *words], cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "words, message",
    [
        ("--only fats", "--only fats: no such group"),
        ("--data /nowhere", "--data /nowhere: has no cifar10_train.rec"),
        ("--only published", "--only published: needs --data"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(words, message):
    done = bench(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"bench.py: {message}")


def test_the_plan_stays_below_an_hour_without_data():
    without = {n: g.rounds for n, g in GROUPS.items() if not (g.needs_data or g.by_name)}
    assert len(without) > 10 and minutes(without) <= 60


@pytest.mark.parametrize("dtypes", [("float32",), ("float32", "bfloat16")])
def test_slow_ways_of_pytorch_are_tried_in_one_round_only(monkeypatch, dtypes):
    monkeypatch.setattr(groups, "DTYPES", dtypes)  # not every processor has both
    turns, rows = GROUPS["one-process"].prepare(Namespace(quick=True))
    names = {name for name, _ in turns({})}
    found = {name: [{"speed": 100.0}] * 2 for name in names}
    slow = f"torch {dtypes[-1]}"
    found[slow], found[f"{slow} channels-last"] = [{"speed": 60.0}] * 2, [{"speed": 95.0}] * 2
    assert names - {name for name, _ in turns(found)} == {slow}
    found["peak"] = [
        {"gflops_float32": 50, "gflops_bfloat16": 100, "multiply_adds_resnet18_v1": 50e6}
    ]
    shares = {row.title: figures(found, row.a, row.figure) for row in rows(found)}
    assert shares["ResNet-18, one process, float32: share of the processor's peak"] == [30e9] * 2


def test_gradients_in_float16_are_compared_with_those_of_ddp_and_with_float32():
    hosts = Namespace(ours=lambda program, workers: program, torch=lambda program: program)
    stack = Namespace(enter_context=lambda cluster: hosts)  # starts no hosts
    runs, rows = link("1gbit", float16_aim=1.3)(Namespace(stack=stack))
    commands = {name: runs[name].args[0] for name in ("ours", "ddp")}
    assert runs["ours in float16"].args[0] == [*commands["ours"], "--gc-type", "fp16"]
    assert runs["ddp in float16"].args[0] == [*commands["ddp"], "--fp16-hook"]
    found = {name: [{"speed": 100.0, "parameters": 11e6}] for name in runs}
    half = {row.title: (row.b, row.aim) for row in rows(found) if row.a == "ours in float16"}
    title = "two hosts at 1gbit, ResNet-18, batch 128"
    assert half == {
        f"{title}, gradients sent in float16: ours / DDP": ("ddp in float16", 1.3),
        f"{title}, ours: gradients in float16 / in float32": ("ours", None),
    }


def test_large_clusters_are_extrapolated_by_the_cost_that_was_measured():
    cost, workers, rate = Fit(share=0.9, fixed=1e-9, latency=1e-4, message=3e-5), (1, 2, 4), 25e6
    runs = [
        {
            "step_s": 0.6 + 16e6 * cost.fixed + bytes_of_host(w, 16e6) / (cost.share * rate),
            "of_many_s": 1e-4 + w * cost.message,
            "number_s": 2 * cost.latency,
        }
        for w in workers
    ]
    expected = Future().efficiency(256, 12.5e9, cost)
    assert extrapolated(workers, runs, 16e6) == pytest.approx(expected)


def test_multiply_adds_are_what_a_hand_counts():
    assert peak.multiply_adds("fast") == (
        30 * 30 * 32 * 27 + (30 * 30 + 15 * 15) * 32 * 288  # whitening, the first block
        + 15 * 15 * 96 * 288 + 7 * 7 * 96 * 864 + 7 * 7 * 256 * 864 + 3 * 3 * 256 * 2304 + 2560
    )  # fmt: skip


def test_the_peak_is_measured():
    found = run([sys.executable, "benchmarks/peak.py", "--size", "64"])
    assert found["gflops_float32"] > 0 and found["multiply_adds_resnet18_v1"] > 30e6


def test_every_tenth_training_image_is_held_out(tmp_path):
    write_records(tmp_path / "cifar10_train.rec", range(20))
    run([sys.executable, "benchmarks/held_out.py", str(tmp_path), str(tmp_path / "parts")])
    counts = []
    for kind in ("train", "val"):
        records = MXRecordIO(str(tmp_path / "parts" / f"cifar10_{kind}.rec"), "r")
        counts.append(len(list(iter(records.read, None))))
    assert counts == [18, 2]


def test_hosts_share_the_steps_of_a_program():
    command = ours(batch_size=16, steps=10, hosts=3)
    assert command[command.index("--num-examples") + 1] == "480"


def test_what_else_uses_the_processors_is_told():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            assert load.load(1.0) > 0.5
            (line,) = [x for x in load.busy_processes() if f"(pid {busy.pid})" in x]
            assert "-c while True: pass" in line
        finally:
            busy.kill()


@pytest.mark.long
def test_a_measurement_that_was_stopped_is_gone_on_with(tmp_path):
    """What a shell starts in its background ignores SIGINT, and so would all that it starts."""
    words, lines = ["--only", "loader", "--rounds", "1", "--output", str(tmp_path)], []
    for program, how in (("ours: ", signal.SIGINT), ("published: ", signal.SIGKILL)):
        with subprocess.Popen(
            [*BENCH, *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        ) as stopped:
            lines.append(next(line for line in stopped.stdout if line.startswith(program)))
            stopped.send_signal(how)
            end = stopped.stdout.read()
        assert stopped.returncode != 0
        assert how == signal.SIGKILL or end.endswith(
            "bench.py: stopped; the same command goes on\n"
        )
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    assert "going on" in done.stdout and all(line in done.stdout for line in lines)
    with open(tmp_path / "runs.csv", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["figure"] == "speed"]
    assert [r["program"] for r in rows[:4]] == ["ours", "ours", "published", "published"]
    assert "images a second" in (tmp_path / "RESULTS.md").read_text()


def test_kept_runs_are_found_again_but_for_half_a_line_and_by_the_same_program_only(tmp_path):
    kept = Kept(["files", 1], tmp_path)
    assert kept.take("group", "A", lambda: {"speed": 1}) == {"speed": 1}
    kept.finish("other")
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text() + '["group", "A", {"sp')  # killed
    Kept(["files", 1], tmp_path).take("other", "B", lambda: {"speed": 2})
    again = Kept(["files", 1], tmp_path)
    assert again.finished == {"other"}
    assert again.take("group", "A", lambda: {"speed": 3}) == {"speed": 1}
    assert again.take("other", "B", lambda: {"speed": 3}) == {"speed": 2}
    assert again.take("group", "A", lambda: {"speed": 3}) == {"speed": 3}
    assert not Kept(["files", 2], tmp_path).runs
    again.forget()
    assert not list(tmp_path.iterdir())


def test_two_machines_of_one_name_differ_by_family_and_model():
    lines = ("cpu family\t: 25", "model\t\t: 1", "model name\t: AMD EPYC", "power management:", "")
    assert machine(2 * "\n".join(lines)) == "2 x AMD EPYC, family 25 model 1"
    assert machine("processor\t: 0\nmodel name\t: POWER9\n") == "1 x POWER9"
    assert machine("processor\t: 0\nBogoMIPS\t: 50.00\n") == ""  # as ARM has it


def test_files_that_changed_since_they_were_measured_are_named(tmp_path):
    (tmp_path / "cifar10_dist").mkdir()
    paths = [tmp_path / "cifar10_dist" / name for name in ("a.py", "b.py", "c.py")]
    for path in paths[:2]:
        path.write_text("pass\n")
    listed = tmp_path / "list"
    assert changed_files(listed, tmp_path) == []  # nothing was measured
    listed.write_text("\n".join(measured_files(tmp_path)))
    assert changed_files(listed, tmp_path) == []
    assert subprocess.run(["sha256sum", "--check", "--quiet", listed], cwd=tmp_path).returncode == 0
    paths[0].write_text("1\n")
    paths[2].write_text("pass\n")
    assert changed_files(listed, tmp_path) == ["cifar10_dist/a.py", "cifar10_dist/c.py"]


@pytest.fixture
def tables(tmp_path):
    """Tables in a folder, in which a row is kept."""
    (tmp_path / "RESULTS.md").write_text(f"Before\n{BEGIN}\nold\n{END}\nAfter\n")
    tables = Tables(tmp_path, tmp_path / "RESULTS.md")
    keep(tables, "speed of both")
    return tables


def keep(tables, title, busy=0.0):
    found = {"ours": [{"speed": 3.0, "load": busy}, {"speed": 4.0, "load": busy}]}
    found["theirs"] = [{"speed": 2.0}, {"speed": 2.0}]
    row = Row(title, "ours", "theirs", "speed", 2.0)
    tables.keep_runs("both", found)
    tables.keep("both", found, row, ratio([3.0, 4.0], [2.0, 2.0]))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's use of pyparsing
def test_the_table_and_the_plot_are_made_of_what_was_kept(tables, tmp_path):
    tables.write()
    keep(tables, "speed of both")  # it replaces the first
    keep(tables, "beside others", busy=1.2)
    tables.write()
    lines = (tmp_path / "RESULTS.md").read_text().splitlines()
    assert lines[0] == "Before" and lines[-1] == "After" and "old" not in lines
    (line,) = [line for line in lines if line.startswith("| speed of both")]
    assert "| 1.750 | 1.500 to 2.000 | at least 2.00 | undecided | 2 |" in line
    (line,) = [line for line in lines if line.startswith("| beside others")]
    assert "| 2, under load: 1.2 |" in line
    assert any(" x " in line and " · Python 3." in line for line in lines)
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 7
    assert "speed of both" in (tmp_path / "ratios.svg").read_text()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_rows_of_the_earlier_form_stay_beside_new_ones(tables, tmp_path):
    columns = "group,title,ratio,low,high,target,is_upper_limit,runs,date,machine,python"
    row = 'old,"an old row",1.5,1.4,1.6,1.2,0,6,2026-11-22,2 x AMD EPYC,3.11.7'
    (tmp_path / "ratios.csv").write_text(f"{columns}\n{row}\n")
    keep(tables, "a new row")
    tables.write()
    page = (tmp_path / "RESULTS.md").read_text()
    assert (
        "| an old row | 1.500 | 1.400 to 1.600 | at least 1.20 | reached | 6 | 2026-11-22 |" in page
    )
    assert "| a new row |" in page


def test_rows_that_a_group_no_longer_has_are_removed_and_those_of_others_stay(tables, tmp_path):
    tables.keep_only("other", ["another"])
    assert "speed of both" in (tmp_path / "ratios.csv").read_text()
    keep(tables, "renamed")
    tables.keep_only("both", ["renamed"])
    kept = (tmp_path / "ratios.csv").read_text()
    assert "renamed" in kept and "speed of both" not in kept

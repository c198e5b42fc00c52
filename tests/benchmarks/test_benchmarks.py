"""The measuring itself: turns, ratio, interval, what is read from the programs and what is kept."""

import re
import subprocess
import sys
from argparse import Namespace

import matplotlib
import pytest

import bench
import checkpoint_cost
import floors
import groups
import growth
import ratio_plot
import report
from bench import GROUPS, minutes
from between_hosts import Link
from comparison import ROUNDS, Row, compared, figures, ratio, take_turns, there_and_back
from contenders import ours, read, run
from launching import ROOT
from report import add, in_page
from tables import RESULTS, machine
from tables import read as read_table

TIME_BUDGET_S = 60
BENCHMARKS = ROOT / "benchmarks"
BENCH = [sys.executable, str(BENCHMARKS / "bench.py")]


def test_programs_take_turns_so_that_a_drift_of_the_machine_touches_all_alike():
    order = []
    runs = {name: lambda name=name: order.append(name) or {"speed": len(order)} for name in "ABC"}
    found = take_turns(lambda found: there_and_back(runs), 2, report=lambda line: None)
    assert "".join(order) == "ABCCBA" * 2
    assert {sum(f["speed"] for f in figures) for figures in found.values()} == {26}


def test_turns_may_depend_on_what_was_found():
    def turns(found):
        yield "first", lambda: {"speed": 1 + len(found)}
        yield "second", lambda: {"speed": 10 * found["first"][-1]["speed"]}

    found = take_turns(turns, 2)
    assert found == {
        "first": [{"speed": 1}, {"speed": 3}],
        "second": [{"speed": 10}, {"speed": 30}],
    }


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


def test_benchmarks_stand_on_three_floors_and_import_only_from_those_below():
    programs = {"bench", "growth", "checkpoint_cost", "ladder"}
    middle = {"groups", "between_hosts", "report"}
    ground = floors.rooms_of(BENCHMARKS) - programs - middle
    assert floors.faults(BENCHMARKS, [programs, middle, ground]) == []
    pairs = floors.arrows(BENCHMARKS)
    assert ("bench", "groups") in pairs
    assert not [pair for pair in pairs for floor in (middle, ground) if {*pair} <= floor]


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
    with pytest.raises(RuntimeError, match="status 3\nno luck"):
        run([sys.executable, "-c", "print('no luck'); raise SystemExit(3)"])


def test_what_cannot_be_compared_is_told():
    found = {"ours": [{"speed": 2.0, "parameters": 9}, {"parameters": 9}]}
    found["theirs"] = [{"speed": 3.0, "parameters": 8}]
    with pytest.raises(RuntimeError, match="ours printed nothing to take speed from"):
        figures(found, "ours", "speed")
    with pytest.raises(RuntimeError, match="networks of different sizes"):
        compared("both", found, "ours", "theirs")


def run_bench(*words):
    return subprocess.run([*BENCH, *words], cwd=ROOT, capture_output=True, text=True, timeout=240)


@pytest.mark.parametrize(
    "words, message",
    [
        ("--only fats", "--only fats: no such group"),
        ("--data /nowhere", "--data /nowhere: has no cifar10_train.rec"),
        ("--only published", "--only published: needs --data"),
    ],
)
def test_a_mistake_is_one_line_before_anything_runs(words, message):
    done = run_bench(*words.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"bench.py: {message}")


def test_all_groups_but_that_of_real_images_are_listed_and_take_less_than_an_hour():
    first, *listed = run_bench("--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [n for n in GROUPS if n != "published"]
    assert all(len(line.split()) > 4 for line in listed)
    usual = [name for name, group in GROUPS.items() if not group.needs_data]
    assert first == f"10 groups, {ROUNDS} rounds, on two cores about {minutes(usual):.0f} minutes"
    assert 20 < minutes(usual) <= 60


@pytest.mark.parametrize("dtypes", [("float32",), ("float32", "bfloat16")])
def test_slow_ways_of_pytorch_are_tried_in_one_round_only(monkeypatch, dtypes):
    monkeypatch.setattr(groups, "DTYPES", dtypes)  # not every processor has both
    group = groups.OneProcess(1)
    group.setup(None, is_quick=True)
    names = {name for name, _ in group.turns({})}
    found = {name: [{"speed": 100.0}] * 2 for name in names}
    slow = f"torch {dtypes[-1]}"
    found[slow], found[f"{slow} channels-last"] = [{"speed": 60.0}], [{"speed": 95.0}] * 2
    assert names - {name for name, _ in group.turns(found)} == {slow}
    rows = {row.title: row for row in group.rows(found)}
    title = f"ResNet-18, one process, {dtypes[-1]}: ours / best of PyTorch"
    assert rows[title].note == f"{slow} channels-last"


def test_two_hosts_are_compared_with_ddp_also_in_float16_and_with_the_limit():
    hosts = Namespace(ours=lambda program, workers: program, torch=lambda program: program)
    group = Link(1, "1gbit")
    group.setup(Namespace(enter_context=lambda cluster: hosts))  # starts no hosts
    commands = {name: act.args[0] for name, act in group.programs.items()}
    assert commands["ours in float16"] == [*commands["ours"], "--gc-type", "fp16"]
    assert commands["ddp in float16"] == [*commands["ddp"], "--fp16-hook"]
    found = {name: [{"speed": 100.0, "parameters": 25e6}] for name in commands}
    found["ours"] = [{"speed": 128.0, "parameters": 25e6}]
    rows = {row.title.partition(", batch 128")[2]: row for row in group.rows(found)}
    half = rows[", gradients sent in float16: ours / DDP"]
    assert (half.a, half.b) == ([100.0], [100.0])
    limit = rows[": time of a step / the limit of computing and cable"]
    assert limit.a == [1.0] and limit.b == [1.28]  # computing; the cable needs 0.84 s
    slow = {row.title.partition(", batch 128")[2]: row for row in Link(1, "100mbit").rows(found)}
    assert slow[": time of a step / the limit of computing and cable"].b[0] > 8


def test_the_published_accuracy_must_be_reached_for_a_time_to_it():
    group = groups.Published(1)
    group.setup(None, data="/data")
    assert [name for name, _ in group.turns({})] == ["published", "default", "quick"]
    assert dict(group.turns({"published": [{}]}))["quick"].args[0][-2:] == ["--seed", "1"]
    found = {"published": [{"accuracy": 0.65, "last_epoch_s": 240.0, "peak_mb": 1200.0}]}
    found["default"] = [{"peak_mb": 600.0}]
    found["quick"] = [{"accuracy": 0.69, "last_epoch_s": 15.0}]
    assert [ratio(row.a, row.b).value for row in group.rows(found)] == [0.5, 16.0, 0.65]
    found["quick"][0]["accuracy"] = 0.6
    with pytest.raises(RuntimeError, match="did not reach"):
        list(group.rows(found))


def test_the_cost_of_saving_is_measured(tmp_path):
    row = checkpoint_cost.measure("fast", "sgd", tmp_path, batch_size=8, repeats=1)
    assert row["disk_mb"] > 1 and row["until_on_disk_s"] > 0
    assert len(list(tmp_path.glob("model-0002.*"))) >= 3
    assert [*row] == [*read_table(checkpoint_cost.SAVING)[0]]


@pytest.mark.long
@pytest.mark.parametrize("rungs", ["0", "6", "7"])
def test_every_way_of_training_on_the_ladder_runs(rungs):
    words = ["--batch-size", "8", "--steps", "3", "--disp-batches", "1", "--rungs", rungs]
    assert run([sys.executable, "benchmarks/ladder.py", *words])["speed"] > 0


def test_hosts_share_the_steps_of_a_program():
    command = ours(batch_size=16, steps=10, hosts=3)
    assert command[command.index("--num-examples") + 1] == "480"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's use of pyparsing
def test_a_group_is_measured_and_written_down_and_a_stop_is_one_line(tmp_path, monkeypatch, capsys):
    def stop():
        raise KeyboardInterrupt

    def fail():
        raise RuntimeError("ours: status 3")

    title = "time to the first batch, 2 workers: ours / torchrun"
    programs = {"ours": lambda: {"speed": 2.0}, "theirs": lambda: {"speed": 4.0}}
    quick = groups.Pair(1, "Two.", title, programs)
    broken, stopped = (groups.Pair(1, "Two.", "none", {"ours": act}) for act in (fail, stop))
    monkeypatch.setattr(bench, "GROUPS", {"first": quick, "bad": broken, "last": stopped})
    words = ["--only", "bad", "--only", "first", "--only", "last", "--quick", "--output"]
    monkeypatch.setattr(sys, "argv", ["bench.py", *words, str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^bench\.py: stopped; the groups above are written$"):
        bench.main()
    assert "bench.py: bad: ours: status 3\n" in capsys.readouterr().err
    rows = read_table(tmp_path / "runs.csv")
    assert [r["program"] for r in rows] == ["ours", "ours", "theirs", "theirs"]
    assert f"| {title} | 0.500 | 0.500 to 0.500 | 2 |" in (tmp_path / "rows.md").read_text()
    assert (tmp_path / "ratios.svg").stat().st_size < 60_000


def test_two_machines_of_one_name_differ_by_family_and_model():
    lines = ("cpu family\t: 25", "model\t\t: 1", "model name\t: AMD EPYC", "power management:", "")
    assert machine(2 * "\n".join(lines)) == "2 x AMD EPYC, family 25 model 1"
    assert machine("processor\t: 0\nmodel name\t: POWER9\n") == "1 x POWER9"
    assert machine("processor\t: 0\nBogoMIPS\t: 50.00\n") == ""  # as ARM has it


BEFORE = {"1.06", "1.21"}  # told of an earlier sitting
WHERE = {
    "date": "2026-11-26",
    "machine": "2 x CPU",
    "python": "3.11",
    "commit": "1234",
    "torch": "",
}


def test_a_group_takes_the_place_of_its_earlier_rows(tmp_path):
    found = {"ours": [{"speed": 3.0}, {"speed": 4.0}], "theirs": [{"speed": 2.0}, {"speed": 2.0}]}

    def rows(*titles):
        return [compared(title, found, "ours", "theirs") for title in titles]

    shown = "resnet18_v1, batch 32 a worker: ours / DDP"
    add(tmp_path, "first", found, [*rows("gone"), Row("too", [1.0], [2.0])], WHERE)
    lines = add(tmp_path, "second", found, rows(shown), WHERE)
    assert lines == [f"{shown}: 1.75 (1.5 to 2.0)"]
    add(tmp_path, "first", found, rows("renamed"), WHERE)
    ratios = read_table(tmp_path / "ratios.csv")
    assert [row["title"] for row in ratios] == ["renamed", shown]
    assert [row["title"] for row in in_page(ratios)] == [shown]
    groups_of_runs = [row["group"] for row in read_table(tmp_path / "runs.csv")]
    assert groups_of_runs == ["first"] * 4 + ["second"] * 4
    lines = [*report.rows_tables(tmp_path)]
    assert f"| {shown} | 1.750 | 1.500 to 2.000 | 2 |" in lines
    assert lines[0] == "2 cores of CPU · Python 3.11 · 2026-11-26 · commit 1234"


@pytest.mark.parametrize(
    "title, low, high, told",
    (
        ("ours / DDP", 1.1, 1.3, "reached"),
        ("ours / DDP", 0.8, 0.9, "missed"),
        ("ours / DDP", 0.9, 1.1, "undecided"),
        ("8 hosts: the limit of computing and cable / a step", 0.8, 0.9, "limit"),
        ("one run", float("nan"), float("nan"), "reached"),
        ("ours / DDP", 0.982, 0.99, "equal"),
        ("ours / DDP", 0.9, 1.07, "undecided"),
    ),
)
def test_the_plot_tells_better_from_worse_by_filled_and_hollow(title, low, high, told):
    value = (low + high) / 2 if low == low else 1.2
    assert ratio_plot.verdict({"title": title, "ratio": value, "low": low, "high": high}) == told
    shapes = [
        str(ratio_plot.filled_with(kind, "")) + ratio_plot.MARKS[kind][0]
        for kind in ratio_plot.MARKS
    ]
    assert len({*shapes}) == len(shapes) == 5


@pytest.mark.parametrize("page", report.PAGES, ids=lambda page: page.name)
def test_the_tables_of_the_pages_are_those_of_the_csv_files(page):
    """`.venv/bin/python benchmarks/report.py` writes them."""
    text = page.read_text()
    assert text.count(report.BEGIN) == text.count(report.END) == 1
    assert report.filled(text, report.PAGES[page]()) == text


def test_results_show_at_most_ten_rows_and_all_that_the_report_names():
    assert [row["title"] for row in report.page_rows()] == [*report.PAGE]
    assert len(report.PAGE) <= 10
    ratios = read_table(RESULTS / "ratios.csv")
    assert {row["group"] for row in ratios} == {*GROUPS}
    assert len(report.headlines(ratios)) == len(report.HEADLINES) <= 5
    names = [f"{row['name']}, {row['what']}" for row in report.page_rows()]
    assert len({*names}) == len(names)
    assert not [name for name in names if re.search("resnet18_v1|[gm]bit|less is better", name)]


def test_results_show_the_inverse_where_less_is_better():
    ratios = {row["title"]: row for row in read_table(RESULTS / "ratios.csv")}
    shown = {row["title"]: row for row in report.page_rows()}
    assert {*shown} >= report.LESS_IS_BETTER
    for title in report.LESS_IS_BETTER:
        kept, row = ratios[title], shown[title]
        inverse = [1 / float(kept[name]) for name in ("ratio", "high", "low")]
        assert [row[name] for name in ("ratio", "low", "high")] == inverse
        assert 1 < row["low"] < row["ratio"] < row["high"]


def test_results_tell_of_every_date_what_was_measured_at_which_commit():
    rows = [
        {**WHERE, "group": "start"},
        {**WHERE, "group": "1gbit", "commit": "5678"},
        {**WHERE, "group": "growth", "date": "2026-11-22", "machine": "4 x CPU", "commit": ""},
    ]
    assert [*report.provenance(rows)] == [
        "- Machine: 2 cores of CPU.",
        "- Versions: Python 3.11.",
        "- Measured on 2026-11-26: `start` at commit 1234; `1gbit` at commit 5678.",
        "- Measured on 2026-11-22 on 4 cores of CPU: `growth` (the commit was not recorded).",
    ]


def test_results_and_growth_show_one_figure_of_the_same_measurement():
    (row,) = (row for row in report.page_rows() if row["group"] == "growth")
    beside = "{:.2f} ({:.2f} to {:.2f})".format(*(row[k] for k in ("ratio", "low", "high")))
    assert [*report.growth_table()][-3].endswith(f"| {beside} |")


def test_ratios_in_the_prose_of_results_stand_in_a_table():
    text = (ROOT / "RESULTS.md").read_text()
    prose = text.partition(report.BEGIN)[0] + text.partition(report.END)[2]
    told = {*re.findall(r"\b\d\.\d\d\b", prose)} - {"2.13"}  # of PyTorch
    of_growth = report.page_rows()[-1]
    rows = [*map(upwards, read_table(RESULTS / "ratios.csv")), float(of_growth["ratio"])]
    assert told - BEFORE <= {f"{ratio:.2f}" for ratio in rows} and told > BEFORE


def upwards(row):
    """Return the ratio of a row of ratios.csv, or its inverse if it is of times or memory."""
    is_less = re.match(".*time to the first|.*time of a step|peak memory", row["title"])
    return 1 / float(row["ratio"]) if is_less else float(row["ratio"])


PLOTS = "ratios.svg", "ratios-narrow.svg", "headlines.svg", "headlines-narrow.svg", "growth.svg"


def test_the_front_page_tells_the_numbers_of_its_plot():
    text = (ROOT / "docs" / "site" / "index.md").read_text()
    (told,) = re.findall(r"!\[([^]]*)\]\(benchmarks/results/headlines\.svg\)", text)
    shown = [f"{float(row['ratio']):.2f}" for row in report.headlines(report.page_rows())]
    assert re.findall(r"\d\.\d\d", told) == shown


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # matplotlib's use of pyparsing
def test_the_pictures_are_those_of_the_tables(tmp_path):
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the plots of the notebooks have settings of their own
        report.draw_all(RESULTS, tmp_path)
        growth.draw(growth.Measured(read_table(RESULTS / "growth.csv")), tmp_path / "growth.svg")
    for name in PLOTS:
        picture, now = (folder / name for folder in (RESULTS, tmp_path))
        picture, now = picture.read_bytes(), now.read_bytes()
        texts = [re.findall(rb">([^<]+)</text>", each) for each in (picture, now)]
        assert texts[0] == texts[1] and texts[0]
        if f"Matplotlib v{matplotlib.__version__}".encode() in picture:  # others draw otherwise
            assert picture == now
        assert b"<text" in picture and len(picture) < 60_000


def test_the_plots_can_be_read_on_a_phone():
    for name in ("ratios-narrow.svg", "headlines-narrow.svg", "growth.svg"):
        text = (RESULTS / name).read_text()
        width_px = float(re.search(r'<svg [^>]*width="([\d.]+)pt"', text)[1]) / 0.75
        sizes = [float(size) for size in re.findall(r"font: (?:\w+ )?([\d.]+)px", text)]
        phone_px = 390 - 2 * 16  # the page has margins
        assert sizes and min(sizes) / 0.75 * min(1, phone_px / width_px) >= 12

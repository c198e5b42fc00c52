"""What a job looks like on a terminal, and that nothing of it reaches a pipe."""

import re
import shlex
import subprocess
import sys
import threading
import time

import pytest
from screen import INTERRUPT, OnTerminal, Screen
from tqdm import tqdm

from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.job import Process
from gluon_launch.telling.agreement import Agreement
from gluon_launch.telling.bottom import PLAIN_SIGNS
from gluon_launch.telling.columns import command_rows, wrapped
from gluon_launch.telling.progress import Progress
from gluon_launch.telling.report import command_to_go_on
from gluon_launch.watching.restarts import KEEPS_LOGS
from launching import ROOT, shell

TIME_BUDGET_S = 40
LAUNCH = (sys.executable, ROOT / "tools" / "launch.py", "--no-check", "-n", "2")
SPEED = r"Epoch[0] Batch [20]\tSpeed: 404.5 samples/sec\taccuracy=0.5"
BARS = """
import os, sys, time
me = os.environ.get("LAUNCH_WORKER_ID")
if me is None: sys.exit()
time.sleep(0.7)
print("Epoch[0] Batch [20]\\tSpeed: 404.50 samples/sec\\taccuracy=0.5", flush=True)
for done in range(0, 11):
    bar = f"Epoch 0: {10 * done:3}%|###       | {done}/10 [00:01<00:01,  9.00batch/s]"
    sys.stderr.write("\\r" + bar)
    sys.stderr.flush()
    time.sleep(0.1)
    if done == 5: print("long " * 2000, flush=True)
    if done == 7: time.sleep(1.5)  # longer than a part of a line waits for its end
open(me, "w").close()
while not (os.path.exists("0") and os.path.exists("1")): time.sleep(0.01)
sys.stderr.write("\\r" + " " * 70 + "\\r")
print("Epoch 0: Test_acc 0.75", flush=True)
print("after it", flush=True)
"""
SAVES = """
import os, signal, sys, time
if "LAUNCH_WORKER_ID" not in os.environ: sys.exit()
def stop(*_):
    time.sleep(1)
    if os.environ["LAUNCH_WORKER_ID"] == "0":
        print("Stopped and saved m-2: --resume auto goes on from it", flush=True)
    os._exit(75)
signal.signal(signal.SIGTERM, stop)
while True:
    sys.stderr.write("\\rEpoch 0 (1 of 1):  12%|#   | 3/24 [00:02<00:17, 9.00batch/s]")
    sys.stderr.flush()
    time.sleep(0.1)
"""


def on_terminal(folder, *words, columns=80, env=None):
    return OnTerminal([*LAUNCH, *words], folder, columns, env)


def seen(job, columns=80):
    """What the terminal shows in the end."""
    screen = Screen(columns)
    screen.feed(job.finish())
    return screen.text()


@pytest.mark.parametrize("columns", [80, 40])
def test_lines_scroll_above_what_the_job_does_now(tmp_path, columns):
    (tmp_path / "bars.py").write_text(BARS)
    job = on_terminal(tmp_path, "-s", 0, "python", "bars.py", columns=columns)
    text = seen(job, columns)
    assert job.status == 0
    bar = "━" * 5 if columns == 80 else r"\d+/10"
    assert re.search(f"workers? [01](-1)?  Epoch 0  {bar}", job.written)
    if columns == 80:
        assert "no output yet: Python and MXNet are being loaded · 0:0" in job.written
        assert re.search(r"[67]/10  0:01 left", job.written)
        assert "2 workers · 0:0" in job.written and "· 809 samples/s" in job.written
    else:
        assert "loading MXNet · 0:0" in job.written
        assert re.search(r"[67]/10  0:01 left", job.written)
    for sign in ("%|", "left", "━", "·"):
        assert sign not in text
    assert all(len(line) <= columns for line in text.splitlines())
    assert {*text.split()} >= {"long", "404.50", "(2"} and "lon" not in text.split()  # none is cut
    whole = re.sub(r"\s", "", text)
    assert whole.count("long" * 2000) == 2 and whole.count("Speed:404.50") == 2
    assert re.search(r"\[worker0\]Epoch0:Test_acc0.75\(2workersagree\)", whole)
    assert whole.count("Test_acc") == 1 and whole.count("afterit") == 2
    assert re.search(r"\[launch\]✓2workersendedwellin\d+s$", whole)


def test_a_failure_is_framed_and_what_our_own_stop_makes_shells_say_is_not_shown(tmp_path):
    bar = 'printf "\\rEpoch 0:  12%%|#   | 3/24 [00:02<00:17]" >&2'
    first = f"sh -c 'echo up; while :; do {bar}; sleep 0.2; done'; true"
    act = shell(worker0=first, worker1="sleep 2; echo oh no >&2; exit 3")
    began = time.monotonic()
    job = on_terminal(tmp_path, act)
    lines = seen(job).splitlines()
    took = time.monotonic() - began
    assert job.status == 3 and not [line for line in lines if "Terminated" in line]
    first = next(n for n, line in enumerate(lines) if "✗" in line)
    assert lines[first] == "[launch] ✗ worker 1 on localhost: oh no"
    assert lines.count("[worker 1] oh no") == 1
    last = r"\[launch\] └ the job failed with status 3, at [\d:]+ after (.+) s; "
    last += "worker 0 was stopped"
    found = re.fullmatch(last, " ".join(" ".join(lines[first + 1 :]).split()))
    assert 2 <= float(found[1]) <= took
    assert "\x1b[31m✗\x1b[0m" in job.written and "\x1b[36m[worker 0]\x1b[0m up" in job.written


def test_ctrl_c_ends_what_is_drawn(tmp_path):
    cut = 'printf "Epoch 0:  12%%|#   | 3/24 [00:02<00:17]" >&2'
    end = f"sleep 1; {cut}; echo; echo Saved m-2: --resume auto goes on; exit 75"
    act = f"trap '{end}' TERM; echo up; while :; do sleep 0.1; done"
    job = on_terminal(tmp_path, shell(worker0=act, worker1=act))
    job.wait_for("0]\x1b[0m up")
    job.wait_for("1]\x1b[0m up")
    job.send(INTERRUPT)
    said = seen(job)
    assert job.status == 75
    assert "3/24" not in said  # the bar of a process that has ended
    asked = "[launch] Ctrl-C: stopping the job: workers 0-1 have 15 s to save and end"
    assert asked in said
    assert "stopping: up to 15 s for workers 0-1 to save and end · 0:0" in job.written
    said = said[said.index("[launch] ■") :]
    told = r"\[launch\] ■ stopped by Ctrl-C after \d+ s: all workers saved on request\n"
    assert re.fullmatch(told + r"\[launch\] └ Saved m-2: --resume auto goes on", said)


def test_after_ctrl_c_no_time_is_left_and_the_last_row_is_the_command_that_resumes(tmp_path):
    (tmp_path / "train.py").write_text(SAVES)
    words = ["-s", "0", "python", "train.py", "--out", "a folder/m"]
    job = on_terminal(tmp_path, *words, columns=300)
    job.wait_for("workers 0-1  Epoch 0")  # both take requests
    job.wait_for("0:17 left")
    job.send(INTERRUPT)
    said = seen(job, columns=300).splitlines()
    ending = job.written.split("stopping: up to 15 s")[1]
    assert job.status == 75 and "left" not in ending
    assert sum("Stopped and saved" in line for line in said) == 1
    assert said[-2] == "[launch] └ to go on:"
    command = shlex.split(" ".join(map(str, LAUNCH)) + " -s 0 python train.py --resume auto")
    assert shlex.split(said[-1]) == [*command, *words[4:]]


@pytest.mark.parametrize(
    "typed, said, resumed",
    [
        (
            ["python x.py -a 1 | cat"],
            "--resume auto goes on",
            "'python x.py --resume auto -a 1 | cat'",
        ),
        (["x.py", "--resume", "auto"], "--resume auto goes on", "x.py --resume auto"),
        (["x.py", "--resume", "none"], "--resume auto goes on", None),
        (["run", "me"], "--resume auto goes on", None),
        (["run", "m e"], "the same command goes on", "run 'm e'"),
        (["run"], "saved, and goes on", None),
    ],
)
def test_the_command_that_resumes_is_the_one_typed_with_the_option(
    typed, said, resumed, monkeypatch
):
    monkeypatch.setattr(sys, "orig_argv", ["python", "launch.py", "-n", "2", *typed], raising=False)
    found = command_to_go_on(f"Stopped and saved m-2: {said} from it", typed)
    assert found == (f"python launch.py -n 2 {resumed}" if resumed else "")


@pytest.mark.parametrize("columns", [20, 30, 60, 200])
@pytest.mark.parametrize("text", ["python a.py  --b 'c d' $e", "python a.py  --bcd 1 --efg 2 3"])
def test_a_shell_takes_the_rows_of_a_command_for_the_command(text, columns):
    words = ["-n", "2", "it's", "", "--env", "A=b  c", text]
    rows = command_rows(shlex.join(words), columns)
    assert (len(rows) == 1) == (columns == 200) and len(rows[0]) <= columns
    shown = "\n".join(rows)
    said = subprocess.run(["sh", "-c", f"printf '%s|' {shown}"], stdout=subprocess.PIPE, text=True)
    assert said.stdout.split("|")[:-1] == words
    if "$" not in text:
        assert all(len(row) <= columns for row in rows)


def test_a_second_ctrl_c_is_answered_and_the_end_says_that_nothing_was_saved(tmp_path):
    act = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    job = on_terminal(tmp_path, shell(worker0=act, worker1=act))
    job.wait_for("0]\x1b[0m up")
    job.wait_for("1]\x1b[0m up")
    job.send(INTERRUPT)
    job.wait_for("Ctrl-C again")
    job.send(INTERRUPT)
    *_, answer, first, last = seen(job).splitlines()
    assert answer == "[launch] Ctrl-C: ending all processes at once"
    assert re.fullmatch(r"\[launch\] ■ stopped by Ctrl-C after \d+ s", first)
    assert last == "[launch] └ nothing was saved on request"


def test_workers_with_the_same_error_say_it_once_and_none_was_stopped(tmp_path):
    act = "trap '' TERM; echo x.py: error: no such flag >&2; sleep 1; exit 2"
    job = on_terminal(tmp_path, shell(worker0=act, worker1=act))
    first, frame, last = seen(job).splitlines()
    assert first == "[worker 0] x.py: error: no such flag (2 workers agree)"
    assert re.fullmatch(r"\[launch\] ✗ worker [01] on localhost: no such flag", frame)
    assert last.startswith("[launch] └ the job failed with status 2, at ")


def test_a_cause_is_told_whole_on_a_narrow_terminal(tmp_path):
    act = "echo x.py: error: no such flag as --this-one here >&2; sleep 1; exit 2"
    job = on_terminal(tmp_path, shell(worker0=act, worker1=act), columns=50)
    said = " ".join(seen(job, 50).partition("✗")[2].replace("│", "").split())
    cause = "no such flag as --this-one here"
    assert re.match(rf"worker [01] on localhost: {cause} \[launch\]", said)


@pytest.mark.parametrize(
    "env, words",
    [({"TERM": "dumb"}, ()), ({}, ("--no-progress", "--color", "never"))],
    ids=["dumb", "by flags"],
)
def test_nothing_is_drawn_where_it_is_not_wanted(tmp_path, env, words):
    job = on_terminal(tmp_path, *words, "echo hi", env=env)
    assert "\x1b" not in job.finish() and job.status == 0
    assert not re.search(r"\d:\d\d", job.written) and "[worker 0] hi\r\n" in job.written


@pytest.mark.parametrize("choice, is_coloured", [("auto", False), ("always", True)])
def test_a_pipe_gets_neither_rows_nor_colours(tmp_path, choice, is_coloured):
    (tmp_path / "bars.py").write_text(BARS)
    done = subprocess.run(
        [*LAUNCH, "-s", "0", "--color", choice, "python", "bars.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0 and ("\x1b[36m[worker 0]" in done.stdout) == is_coloured
    assert ("\x1b" in done.stdout + done.stderr) == is_coloured
    assert "\x1b[J" not in done.stderr and "agree" not in done.stdout
    assert done.stdout.count("Epoch 0: Test_acc 0.75\n") == 2


def test_the_environment_decides_on_colours(tmp_path):
    job = on_terminal(tmp_path, "echo hi", env={"NO_COLOR": "1"})
    assert "\x1b[3" not in job.finish() and "logging in to localhost · 0:0" in job.written


@pytest.mark.parametrize("env, is_coloured", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_help_and_mistakes_have_colours_on_a_terminal_and_no_word_is_cut(
    tmp_path, env, is_coloured
):
    def said(*words):
        return OnTerminal([*LAUNCH, *words], tmp_path, 60, env).finish()

    text = said("--help")
    assert ("\x1b[1moptions:\x1b[0m\r\n" in text) == is_coloured
    assert ("  \x1b[1m-n\x1b[0m N, \x1b[1m--num-workers\x1b[0m N  " in text) == is_coloured
    assert "(30 s)" in text and re.search("HOSTS  +a file", text)
    text = said("-H", "hosst", "x")
    assert ("launch.py: \x1b[31merror:\x1b[0m 'hosst': No such" in text) == is_coloured
    assert "d1,d2)" in text and "-H\r" not in text and ("\x1b" in text) == is_coloured


@pytest.mark.parametrize("form", [{}, {"unit": "batch"}, {"prefix": "Epoch 3"}])
def test_bars_of_tqdm_are_read(form):
    progress = Progress(2, began=0)
    bar = tqdm.format_meter(n=12, total=100, elapsed=10, ncols=80, **form)
    assert progress.take(1, bar, "\r") is None
    first, row = progress.rows(61, PLAIN_SIGNS, 90)
    what = form.get("prefix", "") + "  " * ("prefix" in form)
    in_epoch = " in this epoch" * ("prefix" in form)
    rate = f"1.20 {form.get('unit', 'it')}/s"
    assert first == "2 workers | 1:01"
    assert row == f"  worker 1  {what}{'==':-<24}  12/100  {rate}  1:13 left{in_epoch}"
    assert progress.take(1, bar, "") is None and progress.take(1, "", "\r") is None  # a slow bar
    assert progress.rows(61, PLAIN_SIGNS, 90)[1] == row
    assert progress.take(1, bar + "stopping", "\n") == "stopping"
    assert progress.take(1, bar, "\n") == bar  # one that stays
    assert progress.take(1, "", "\n") == ""
    assert progress.take(1, bar, "") is None and progress.take(1, "", "\n") is None  # it was killed
    for end in ("", "\r", "\n"):
        assert progress.take(1, bar, "\r") is None
        assert progress.take(1, " " * 30, end) is None and len(progress.rows(61, PLAIN_SIGNS)) == 1


def test_speeds_are_added_up_and_who_is_waited_for_is_marked():
    progress = Progress(4, began=0)
    line = "Epoch[2] Batch [40]\tSpeed: 100.00 samples/sec\taccuracy=0.5"
    for rank in (0, 1):
        assert progress.take(rank, line, "\n") == line
        progress.take(rank, "working", "\r")
    progress.take(0, "x.py: warning: worker 1 takes 2.0 times as long: all wait for it", "\n")
    first, *rows = progress.rows(3, PLAIN_SIGNS)
    assert first == "4 workers | 0:03 | ~400 samples/s in all"
    assert rows == ["  worker 0  working", "  worker 1  working  <- the others wait"]
    progress.take(0, "x.py: warning: worker 1 keeps up with the others again", "\n")
    assert progress.rows(3, PLAIN_SIGNS)[1:] == ["  workers 0-1  working"]


def test_the_time_left_is_that_of_all_epochs_if_the_bar_tells_their_number():
    (_, row) = rows_of([bar(50, "Epoch 1 (2 of 4)")])  # each takes 10 + 24 s
    assert row.endswith("1:32 left")
    assert rows_of([bar(100, "Epoch 1 (2 of 4), testing")])[1].endswith("0:20 left")
    (_, row) = rows_of([bar(50, "Epoch [2/4]")])
    assert row.endswith("0:24 left in this epoch")
    assert rows_of([bar(50, "Epoch [2/4]")], 48)[1].endswith("0:24 left")
    assert rows_of([bar(50, "Epochs")])[1].endswith("0:24 left")


def test_accuracies_that_differ_or_come_late_are_shown_as_they_are():
    one, two = (Process("worker", rank, LOCAL) for rank in range(2))
    agreement = Agreement(2)
    assert agreement.take(one, "out", "a line", 0) is None
    assert agreement.take(one, "out", "Epoch 0: Test_acc 0.5", 0) == []
    assert agreement.take(one, "out", "next", 0) == []
    assert agreement.take(two, "out", "Epoch 0: Test_acc 0.6", 0) == [
        (one, "out", "Epoch 0: Test_acc 0.5"),
        (one, "out", "next"),
    ]
    assert agreement.late(1) == [] and agreement.late(3) == [(two, "out", "Epoch 0: Test_acc 0.6")]


def test_a_line_of_several_workers_has_the_name_of_the_first_of_them():
    workers = [Process("worker", rank, LOCAL) for rank in range(3)]
    agreement, line = Agreement(3), "Epoch 0: Test_acc 0.5"
    assert agreement.take(workers[2], "out", line, 0) == []
    assert agreement.take(workers[1], "out", line, 0) == []
    assert agreement.take(workers[0], "out", line, 0) == [
        (workers[0], "out", f"{line} (3 workers agree)")
    ]
    for worker in (workers[2], workers[1]):
        agreement.take(worker, "err", "x.py: error: no", 5)
    assert agreement.late(8) == [(workers[1], "err", "x.py: error: no (2 workers agree)")]


def bar(percent, what="Epoch 3 (4 of 4)", rate="97 samples/s"):
    return f"{what}: {percent:3}%|##  | {percent}/100 [00:10<00:24, {rate}]"


def rows_of(bars, columns=80, slow=None):
    """What is shown of workers with such bars."""
    progress = Progress(len(bars), began=0)
    progress.note("", ["d1", "d2"])
    for rank, text in enumerate(bars):
        progress.take(rank, text, "\r")
    progress.slow = slow
    return progress.rows(83, PLAIN_SIGNS, columns)


@pytest.mark.parametrize(
    "text", [bar(5, rate="1.10.5batch/s"), "Epoch[0] Batch [2]\tSpeed: 4.54.5 samples/sec"]
)
def test_two_lines_that_were_written_into_each_other_have_no_rate(text):
    """float() would not take it, and the launcher would end."""
    assert "samples/s" not in rows_of([text])[0]


def test_workers_near_each_other_share_a_row_and_who_lags_has_one_of_his_own():
    bars = [*map(bar, (50, 51, 50, 49, 30, 41, 50, 50))]
    first, *rows = rows_of(bars)
    assert first == "8 workers on d1, d2 | 1:23 | 776 samples/s in all"
    assert rows_of(bars, 120)[1:] == [
        f"  workers 0-3, 5-7  Epoch 3 (4 of 4)  {'=' * 9}{'-' * 15}  41/100  97 samples/s each"
        "  0:24 left",
        f"  worker 4  Epoch 3 (4 of 4)  {'=' * 7}{'-' * 17}  30/100  97 samples/s  0:24 left"
        "  <- behind",
    ]
    assert rows[0] == "  workers 0-3, 5-7  Epoch 3 (4 of 4)  41/100  97 samples/s each  0:24 left"
    _, all_but_one, last = rows_of([*map(bar, (50, 50, 50))], slow=1)
    assert all_but_one.startswith("  workers 0, 2  Epoch 3")
    assert last.startswith("  worker 1  Epoch 3") and last.endswith("<- the others wait")
    _, before, ahead = rows_of([bar(99), bar(5, "Epoch 4 (5 of 5)")], 120)
    assert before.endswith("0:24 left  <- behind") and ahead.endswith("0:24 left")
    assert "left" not in rows_of([bar(100)])[1]
    assert len(rows_of([bar(10 * (n % 10)) for n in range(40)])) <= 10


def test_of_a_row_that_is_too_long_the_bar_goes_first_then_the_rate_then_what_is_in_brackets():
    shown = []
    for columns in range(120, 11, -1):
        row = rows_of([bar(50), bar(30)], columns)[1]
        assert len(row) <= columns
        shown += [row] * (row not in shown)
    first, last = "  worker 0  Epoch 3", "50/100  0:24 left"
    drawn = ["=" * half + "-" * half for half in (12, 8, 4)]
    assert shown[:7] == [
        *(f"{first} (4 of 4)  {bar}  50/100  97 samples/s  0:24 left" for bar in drawn),
        f"{first} (4 of 4)  50/100  97 samples/s  0:24 left",
        f"{first} (4 of 4)  {last}",
        f"{first}  {last}",
        f"{first}  50/100",
    ]
    assert {*" ".join(shown[7:]).split()} <= {*f"{first} ...".split()}  # whole words


@pytest.mark.parametrize("columns, wide", [(59, 8), (79, 24)])
def test_a_bar_keeps_its_width_while_the_numbers_beside_it_grow(columns, wide):
    progress, seen = Progress(2, began=0), set()
    for step in range(21):
        left = "?" if step < 3 else f"0{step % 3}:{20 * step % 60:02}, {9 * step} samples/s"
        text = f"Epoch 0 (1 of 1): {5 * step:3}%|##  | {step}/20 [00:01<{left}]"
        progress.take(0, text, "\r")
        progress.take(1, text, "\r")
        seen.add(sum(progress.rows(1, "=~|", columns)[1].count(sign) for sign in "=~"))
    assert seen == {wide}


def test_a_slow_bar_and_a_fast_one_have_the_same_unit():
    slow, fast = (rows_of([bar(5, rate=rate)])[1] for rate in ("4.00s/batch", "4.00batch/s"))
    assert "0.25 batch/s" in slow and "4.00 batch/s" in fast


def test_a_new_try_begins_its_rows_anew(tmp_path):
    progress = Progress(1, began=0)
    progress.take(0, bar(50), "\r")
    progress.begin(60, number=2)
    assert progress.rows(61, PLAIN_SIGNS) == ["1 worker | try 2 | 0:01"]


def test_a_line_is_broken_at_words_and_indented_below_its_text():
    text = "one two three four five six seven eight nine ten " + "x" * 50
    rows = wrapped("[worker 0] ", text, 40)
    assert rows == [
        "[worker 0] one two three four five six",
        "           seven eight nine ten",
        "           " + "x" * 50,  # is not cut: the terminal does that
    ]
    assert wrapped("[launch] │ ", "a " * 20, 20, "         │ ")[1] == "a a a a a a a a a a"
    assert wrapped("[worker 0] ", "Speed: 9\taccuracy=1", 31) == ["[worker 0] Speed: 9  accuracy=1"]
    assert wrapped("p ", "  File x y", 8) == ["p   File", "x y"]
    assert wrapped("p ", "", 8) == ["p "]


def test_the_last_lines_of_a_worker_are_said_again_only_if_others_stand_below_them(tmp_path):
    fail = "echo oh no >&2; touch said; until [ -e talked ]; do sleep 0.1; done; sleep 1; exit 3"
    talk = "until [ -e said ]; do sleep 0.1; done; sleep 1; "
    talk += "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; done; touch talked; sleep 60"
    job = on_terminal(tmp_path, shell(worker1=fail, worker0=talk), columns=60)
    lines = seen(job, 60).splitlines()
    first = next(n for n, line in enumerate(lines) if "✗" in line)
    assert [line for line in lines[first + 1 :] if "│" in line][-3:] == [
        "[launch] │ its last lines on standard error:",
        "[launch] │   oh no",
        f"[launch] │ {KEEPS_LOGS}",
    ]
    assert lines[-2:] == [
        "[launch] └ the job failed with status 3; worker 0 was",
        " " * 11 + "stopped",
    ]


def test_a_job_that_starts_again_says_which_try_it_is_and_counts_its_time_anew(tmp_path):
    fail = "echo up; printf 'Epoch 7:  12%%|#   | 3/24 [00:02<00:17]\\r' >&2; sleep 2.5; exit 3"
    act = f"[ $LAUNCH_ATTEMPT = 2 ] || {{ {fail}; }}; echo again; sleep 1.5"
    job = on_terminal(
        tmp_path,
        "--max-restarts",
        "1",
        "--min-uptime",
        "0",
        "-s",
        "0",
        shell(worker0=act, other="sleep 4"),
    )
    text = seen(job)
    first, second = job.written.split("restarting (try 2, 1 of 1")
    assert job.status == 0 and "ended well in" in text
    assert "worker 0  Epoch 7" in first and "Epoch 7" not in second
    assert re.search("2 workers · try 2 · 0:0[1-9]", second) and "2 workers · 0:0" in first
    clocks = [re.findall(r"· \d+:(\d\d)", shown) for shown in (first, second)]
    assert clocks[1][0] < clocks[0][-1]


def test_rows_are_drawn_while_workers_begin_and_end_their_bars():
    progress, is_over = Progress(50, began=0), threading.Event()

    def take():
        while not is_over.is_set():
            for rank in range(50):
                progress.take(rank, bar(rank), "\r")
            for rank in range(50):
                progress.take(rank, "  ", "\r")

    thread = threading.Thread(target=take)
    thread.start()
    try:
        assert all(progress.rows(1, PLAIN_SIGNS) for _ in range(1000))
    finally:
        is_over.set()
        thread.join()

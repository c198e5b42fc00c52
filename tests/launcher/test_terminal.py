"""What a job looks like on a terminal, and that nothing of it reaches a pipe."""

import re
import subprocess
import sys

import pytest
from screen import INTERRUPT, OnTerminal, Screen
from tqdm import tqdm

from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.job import Process
from gluon_launch.telling.bottom import PLAIN_SIGNS
from gluon_launch.telling.progress import Agreement, Progress
from launching import ROOT, shell

TIME_BUDGET_S = 40
LAUNCH = (sys.executable, ROOT / "tools" / "launch.py", "--no-check", "-n", "2")
SPEED = r"Epoch[0] Batch [20]\tSpeed: 404.5 samples/sec\taccuracy=0.5"
BARS = """
import os, sys, time
me = os.environ.get("LAUNCH_WORKER_ID")
if me is None: sys.exit()
print("Epoch[0] Batch [20]\\tSpeed: 404.50 samples/sec\\taccuracy=0.5", flush=True)
for done in range(0, 11):
    bar = f"Epoch 0: {10 * done:3}%|###       | {done}/10 [00:01<00:01,  9.00batch/s]"
    sys.stderr.write("\\r" + bar)
    sys.stderr.flush()
    time.sleep(0.1)
    if done == 5: print("long " * 2000, flush=True)
    if done == 7: time.sleep(1.5)  # longer than a part of a line waits for its end
sys.stderr.write("\\r" + " " * 70 + "\\r")
print("Epoch 0: Test_acc 0.75", flush=True)
print("after it", flush=True)
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
    assert ("worker 0  Epoch 0  " + "━" * 5) in job.written
    if columns == 80:
        assert "2 workers · 0:0" in job.written
        assert "5/10  9.00batch/s  00:01 left" in job.written
        assert "batch 20 · 809 samples/s" in job.written
    for sign in ("%|", "left", "━", "·"):
        assert sign not in text
    whole = re.sub(r"\s", "", text)  # lines are broken anywhere
    assert whole.count("long" * 2000) == 2 and whole.count("Speed:404.50") == 2
    assert re.search(r"\[worker[01]\]Epoch0:Test_acc0.75\(2workersagree\)", whole)
    assert whole.count("Test_acc") == 1 and whole.count("afterit") == 2
    assert re.search(r"\[launch\]✓2workersendedwellafter\d+s$", whole)


def test_a_failure_is_framed_and_what_our_own_stop_makes_shells_say_is_not_shown(tmp_path):
    act = shell(worker1="echo oh no >&2; exit 3", other="sh -c 'echo up; sleep 60; true'; true")
    job = on_terminal(tmp_path, act)
    lines = seen(job).splitlines()
    assert job.status == 3 and not [line for line in lines if "Terminated" in line]
    first = next(n for n, line in enumerate(lines) if "✗" in line)
    assert lines[first].startswith("[launch] ✗ worker 1 on localhost: ended with status 3, at ")
    assert lines[first + 1 :] == [
        "[launch] │ its last lines on standard error:",
        "[launch] │   oh no",
    ]
    assert "\x1b[31m✗\x1b[0m" in job.written and "\x1b[36m[worker 0]\x1b[0m up" in job.written


def test_ctrl_c_ends_what_is_drawn(tmp_path):
    act = "trap 'exit 75' TERM; echo up; while :; do sleep 0.1; done"
    job = on_terminal(tmp_path, shell(worker0=act, worker1=act))
    job.wait_for("0]\x1b[0m up")
    job.wait_for("1]\x1b[0m up")
    job.send(INTERRUPT)
    said = [line for line in seen(job).splitlines() if "[launch]" in line]
    assert job.status == 75
    assert re.fullmatch(
        r"\[launch\] ■ stopped by SIGINT after \d+ s: all workers saved on request", said[0]
    )
    assert said[1].startswith("[launch] │ hint: it stopped on request and has saved")


@pytest.mark.parametrize(
    "env, words",
    [({"TERM": "dumb"}, ()), ({}, ("--no-progress", "--color", "never"))],
    ids=["dumb", "by flags"],
)
def test_nothing_is_drawn_where_it_is_not_wanted(tmp_path, env, words):
    job = on_terminal(tmp_path, *words, "echo hi", env=env)
    assert "\x1b" not in job.finish() and job.status == 0
    assert "0:00" not in job.written and "[worker 0] hi\r\n" in job.written


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
    assert "\x1b[3" not in job.finish() and "0:00" in job.written


@pytest.mark.parametrize("form", [{}, {"unit": "batch"}, {"prefix": "Epoch 3"}])
def test_bars_of_tqdm_are_read(form):
    progress = Progress(2, began=0)
    bar = tqdm.format_meter(n=12, total=100, elapsed=10, ncols=80, **form)
    assert progress.take(1, bar, "\r") is None
    first, row = progress.rows(61, PLAIN_SIGNS)
    what = form.get("prefix", "") + "  " * ("prefix" in form)
    rate = f"1.20{form.get('unit', 'it')}/s"
    assert first == "2 workers | 1:01"
    assert row == f"  worker 1  {what}{'==':-<24}  12/100  {rate}  01:13 left"
    assert progress.take(1, bar, "") is None and progress.take(1, "", "\r") is None  # a slow bar
    assert progress.rows(61, PLAIN_SIGNS)[1] == row
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
    assert first == "4 workers | 0:03 | epoch 2, batch 40 | ~400 samples/s"
    assert rows == ["  worker 0  working", "  worker 1  working  <- the others wait"]


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

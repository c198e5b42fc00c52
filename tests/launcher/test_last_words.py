"""The cause of a failure is among the last words, whatever a process writes after it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gluon_launch.telling.last_words import MOST, LastWords
from gluon_launch.telling.report import LONGEST, shortened
from gluon_launch.telling.stacks import Stacks
from launching import launch

TIME_BUDGET_S = 20
CAUSES = ["  what():  Check failed: 1 == 2", "a.cc:3: f: Assertion `x == y' failed."]
IMPORTED = '  File "<frozen importlib._bootstrap>", line 690 in _load_unlocked'
SERVING = '  File "/x/mxnet/kvstore/kvstore_server.py", line 74 in run'
RAISED = [
    "Traceback (most recent call last):",
    '  File "/x/a.py", line 3, in <module>',
    '  File "/x/b.py", line 7, in f',
    '  File "/y/site-packages/mxnet/base.py", line 246, in check_call',
]
FROM_C = "mxnet.base.MXNetError: Traceback (most recent call last):"
OPENING = ["Fatal Python error: Aborted", "", "Thread 0x0f (most recent call first):"]


def shown(lines, stream="err", end="\n"):
    words = LastWords()
    for line in lines:
        words.take(stream, line, end)
    return words.worth_showing()[0]


frames = st.just(IMPORTED) | st.integers(1, 99).map(lambda n: f'  File "a.py", line {n} in f')
threads = st.lists(frames, max_size=30).map(lambda stack: [OPENING[2], *stack, ""])
dumps = st.lists(threads, max_size=9).map(lambda stacks: [line for each in stacks for line in each])


@given(st.sampled_from(CAUSES), dumps, st.lists(st.sampled_from(["", "a step", "[bt] (1) x"])))
def test_no_stack_and_no_output_hides_the_cause(cause, stacks, said):
    lines = [cause, *OPENING[:2], *stacks, "Extension modules: a, b", *said[:100]]
    last = shown(lines)
    assert cause in last and len(last) <= MOST
    assert not any("importlib" in line or "Extension" in line for line in last)


def test_no_output_hides_the_end_of_a_traceback():
    """A class need not be called an error, and the other stream may write in between."""
    words = LastWords()
    for line in ["Traceback (most recent call last):", '  File "a.py", line 1', "queue.Empty"]:
        words.take("out", "a step")
        words.take("err", line)
    for step in range(MOST):
        words.take("err", f"step {step}")
    assert words.worth_showing()[0][:2] == ["queue.Empty", "…"]


def test_a_progress_bar_counts_once_and_a_line_that_came_in_parts_too():
    words = LastWords()
    words.take("err", "no such record")
    for step in range(50):
        words.take("err", f"{step} of 50", "\r")
    for part in "...":
        words.take("err", part, "")
    assert words.worth_showing()[0] == ["no such record", "..."]


def test_a_message_on_standard_output_is_not_hidden_by_an_old_warning():
    words = LastWords()
    words.take("err", "a warning")
    words.take("out", "error: no such record")
    assert words.worth_showing() == (["a warning", "error: no such record"], False)


def test_of_a_long_line_both_ends_are_shown():
    line = shortened("Command '" + "x" * 900 + "' returned non-zero exit status 1.")
    assert len(line) == LONGEST and line.startswith("Command") and line.endswith("status 1.")


def readable(lines):
    stacks = Stacks()
    return [shown for line in lines for shown in stacks.take(line)]


def test_of_a_server_that_waits_nothing_is_worth_reading():
    stack = [*OPENING, SERVING, IMPORTED, '  File "a.py", line 1 in <module>', "  ..."]
    assert readable([*stack, "", "Extension modules: a"]) == []
    assert readable([*stack, "and then"]) == ["and then"]


def test_of_a_server_in_a_call_the_call_is_worth_reading():
    call = '  File "/x/mxnet/optimizer.py", line 3 in update'
    stack = [*OPENING, call, SERVING, IMPORTED, ""]
    assert readable(stack) == [OPENING[0], OPENING[2], call]


WAITING = """
import os, threading, time
ready = threading.Event()
def talk():
    while not ready.wait(0.5):
        print("starting")
if os.environ["DMLC_ROLE"] == "worker":
    threading.Thread(target=talk).start()
import {first}mxnet as mx
store = mx.kv.create("dist")
ready.set()
time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.parametrize("first", ["", "gluon_dist, "])  # MXNet's servers, and ours
def test_a_stall_shows_the_stacks_of_those_who_do_not_only_wait(tmp_path, first):
    (tmp_path / "p.py").write_text(WAITING.format(first=first))
    options = ("--no-check", "--stall-timeout", 10, "--job-dir", tmp_path / "logs")
    job = launch(tmp_path, "-n", 1, *options, "python", "p.py", cwd=tmp_path)
    assert job.status == 124
    assert 'p.py", line 12 in <module>' in job.text(), job.text()
    assert "[server" not in job.text() and "[scheduler" not in job.text()
    assert "most recent call first" in (tmp_path / "logs" / "server-0.log").read_text()


@pytest.mark.parametrize(
    "lines, status, cause",
    [
        (
            ["Traceback (most recent call last):", "  File x", "MyProblem: 3", "bye"],
            1,
            "MyProblem: 3",
        ),
        ([*RAISED, "MyProblem: 3", "bye"], 1, "MyProblem: 3 (b.py:7)"),
        ([*RAISED, FROM_C, '  File "a.cc", line 64', "Error: 3"], 1, "Error: 3 (b.py:7)"),
        ([*RAISED, "KeyError: 3", "Check failed: x"], -6, "Check failed: x"),
        (["step 1", "cannot open x"], 3, "cannot open x"),
        (["step 1", "a loss of 0.5"], -9, ""),
        (["step 1", "a loss of 0.5"], 137, ""),
        (["x.py: warning: slow"], 1, ""),
        (["OSError: tried again", *"123456"], -9, ""),
        ([], 1, ""),
    ],
)
def test_the_line_that_tells_why_a_process_ended(lines, status, cause):
    words = LastWords()
    for line in lines:
        words.take("err", line)
    line, place = words.cause(status)
    assert line + f" ({place})" * bool(place) == cause

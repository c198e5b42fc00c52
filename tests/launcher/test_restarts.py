"""After which failures a job is started again, and what is said about it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from gluon_launch.watching.restarts import AWAY_S, Counters, Decision, Ended, decide

TIME_BUDGET_S = 5

# A case says what is unlike this one: a worker of the first try failed after 100 s.
ENDED = {"kind": "failed", "status": 1, "asked": False, "ran_s": 100, "now_s": 1000}
OPTIONS = {"max_restarts": 2, "min_uptime": 30, "start_timeout": 600}

PORT = {"kind": "again", "ran_s": 1}  # another program took the port
HOST = {"kind": "away", "ran_s": None, "number": 2}  # a host cannot be reached
LATE = {"status": 75}  # the workers saved and ended, 100 s after the start
SOON = {"status": 75, "ran_s": 30}  # within min-uptime

ONE, TWO = (f"restarting (try {n + 1}, {n} of 2 restarts)" for n in (1, 2))
START = "starting again"
WAIT = "waiting for the host, up to 600 s"
EVER = "waiting for the host"
LAST = "not restarted: that was --max-restarts 2"
EARLY = "not restarted: it failed 30 s after its start, sooner than --min-uptime 30"
USAGE = "not restarted: with status 2 it says that its command line is wrong"
TWICE = "twice in a row it stopped within --min-uptime (30 s)"

COUNTED = {"number": 2, "restarts": 1}
AGAIN = {  # name: the case, what is said, the counters that change
    "it failed": ({}, ONE, COUNTED),
    "it failed twice": ({"number": 2, "restarts": 1}, TWO, {"number": 3, "restarts": 2}),
    "it failed just after min-uptime": ({"ran_s": 30.1}, ONE, COUNTED),
    "it failed at once, min-uptime is 0": ({"ran_s": 0.1, "min_uptime": 0}, ONE, COUNTED),
    "a time limit was over": ({"kind": "hanging", "status": 124}, ONE, COUNTED),
    "a host was lost while it ran": ({"kind": "away", "status": 255}, ONE, COUNTED),
    "it failed after a wait": ({"away_since": 400}, ONE, {**COUNTED, "away_since": None}),
    "the port was taken": (PORT, START, {"repeats": 1}),
    "the port was taken 3 times": ({**PORT, "repeats": 2}, START, {"repeats": 3}),
    "the port was taken 4 times": ({**PORT, "repeats": 3, "ran_s": 31}, ONE, COUNTED),
    "the port was taken, no restarts": ({**PORT, "max_restarts": 0}, START, {"repeats": 1}),
    "it saved": (LATE, ONE, COUNTED),
    "it saved soon": (SOON, ONE, {**COUNTED, "idle_stops": 1}),
    "it saved soon, then late": ({**LATE, "idle_stops": 1}, ONE, {**COUNTED, "idle_stops": 0}),
    "it saved soon, then failed": ({"idle_stops": 1}, ONE, {**COUNTED, "idle_stops": 0}),
    "a host is away": (HOST, WAIT, {"away_since": 1000}),
    "a host is away for 599 s": ({**HOST, "away_since": 401}, WAIT, {}),
    "a host is away since 0": ({**HOST, "away_since": 0, "now_s": 599}, WAIT, {}),
    "a host may be away for ever": ({**HOST, "away_since": 1, "start_timeout": 0}, EVER, {}),
}
ENDS = {  # name: the case, what is said
    "no restarts": ({"max_restarts": 0}, ""),
    "no restarts, a wrong command line": ({"max_restarts": 0, "status": 2}, ""),
    "no restarts, saved": ({"max_restarts": 0, "status": 75}, ""),
    "no restarts left": ({"restarts": 2}, LAST),
    "saved, no restarts left": ({**LATE, "restarts": 2}, LAST),
    "saved soon, no restarts left": ({**SOON, "restarts": 2}, LAST),
    "at min-uptime": ({"ran_s": 30}, EARLY),
    "before min-uptime": ({"ran_s": 3.6}, EARLY.replace("30 s", "4 s")),
    "a wrong command line": ({"status": 2}, USAGE),
    "a wrong command line, at once": ({"status": 2, "ran_s": 1}, USAGE),
    "the port was taken 4 times": ({**PORT, "repeats": 3}, EARLY.replace("30 s", "1 s")),
    "the port was taken 4 times, no restarts": ({**PORT, "repeats": 3, "max_restarts": 0}, ""),
    "saved twice within min-uptime": ({**SOON, "idle_stops": 1}, TWICE),
    "a host was never there": ({**HOST, "number": 1}, ""),
    "a host is away for 600 s": ({**HOST, "away_since": 400}, ""),
    "a host is not ready": ({**HOST, "kind": "failed"}, ""),
    "a signal asked for it": ({"kind": "asked", "asked": True, "status": 143}, ""),
    "a signal asked for it, saved": ({"kind": "asked", "asked": True, "status": 75}, ""),
    "a signal came after a failure": ({"asked": True}, ""),
    "a signal came after the port was taken": ({**PORT, "asked": True}, ""),
    "a signal came in the wait for a host": ({**HOST, "asked": True}, ""),
}


def decided(case):
    """The counters before a case, and the decision about it."""
    facts = {**ENDED, **OPTIONS, **case}
    ended = Ended(**{name: facts.pop(name) for name in ENDED})
    options = SimpleNamespace(**{name: facts.pop(name) for name in OPTIONS})
    before = Counters(**facts)
    return before, decide(ended, before, options)


@pytest.mark.parametrize("name", AGAIN)
def test_a_job_is_started_again_after_this(name):
    case, words, changes = AGAIN[name]
    before, decision = decided(case)
    pause_s = AWAY_S if words.startswith("waiting") else 0
    assert decision == Decision(True, words, replace(before, **changes), pause_s)


@pytest.mark.parametrize("name", ENDS)
def test_a_job_ends_for_good_after_this(name):
    case, words = ENDS[name]
    _, decision = decided(case)
    assert (decision.again, decision.words) == (False, words)

"""Run a job, and start it again after a failure where that makes sense."""

import signal
from dataclasses import dataclass, replace
from typing import Optional

from gluon_launch.job.statuses import SAVED, USAGE, counted, describe
from gluon_launch.telling.agreement import ERROR
from gluon_launch.telling.hints import HOW_TO_GO_ON
from gluon_launch.telling.report import command_to_go_on, explain, how_to_go_on, verdict
from gluon_launch.watching.attempt import Attempt
from gluon_launch.watching.outcome import Failure

REPEATS = 3  # of a start that did not work out: another program took the port
ALL_SAVED, NONE_SAVED = "all workers saved on request", "no worker saved on request"
KEEPS_LOGS = "hint: --job-dir DIR keeps all output"
AWAY_S = 2  # between two tries to reach a host


@dataclass(frozen=True)
class Ended:
    """What is known of a try that failed."""

    kind: str  # as of its `Failure`
    status: int
    asked: bool  # somebody wants the job to end
    ran_s: Optional[float]  # from the processes' start to the failure; None if none was started
    now_s: float  # the time of the decision, on any clock


@dataclass(frozen=True)
class Counters:
    """What was counted in the tries so far."""

    number: int = 1  # which try it is; a repeated start is the same try
    restarts: int = 0  # for `--max-restarts`
    repeats: int = 0  # of starts, because another program took the port
    idle_stops: int = 0  # after saving, within `--min-uptime`
    away_since: Optional[float] = None  # on the clock of `Ended.now_s`: a host has been waited for


@dataclass(frozen=True)
class Decision:
    """Whether the job is started again, and what is said about it."""

    again: bool
    words: str
    counters: Counters
    pause_s: float = 0  # before it is started again


def decide(ended, counters, options):
    """Decide whether the job is started again after an attempt that failed."""
    started = ended.ran_s is not None
    if started:
        counters = replace(counters, away_since=None)

    def stop(words=""):
        return Decision(False, words, counters)

    def again(words, pause_s=0, **changes):
        return Decision(True, words, replace(counters, **changes), pause_s)

    if ended.asked:
        return stop()
    if ended.kind == "again" and counters.repeats < REPEATS:
        return again("starting again", repeats=counters.repeats + 1)
    if not started:
        if ended.kind != "away" or counters.number == 1:
            return stop()
        limit = options.start_timeout
        since = ended.now_s if counters.away_since is None else counters.away_since
        if limit and ended.now_s - since >= limit:
            return stop()
        up_to = f", up to {limit:g} s" if limit else ""
        return again(f"waiting for the host{up_to}", AWAY_S, away_since=since)
    if not options.max_restarts:
        return stop()
    if ended.status == USAGE:
        return stop("not restarted: with status 2 it says that its command line is wrong")
    is_early = ended.ran_s <= options.min_uptime
    has_saved = ended.status == SAVED  # nobody asked us: the workers were asked, and want this
    idle_stops = counters.idle_stops + 1 if has_saved and is_early else 0
    if idle_stops == 2:
        return stop(f"twice in a row it stopped within --min-uptime ({options.min_uptime:g} s)")
    if is_early and not has_saved:
        sooner = f"sooner than --min-uptime {options.min_uptime:g}"
        return stop(f"not restarted: it failed {ended.ran_s:.0f} s after its start, {sooner}")
    if counters.restarts >= options.max_restarts:
        return stop(f"not restarted: that was --max-restarts {options.max_restarts}")
    number, restarts = counters.number + 1, counters.restarts + 1
    words = f"restarting (try {number}, {restarts} of {options.max_restarts} restarts)"
    return again(words, number=number, restarts=restarts, idle_stops=idle_stops)


def run_job(session):
    """Run a job to its end, with restarts; return what the launcher exits with."""
    job, console, record, world = session.job, session.console, session.record, session.world
    counters, prepare = Counters(), True
    while True:
        attempt = Attempt(session, counters.number, prepare)
        try:
            attempt.run()
            record.write(status=0, ended=world.time())
            console.end_progress()
            console.say(well_ended(job, attempt, world), sign="good")
            return 0
        except Failure as error:
            failure = error
        ran_s, is_asked = attempt.ran_s(), attempt.outcome.is_asked
        prepare = prepare and ran_s is None
        ended = Ended(failure.kind, failure.status, is_asked, ran_s, world.monotonic())
        decision = decide(ended, counters, job.options)
        if not decision.again:
            members = attempt.members.by_name.values()
            return conclude(session, failure, decision.words, members)
        counters = decision.counters
        console.say(f"{failure.subject()}: {decision.words}")
        number = pause(decision.pause_s, session.requests, world)
        if number:
            name = signal.Signals(number).name
            failure = Failure(f"stopped by {name}", 128 + number, kind="asked")
            return conclude(session, failure)


def well_ended(job, attempt, world):
    """Return the line that ends a job that went well."""
    if job.options.check:
        hosts = len(attempt.links.all())
        are = "are" if hosts > 1 else "is"
        return f"{counted(hosts, 'host')} {are} ready: leave out --check to start"
    seconds = world.monotonic() - job.began
    return f"{counted(job.count('worker'), 'worker')} ended well in {lasting(seconds)}"


def asked_after(job, members, world):
    """Return what follows "stopped by SIGINT": after how long, and whether the workers saved."""
    workers = [member for member in members if member.process.role == "worker"]
    saved = sum(member.status == SAVED for member in workers)
    words = f"{saved} of {len(workers)} workers saved on request" if saved else NONE_SAVED
    words = ALL_SAVED if saved == len(workers) else words
    saving = f": {words}" if workers else ""
    return f" after {lasting(world.monotonic() - job.began)}{saving}"


def lasting(seconds):
    """Return a time in words: `61 s`, `12 min 5 s`, `2 h 5 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def conclude(session, failure, words="", members=()):
    """Say and keep what ended the job; return its exit status."""
    job, record, world = session.job, session.record, session.world
    console, member = session.console, failure.member
    log = member and record.path(member.process)
    left_out = record.data.get("left_out")

    def told(repeats=True):
        text = explain(failure, job.way, log, left_out, members, repeats)
        if failure.kind == "asked":
            first, *others = text.split("\n")
            text = "\n".join([first + asked_after(job, members, world), *others])
        return text + (f"\n{words}" if words else "")

    record.write(status=failure.status, cause=told(), ended=world.time())
    console.end_progress()
    is_above = member and console.stand_above(member.process, member.said.worth_showing()[0])
    text, resuming = told(repeats=not is_above), ""
    if console.has_frames and failure.kind == "asked":
        text, resuming = at_terminal(text, members, record.folder, job.command)
    elif console.has_frames:
        cause, place = member.said.cause(member.status or 0) if is_above else ("", "")
        cause = ERROR.sub("", cause)
        is_first = bool(cause) and cause not in str(failure)
        if is_first:
            place = f" ({place})" if place else ""
            first = console.cut(f"{member.process} on {member.process.host}: {cause}", place)
            how = [str(failure)] * (str(failure) != describe(failure.status))
            text = "\n".join([first, *how, *text.split("\n")[1:]])
        elif "its last lines" in text and not log and failure.status != USAGE:
            text += f"\n{KEEPS_LOGS}"
        text += f"\n{verdict(failure, members, job.options.check, is_first)}"
    console.say(text, sign="asked" if failure.kind == "asked" else "bad")
    if resuming:
        console.command(resuming)
    return failure.status


def at_terminal(text, members, folder, command):
    """Return what is told of a stop that was asked for, to whoever sits at a terminal.

    With it comes the command line that resumes the job, "" if it is not known.
    """
    resuming, lines = "", text.replace("stopped by SIGINT", "stopped by Ctrl-C", 1).split("\n")
    last = [f"the logs are in {folder}"] if folder else []
    if lines[0].endswith(f": {NONE_SAVED}"):
        lines[0] = lines[0][: -len(f": {NONE_SAVED}")]
        last.insert(0, "nothing was saved on request")
    elif lines[0].endswith(f": {ALL_SAVED}"):
        lines = [line for line in lines if line != f"hint: {HOW_TO_GO_ON}"]
        said = how_to_go_on(members)
        resuming = command_to_go_on(said, command)
        last.append("to go on:" if resuming else said)
    closing = "; ".join(filter(None, last))
    return "\n".join([*lines, closing] if closing else lines), resuming


def pause(seconds, requests, world):
    """Wait; return early, with the signal, if one asks for the end."""
    end = world.monotonic() + seconds
    while True:
        while requests:
            number = requests.popleft()
            if number != signal.SIGUSR1:
                return number
        if world.monotonic() >= end:
            return None
        world.sleep(0.1)

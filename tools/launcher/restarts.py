"""Try, and try again where that makes sense."""

import signal
import time

from launcher.attempt import Attempt
from launcher.report import explain
from launcher.watch import SAVED, Failure

REPEATS = 3  # of a start that did not work out: somebody else took the port
USAGE = 2  # the exit status of a program whose command line is wrong
AWAY_S = 2  # between two tries to reach a host


def run_job(job, console, record, requests):
    """Run a job to its end, with restarts.

    Returns
    -------
    int
        What the launcher exits with.
    """
    options = job.options
    number, restarts, repeats, idle_stops = 1, 0, 0, 0
    prepare, away_since, declined = True, None, None
    while True:
        attempt = Attempt(job, console, record, requests, number, prepare)
        try:
            attempt.run()
            record.write(status=0, ended=time.time())
            return 0
        except Failure as error:
            failure = error
        started = attempt.running_since is not None
        prepare = prepare and not started
        ran_s = failure.at - attempt.running_since if started else 0
        again = None
        if started:
            away_since = None
        if attempt.asked:
            pass
        elif failure.kind == "again" and repeats < REPEATS:
            repeats += 1
            again = "starting again"
        elif not started and number > 1 and failure.kind == "away":
            away_since = away_since or time.monotonic()
            limit = options.start_timeout
            if not limit or time.monotonic() - away_since < limit:
                again = "waiting for the host" + (f", up to {limit:g} s" if limit else "")
        elif not started or not options.max_restarts:
            pass
        elif failure.status == SAVED:  # nobody asked us: the workers were asked, and want this
            idle_stops = 0 if ran_s > options.min_uptime else idle_stops + 1
            if idle_stops < 2:
                number += 1
                again = f"restarting (try {number})"
        elif failure.status == USAGE:
            declined = "not restarted: with status 2 it says that its command line is wrong"
        elif ran_s <= options.min_uptime:
            declined = (
                f"not restarted: it failed {ran_s:.0f} s after its start, sooner than "
                f"--min-uptime {options.min_uptime:g}"
            )
        elif restarts >= options.max_restarts:
            declined = f"not restarted: that was --max-restarts {options.max_restarts}"
        else:
            restarts, number = restarts + 1, number + 1
            again = f"restarting (try {number}, {restarts} of {options.max_restarts} restarts)"
        if again is None:
            break
        console.say(f"{failure.subject()}: {again}")
        request = pause(AWAY_S if away_since else 0, requests)
        if request:
            name = signal.Signals(request).name
            failure = Failure(f"stopped by {name}", 128 + request, kind="asked")
            break
    log = failure.member and record.path(failure.member.process)
    text = explain(failure, log)
    if idle_stops >= 2:
        text += f"\ntwice in a row it stopped within --min-uptime ({options.min_uptime:g} s)"
    if declined:
        text += f"\n{declined}"
    record.write(status=failure.status, cause=text, ended=time.time())
    console.say(text)
    return failure.status


def pause(seconds, requests):
    """Wait, unless a signal asks for the end; that signal."""
    end = time.monotonic() + seconds
    while True:
        while requests:
            number = requests.popleft()
            if number != signal.SIGUSR1:
                return number
        if time.monotonic() >= end:
            return None
        time.sleep(0.1)

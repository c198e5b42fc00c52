"""The last thing on the screen: what ended the job, and what to do about it."""

import re
import shlex
import sys
import time

from gluon_launch.job.advice import anything, fitting
from gluon_launch.job.statuses import SAVED
from gluon_launch.telling.hints import HINTS
from gluon_launch.telling.progress import workers

# a file or a module was not found, or could not be opened
MISSING = re.compile(r"(?i)no module named|no such file|not found|can(not|'t) open")
# What our own programs say of the command that resumes.
OPTION = re.compile(r"(--\S+) \S+(?= goes on from it$)")
SAME = "the same command goes on from it"
SCRIPT_END = re.compile(r"(?<=\.py)(?=\s|$)")
OF_SAVING = re.compile(r"(?i)\b(saved|resum|go(es)? on)")
LAST = 4  # lines of a worker that may tell what it has saved
LONGEST = 400  # characters shown of a line


def hint(text, status, knows=anything, hints=()):
    """Return advice on what to try, or None; `hints` are those of the way of starting."""
    for pattern, of_status, advice in (*hints, *HINTS):
        if of_status in (None, status) and (pattern is None or re.search(pattern, text)):
            fit = fitting(advice, knows)
            if fit:
                return fit
    return None


def shortened(line):
    """Return a line without its middle, if it is very long: the cause may stand at either end."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 100]} … {line[-97:]}"


def explain(failure, way, log=None, left_out=None, members=(), repeats=True):
    """Return the lines that end a job.

    `log` is where the output of the process that failed is kept; `left_out` says what was not
    copied to the hosts. Of all members one may have told the cause long before another one failed.
    With `repeats` the last lines of the process are among them.
    """
    lines = [str(failure)]
    member, said = failure.member, str(failure)
    if member:
        lines = [failure.subject() + _when_ended(member)]
        last, is_error = member.said.worth_showing()
        if last and repeats:
            where = " on standard error" if is_error else ""
            lines.append(f"its last lines{where}:")
            lines += [f"  {shortened(line)}" for line in last]
        said += "\n".join(last)
        if log:
            lines.append(f"its log: {log}")
    for other in members if failure.status != SAVED else ():
        lack = other.said.lack()
        if lack and lack not in said:
            lines.append(f"{other.process} on {other.process.host} wrote: {shortened(lack)}")
            said += f"\n{lack}"
            break
    advice = hint(said, failure.status, way.knows, way.hints)
    if advice:
        lines.append(f"hint: {advice}")
    if left_out and MISSING.search(said):
        lines.append(f"hint: {left_out}")
    return "\n".join(lines)


def _when_ended(member):
    """Return when a process ended, and after how long; "" if that is not known."""
    if not member.ended:
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(member.ended))
    return f", at {clock} after {member.ended - (member.started or member.ended):.1f} s"


def verdict(failure, members, is_check=False, tells_when=False):
    """Return what became of the job, in a line: the last one on a terminal."""
    status = f"status {failure.status}"
    if is_check:
        return f"not ready ({status}): nothing was started"
    if not members:
        return f"the job was not started ({status})"
    stopped = [
        member.process.rank
        for member in members
        if member.is_stopping
        and member.process.role == "worker"
        and member is not failure.member
        and not _failed_alike(member, failure.member)
    ]
    what = "stopped after saving, with" if failure.status == SAVED else "failed with"
    when = _when_ended(failure.member) if tells_when else ""
    also = f"; {workers(stopped)} {'were' if len(stopped) > 1 else 'was'} stopped"
    return f"the job {what} {status}{when}{also if stopped else ''}"


def _failed_alike(member, other):
    """Return whether a process ended by itself as another did, before a stop could reach it."""
    return bool(other and other.status) and other.status == member.status > 0


def how_to_go_on(members):
    """Return what the first worker said last about what it has saved; "" for nothing."""
    workers = [member for member in members if member.process.role == "worker"]
    first = min(workers, key=lambda member: member.process.rank)
    lines = first.said.last(LAST)  # behind it there may be a bar that was cut
    return next((shortened(line) for line in lines if OF_SAVING.search(line)), "")


def command_to_go_on(line, command):
    """Return the command line that resumes a job, as this launcher's was typed.

    `line` is what a worker said of it; "" if that is none of our programs' or if their option
    cannot be put into the command.
    """
    typed = getattr(sys, "orig_argv", [sys.executable, *sys.argv])
    own = typed[: len(typed) - len(command)]
    text = command[0] if len(command) == 1 else shlex.join(command)
    found = OPTION.search(line)
    if [*own, *command] != typed or not (found or line.endswith(SAME)):
        return ""
    if found and found[0] not in text:
        text, count = SCRIPT_END.subn(f" {found[0]}", text, 1)
        if not count or text.count(found[1]) > 1:
            return ""
    return f"{shlex.join(own)} {shlex.quote(text) if len(command) == 1 else text}"

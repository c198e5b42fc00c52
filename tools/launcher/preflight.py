"""Is every host ready? Asked of all at once, before anything is started."""

import json
import re
import shlex

from launcher import ssh
from launcher.connection import REMOTE
from launcher.watch import Failure

SOURCE = REMOTE / "hostcheck.py"
MIB = 1 << 20
COLUMNS = ("host", "ssh", "python", "mxnet", "command", "folder", "network")
FIX = {
    "mxnet": "`make setup` there, and name its .venv/bin/python in the command",
    "command": "give its full path, or put it on PATH for ssh without a login",
    "folder": "make it, or choose another with --sync-dst-dir",
    "network": "open the port between the hosts, or choose it with --port, --interface",
    "space": "make room there",
    "python": "run `launch.py --no-check …` to start without",
}


def first_program(command):
    """The program a command starts with, or "" if only a shell could tell."""
    if len(command) > 1:
        return command[0]
    try:
        words = shlex.split(command[0])
    except ValueError:
        return ""
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words.pop(0)
    return words[0] if words and re.fullmatch(r"[\w./+-]+", words[0]) else ""


def order(job, ready, address, copying):
    """The order to a supervisor that makes its host answer."""
    flags = "create" if copying else "-", "sh" if len(job.command) == 1 else "-"
    program = first_program(job.command)
    python = ready["executable"], "-I", "-"
    return {
        "name": "check",
        "command": [*python, job.directory, flags[0], program, flags[1], address],
        "env": job.env["worker"],
        "stdin": SOURCE.read_text(),
    }


def judge(lines, status, needed):
    """What a host answered: (its answer, a list of (column, what is wrong))."""
    try:
        answer = json.loads(lines[-1])
    except (ValueError, IndexError):
        last = lines[-1] if lines else f"status {status}"
        return {}, [("python", f"the check itself failed: {last}")]
    problems = [(column, why) for column, why in answer["wrong"].items() if why]
    free = answer.get("free")
    if needed and answer.get("empty") and free is not None and free < needed:
        problems.append(
            ("space", f"{free / MIB:.1f} MiB free, the copy needs {needed / MIB:.1f} MiB")
        )
    return answer, problems


def row(connection, answer, problems):
    """A host's line in the table."""
    wrong = {column for column, _ in problems}
    facts = {
        "host": connection.host,
        "ssh": "ok",
        "python": answer.get("python") or connection.ready["python"],
        "mxnet": answer.get("mxnet") or "not asked",
        "command": "ok" if answer.get("command") else "not asked",
        "folder": "no space" if "space" in wrong else f"{(answer.get('free') or 0) >> 30} GiB free",
    }
    return [facts.get(c, "ok") if c not in wrong else "FAILED" for c in COLUMNS]


def table(rows):
    """Rows of words under `COLUMNS`, aligned."""
    rows = [COLUMNS, *rows]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(str(word).ljust(width) for word, width in zip(row, widths)).rstrip()
        for row in rows
    )


def check(attempt, address):
    """Ask every host whether it is ready; a table if one is not, or if asked for.

    Parameters
    ----------
    attempt : Attempt
        Connected to all hosts.
    address : str
        Where the scheduler is going to listen.

    Raises
    ------
    Failure
        A line with a fix for all that is wrong.
    """
    job = attempt.job
    orders = {}
    for connection in attempt.connections.values():
        connection.answers = []
        fields = order(job, connection.ready, address, job.options.sync_dst_dir)
        orders[connection] = ("start", fields)
    ended = attempt.ask("exit", orders)
    needed = ssh.size_of_copy(job.source, job.options) if job.options.sync_dst_dir else 0
    rows, fixes = [], []
    for connection in orders:
        lines = [line for line in connection.answers if line]
        answer, problems = judge(lines, ended[connection]["status"], needed)
        attempt.record.host(connection.host, mxnet=answer.get("mxnet"))
        rows.append(row(connection, answer, problems))
        fixes += [f"{connection.host}: {why}: {FIX[column]}" for column, why in problems]
    if fixes or job.options.check:
        attempt.console.say(table(rows))
    if fixes:
        raise Failure("\n".join(fixes))

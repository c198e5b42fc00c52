"""Is every host ready? The question to each, and the judgement of its answer."""

import json
import re
import shlex
from dataclasses import dataclass
from typing import List, Optional

from gluon_launch.job.advice import anything, fitting
from gluon_launch.job.job import sets_variable
from gluon_launch.remote.bootstrap import REMOTE
from gluon_launch.telling.hints import FIX

SOURCE = REMOTE / "hostcheck.py"
MIB = 1 << 20
COLUMNS = ("host", "reached", "python", "mxnet", "gpus", "command", "folder", "network")
MOST_NAMED = 4  # hosts in a line
COPIED = "comes with the copy"


def first_program(command):
    """Return the program that a command starts with, or "" if only a shell can tell."""
    words = command
    if len(command) == 1:
        try:
            words = shlex.split(command[0])
        except ValueError:
            return ""
    while words and sets_variable(words[0]):
        if words[0].partition("=")[0].endswith("PATH"):
            return ""  # where the program is, or where it finds MXNet
        words = words[1:]
    is_plain = words and (len(command) > 1 or re.fullmatch(r"[\w./+-]+", words[0]))
    return words[0] if is_plain else ""


def question(job, ready, address, is_before_copy):
    """Return the check of a host, as fields of the order "start".

    `address` is where the scheduler is going to listen. With `is_before_copy` the folder need not
    be there; the command and its MXNet are then asked about only if there is no other time for it:
    with `--check`.
    """
    create = "create" if is_before_copy else "-"
    by_shell = "sh" if len(job.command) == 1 else "-"
    python = ready["executable"], "-I", "-"
    horovod = "horovod" if job.backend == "horovod" else "-"
    is_asked = job.options.check or not is_before_copy
    program = first_program(job.command) if is_asked else ""
    return {
        "name": "check",
        "plain": True,
        "command": [*python, job.directory, create, program, by_shell, address, horovod],
        "env": job.env["worker"],
        "stdin": SOURCE.read_text(encoding="utf-8"),
    }


@dataclass
class Finding:
    """What became known of one host."""

    mxnet: Optional[str]  # its version
    row: List[str]  # of the table, under `COLUMNS`
    fixes: List[str]  # for each thing that is wrong a line: where, what, and what to do
    host: str = ""
    gpus: Optional[int] = None
    cuda: Optional[bool] = None  # has its MXNet CUDA? Known where there are GPUs


def judge(host, ready, lines, status, needed, brought, knows=anything):
    """Judge what a host answered: the lines of the check and its exit status.

    `needed` bytes are going to be copied to an empty folder; `brought` are the files that the copy
    would bring, by their names in the folder.
    """
    lines = [line for line in lines if line]
    answers = [line for line in lines if line.startswith('{"wrong"')]  # others are warnings
    if answers:
        answer = json.loads(answers[-1])
        wrong = {column: why for column, why in answer["wrong"].items() if why}
    else:
        last = lines[-1] if lines else f"status {status}"
        answer, wrong = {}, {"python": f"the check itself failed: {last}"}
    has_mxnet = "mxnet/__init__.py" in brought and bool(answer.get("python"))
    if has_mxnet and "No module named 'mxnet'" in wrong.get("mxnet", ""):
        del wrong["mxnet"]
    free, gpus = answer.get("free"), answer.get("gpus")
    if needed and answer.get("empty") and free is not None and free < needed:
        wrong["space"] = f"{free / MIB:.1f} MiB free, the copy needs {needed / MIB:.1f} MiB"
    facts = {
        "host": str(host),
        "python": answer.get("python") or ready["python"],
        "mxnet": COPIED if has_mxnet else answer.get("mxnet") or "not asked",
        "gpus": "not asked" if gpus is None else str(gpus),
        "command": "ok" if answer.get("command") else "not asked",
        "folder": "no space" if "space" in wrong else f"{(free or 0) >> 30} GiB free",
    }
    if answer.get("inside") in brought:
        facts["command"] = COPIED
    row = ["FAILED" if column in wrong else facts.get(column, "ok") for column in COLUMNS]
    advice = {**FIX, "command": FIX["login"]} if answer.get("login") else FIX
    fixes = [f"{host}: {why}: {fitting(advice[column], knows)}" for column, why in wrong.items()]
    return Finding(answer.get("mxnet"), row, fixes, str(host), gpus, answer.get("cuda"))


def about_gpus(findings):
    """Return lines on hosts that differ in their GPUs, and on those whose MXNet cannot use them."""
    by_count = {}
    for found in findings:
        if found.gpus is not None:
            by_count.setdefault(found.gpus, []).append(found.host)
    lines = []
    if len(by_count) > 1:
        counts = [f"{n or 'none'} on {few(hosts)}" for n, hosts in sorted(by_count.items())[::-1]]
        lines.append(f"the hosts differ in GPUs: {'; '.join(counts)}")
    without = [found.host for found in findings if found.gpus and found.cuda is False]
    if without:
        what = "have GPUs, but their" if len(without) > 1 else "has GPUs, but its"
        lines.append(f"{few(without)} {what} MXNet has no CUDA: `make setup DEVICE=gpu` there")
    return lines


def few(hosts):
    """Return names of hosts; of many the first, and how many more."""
    more = len(hosts) - MOST_NAMED
    return ", ".join(hosts[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def table(rows, launcher, room=None):
    """Return rows of words under `COLUMNS`, aligned; `launcher` is what reached the hosts.

    They are closer to each other where there is not room for so many columns of a terminal.
    """
    rows = [[launcher if column == "reached" else column for column in COLUMNS], *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    gap = " " if room and sum(widths) + 2 * (len(widths) - 1) > room else "  "
    return "\n".join(
        gap.join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows
    )

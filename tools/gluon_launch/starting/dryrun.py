"""A script that runs a job by hand, host by host; no host is touched."""

import ast
import inspect
import os
import re
import shlex

from gluon_dist import contract

from gluon_launch.job.addresses import announced_address
from gluon_launch.job.environment import process_environment, threads
from gluon_launch.job.hosts import LOCAL
from gluon_launch.job.masking import ABOUT_HIDDEN, mask_words, untold
from gluon_launch.remote import host as facts
from gluon_launch.remote.host import interface_of, processors
from gluon_launch.starting import brought, contents, rsync

NOT_BROUGHT = "# By hand, MXNet stays as it is where a program does not import gluon_dist."
PORT = 9091  # of the scheduler, without --port
HERE_END = "END_OF_THIS_HOST"
# What only the host itself knows, found there by the launcher's own functions and printed as
# assignments; at_N is the address that a server or worker of rank N announces.
OWN = """
print(f"own={own} threads={threads(processors(), int(workers))}")
for rank in range(int(ranks)):
    print(f"at_{rank}={announced_address(own, rank)}")
"""


def describe_job(job):
    """Return the script: a block for each host, to paste there, or to run here for a local job."""
    lines = ["# The same by hand, in bash."]
    words = [*job.argv, *job.options.launcher_option]
    if mask_words(words) != words:
        lines.append(ABOUT_HIDDEN)
    lines += job.way.asks(job)
    if not job.options.no_prepare and job.way.inherited() is None:
        lines.append(NOT_BROUGHT)
    hosts = list(dict.fromkeys(job.hosts))
    if job.target:
        left_out = contents.look(job.source, job.options).left_out()
        lines += ["# Copy the folder, here:", *([f"# {left_out}"] if left_out else [])]
        lines += [_quoted(rsync.copy_argv(host, job)) for host in hosts]
    by_command = {host: job.way.reach(host, job, ["bash", "-s"]) for host in hosts}
    is_script = any(by_command.values())  # else each block is pasted on its host
    if is_script and len(hosts) > 1:
        asked = job.way.reach(hosts[0], job, [*_ask(job), hosts[1].name])
        lines += [f"facts=$({_quoted(mask_words(asked))})", 'eval "$facts"', "root=$own"]
    for host in hosts:
        processes = [process for process in job.processes if process.host == host]
        lines.append(f"# {host}: {', '.join(map(str, processes))}")
        login = job.way.login(host, job)
        if login:
            lines.append("# log in: " + _quoted(login).replace("\n", " "))
        block = _block(job, host, processes)
        if is_script:
            argv = _quoted(mask_words(by_command[host]))
            values = " ".join(_hidden(job, processes))  # they travel over standard input
            before = f"{{ declare -p {values}; cat; }}" if values else "cat"
            start = f"{before} <<'{HERE_END}' | {argv} \"${{root-}}\" &"
            block = [start, "root=$1", *block, HERE_END]
        lines += block
    return "\n".join(lines + ["wait"] * is_script)


def _block(job, host, processes):
    """Return the block of one host. Ctrl-C ends what it starts."""
    env = job.way.inherited() or {}
    is_absolute = os.path.isabs(job.directory)  # else it is in the home there
    return [
        "(",
        "set -e",
        "trap 'kill $(jobs -p); wait' INT TERM",
        *(
            f': "${{{name}?set it first, its value is not shown}}"'
            for name in _hidden(job, processes)
        ),
        *([] if is_here(job) else _facts(job, host, processes)),
        "unset PORT",  # MXNet would take it for its own
        *([f"export PATH={_quote(env['PATH'])}"] if "PATH" in env else []),
        *(_prepare() if env and not job.options.no_prepare else []),
        "cd " + ("" if is_absolute else "~/") + _quote(job.directory),
        *_start(job, processes),
        *_wait(job, host),
        ")",
    ]


def _prepare():
    """Return the line that makes every Python import `startup/sitecustomize.py` first."""
    startup = _quote(str(brought.STARTUP))
    return [f'export PYTHONPATH={startup}"${{PYTHONPATH:+:$PYTHONPATH}}"']


def _wait(job, host):
    """Return lines that wait for the workers; Horovod's rendezvous does not end by itself."""
    if job.backend == "ps-lite" or host != job.hosts[0]:
        return ["wait"]
    return [
        "trap 'kill \"$rendezvous\" 2>/dev/null || :; wait' EXIT",
        'wait $(jobs -p | grep -vx "$rendezvous")',
    ]


def _hidden(job, processes):
    """Return the variables of these processes whose values are not shown."""
    return sorted({name for p in processes for name in untold(job, p.role)})


def is_here(job):
    """Return whether the whole job runs on this machine."""
    return job.hosts == [LOCAL]


def _facts(job, host, processes):
    """Return lines that set $root, the scheduler's address, and what only the host knows."""
    first = job.hosts[0]
    wanted = job.way.wanted(first, job) if job.way.login(first, job) else ""
    root = f': "${{root:?set it first: the IPv4 address of {first}}}"'
    if len(set(job.hosts)) == 1 and not job.interface:
        root = "root=127.0.0.1"
    elif re.fullmatch(r"[0-9]+(\.[0-9]+){3}", wanted) and not job.interface:
        root = f"root={wanted}"
    ranks = 1 + max(process.rank for process in processes)
    asked = _quoted(_ask(job, job.count("worker", host), ranks))
    why = "# What only this host knows: its address, and its processors as threads of a worker."
    return [root, why, f'facts=$({asked} "$root")', 'eval "$facts"']


def _ask(job, workers=1, ranks=0):
    """Return the command that prints a host's facts, without its last word, the host to reach."""
    functions = [processors, threads, announced_address, facts.address_toward]
    program = ["workers, ranks, names, toward = sys.argv[1:]", "own = address_toward(toward)"]
    if job.interface:
        functions += [facts.address_of, facts.own_address]
        program[1] = "own = own_address(toward, names)"
    if job.backend == "horovod":
        functions += [] if job.interface else [facts.address_of]
        functions += [facts.interfaces, interface_of]
        program.append('print(f"interface={interface_of(own)}")')
    imports = "import fcntl, os, socket, struct, sys"
    program = "\n".join([imports, *map(_source, functions), *program, OWN.strip()])
    return ["python3", "-c", program, str(workers), str(ranks), job.interface or ""]


def _source(function):
    """Return the source of a function, without its docstring."""
    lines = inspect.getsource(function).splitlines()
    (definition,) = ast.parse("\n".join(lines)).body
    doc = definition.body[0]
    return "\n".join(lines[: doc.lineno - 1] + lines[doc.end_lineno :])


def _start(job, processes):
    """Return the lines that start the processes of a host; common variables come first."""
    given = [_variables(job, process) for process in processes]
    shared = set.intersection(*map(set, given)) if len(given) > 1 else set()
    lines = [_folded("export", *sorted(shared))] if shared else []
    for process, assigned in zip(processes, given):
        own = sorted(set(assigned) - shared)
        start = _folded(*own, _quoted(mask_words(job.argv))) + " &"
        is_rendezvous = process.role == "scheduler" and job.backend == "horovod"
        lines += [f"# {process}", start, *(["rendezvous=$!"] if is_rendezvous else [])]
    return lines


def _folded(*words):
    """Return the words as a command of bash, folded at 100 characters."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 97:
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n".join(lines)


def _variables(job, process):
    """Return the environment of a process as assignments in bash."""
    loopback, known = "127.0.0.1", is_here(job)
    place = loopback, job.options.port or PORT, loopback, processors()
    env = process_environment(job, process, *place, 1, interface=interface_of(loopback))
    hidden = untold(job, process.role)
    words = {n: f'"${n}"' if n in hidden else _quote(value) for n, value in env.items()}
    if not known:
        shell = {contract.ROOT_HOST: "root", "DMLC_NODE_HOST": f"at_{process.rank}"}
        if process.role == "scheduler":
            shell["DMLC_NODE_HOST"] = "root"
        if contract.RANK in words and job.backend == "horovod":
            shell.update(HOROVOD_GLOO_RENDEZVOUS_ADDR="root", HOROVOD_GLOO_IFACE="interface")
        if "OMP_NUM_THREADS" not in job.env[process.role]:
            shell["OMP_NUM_THREADS"] = "threads"
        words.update((name, f'"${variable}"') for name, variable in shell.items())
    return [f"{name}={word}" for name, word in words.items()]


def _quoted(words):
    return " ".join(map(_quote, words))


def _quote(word):
    """Return a word quoted for bash; control characters stand as $'\\011'."""
    if word.replace("\n", "").isprintable():
        return shlex.quote(word)
    plain = set(range(32, 127)) - set(b"\\'")
    return "$'" + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in os.fsencode(word)) + "'"

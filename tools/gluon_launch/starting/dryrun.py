"""A script that runs a job by hand, host by host; no host is touched."""

import os
import re
import shlex

from gluon_launch.job.environment import process_environment
from gluon_launch.job.masking import ABOUT_HIDDEN, mask_words, untold
from gluon_launch.starting import brought, contents, rsync, ssh

NOT_BROUGHT = "# By hand, MXNet stays as it is where a program does not import gluon_dist."
PORT = 9091  # of the scheduler, without --port
# The address of a host that routes to the scheduler's, or that of an interface. It is announced in
# octal: see addresses.py.
TOWARD = """import socket, sys
probe = socket.socket(type=socket.SOCK_DGRAM)
probe.connect((sys.argv[1], 9))
print(probe.getsockname()[0])"""
TOWARD_ROOT = f"python3 -c '{TOWARD}' \"$root\""
OF_INTERFACE = (
    "for i in {}; do ip -4 -o addr show dev $i; done 2>/dev/null"
    r" | sed -n '1s/.* inet \([0-9.]*\).*/\1/p'"
)
HERE_END = "END_OF_THIS_HOST"
INTERFACE = (
    'interface=$(ip -4 -o addr | awk -v own="$own" \'index($4, own "/") == 1 { print $2 }\')'
)
OCTAL = "printf '0%o.0%o.0%o.0%o' $(echo \"$own\" | tr . ' ')"


def describe_job(job):
    """The script: a block for each host, to be pasted there, or run here for a local job.

    Returns
    -------
    str
    """
    lines = ["# The same by hand, in bash."]
    if mask_words(job.argv) != job.argv:
        lines.append(ABOUT_HIDDEN)
    lines += job.way.asks(job)
    if not job.options.no_prepare and job.way.inherited() is None:
        lines.append(NOT_BROUGHT)
    hosts = list(dict.fromkeys(job.hosts))
    is_alone = len(hosts) == 1 and not job.interface
    addresses = [] if is_alone else _addresses(job)
    if job.target:
        left_out = contents.look(job.source, job.options).left_out()
        lines += ["# Copy the folder, here:", *([f"# {left_out}"] if left_out else [])]
        lines += [_quoted(rsync.copy_argv(host, job)) for host in hosts]
    by_command = {host: job.way.reach(host, job, ["bash", "-s"]) for host in hosts}
    is_script = any(by_command.values())  # else each block is pasted on its host
    if is_script and addresses:
        lines.append(f"root=$({_root_from_here(job)})")
    for host in hosts:
        processes = [process for process in job.processes if process.host == host]
        lines.append(f"# {host}: {', '.join(map(str, processes))}")
        login = job.way.login(host, job)
        if login:
            lines.append("# log in: " + _quoted(login).replace("\n", " "))
        block = _block(job, host, processes, addresses)
        if is_script:
            argv = _quoted(by_command[host])
            values = " ".join(_hidden(job, processes))  # they travel over standard input
            before = f"{{ declare -p {values}; cat; }}" if values else "cat"
            start = f"{before} <<'{HERE_END}' | {argv} \"${{root-}}\" &"
            block = [start, "root=$1", *block, HERE_END]
        lines += block
    return "\n".join(lines + ["wait"] * is_script)


def _root_from_here(job):
    """A command that prints the address of the first host."""
    interface = job.interface
    if interface:
        how = ["sh", "-c", OF_INTERFACE.format(_names(interface))]
    else:
        other = next(host for host in job.hosts if host != job.hosts[0])
        how = ["python3", "-c", TOWARD, other.name]
    return _quoted(job.way.reach(job.hosts[0], job, how))


def _block(job, host, processes, addresses):
    """What runs on one host. Ctrl-C ends it."""
    env = job.way.inherited() or {}
    workers = max(1, job.count("worker", host))
    is_absolute = os.path.isabs(job.directory)  # else it is in the home there
    return [
        "(",
        "set -e",
        "trap 'kill $(jobs -p); wait' INT TERM",
        *(
            f': "${{{name}?set it first, its value is not shown}}"'
            for name in _hidden(job, processes)
        ),
        *addresses,
        "unset PORT",  # MXNet would take it for its own
        *([f"export PATH={_quote(env['PATH'])}"] if "PATH" in env else []),
        *(_prepare() if env and not job.options.no_prepare else []),
        "cd " + ("" if is_absolute else "~/") + _quote(job.directory),
        f"threads=$(( $(nproc) > {workers} ? $(nproc) / {workers} : 1 ))",
        *(_start(job, process, not addresses) for process in processes),
        *_wait(job, host),
        ")",
    ]


def _prepare():
    """The line that lets every Python import `startup/sitecustomize.py` first."""
    startup = _quote(str(brought.STARTUP))
    return [f'export PYTHONPATH={startup}"${{PYTHONPATH:+:$PYTHONPATH}}"']


def _wait(job, host):
    """Lines that wait for the end; Horovod's rendezvous does not see it."""
    if job.backend == "ps-lite" or host != job.hosts[0]:
        return ["wait"]
    return [
        "trap 'kill \"$rendezvous\" 2>/dev/null || :; wait' EXIT",
        'wait $(jobs -p | grep -vx "$rendezvous")',
    ]


def _hidden(job, processes):
    """The variables of these processes whose values are not shown."""
    return sorted({name for p in processes for name in untold(job, p.role)})


def _addresses(job):
    """Lines that set $root, the address of the scheduler, and $octal, that of this host."""
    first, interface = job.hosts[0], job.interface
    login = job.way.login(first, job)
    root = _known_address(login) if login and not interface else None
    return [
        f"root={root}" if root else f': "${{root:?set it first: the IPv4 address of {first}}}"',
        f"own=$({OF_INTERFACE.format(_names(interface)) if interface else TOWARD_ROOT})",
        f"octal=$({OCTAL})",
        *([INTERFACE] if job.backend == "horovod" else []),
    ]


def _names(interfaces):
    return _quoted(interfaces.split(","))


def _known_address(login):
    """The IPv4 address of a host that was given as one, here or in ssh's configuration, or None."""
    *words, _, name = login  # a -- before the name
    address = ssh.settings(tuple(words[1:]), name).get("hostname", "")
    return address if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", address) else None


def _start(job, process, is_alone):
    """The line that starts a process, with its environment."""
    loopback = "127.0.0.1"
    place = loopback, job.options.port or PORT, loopback
    env = process_environment(job, process, *place, 1, 1, interface="lo")
    hidden = untold(job, process.role)
    words = {n: f'"${n}"' if n in hidden else _quote(value) for n, value in env.items()}
    if "OMP_NUM_THREADS" not in job.env[process.role]:
        words["OMP_NUM_THREADS"] = "$threads"
    if not is_alone:
        words["DMLC_PS_ROOT_URI"] = words["DMLC_NODE_HOST"] = '"$root"'
        if process.role != "scheduler":
            words["DMLC_NODE_HOST"] = f'"{"0" * process.rank}$octal"'
        if "HOROVOD_RANK" in words:
            words["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = '"$root"'
            words["HOROVOD_GLOO_IFACE"] = '"$interface"'
    assigned = " ".join(f"{name}={word}" for name, word in sorted(words.items()))
    start = f"# {process}\n{assigned} \\\n  {_quoted(mask_words(job.argv))} &"
    is_rendezvous = process.role == "scheduler" and job.backend == "horovod"
    return f"{start}\nrendezvous=$!" if is_rendezvous else start


def _quoted(words):
    return " ".join(map(_quote, words))


def _quote(word):
    """A word for bash; characters that a terminal does not take as they are stand as $'\\011'."""
    if word.replace("\n", "").isprintable():
        return shlex.quote(word)
    plain = set(range(32, 127)) - set(b"\\'")
    return "$'" + "".join(chr(b) if b in plain else f"\\{b:03o}" for b in os.fsencode(word)) + "'"

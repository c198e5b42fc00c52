"""From the command line to a job: what is to run where, and how it is started."""

import os
import re
import shlex

from gluon_launch.job.job import Job, distribute
from gluon_launch.job.statuses import UsageError, counted
from gluon_launch.job.variables import passed
from gluon_launch.starting import allocation, contents
from gluon_launch.starting.ways import PARTICULAR, WAYS

MOST = 1 << 20  # characters of a script that are read


def plan(args, environ=os.environ):
    """Plan the job of a parsed command line. Nothing is started or written.

    Raises
    ------
    UsageError
        The job cannot be run so; one line says why.
    """
    allocation.check_alone(environ)
    command = find_command(args)
    way = find_way(args)
    num_servers = count_servers(args, command)
    check_ssh_options(args)
    target = find_target(args)
    if args.check and args.no_check:
        raise UsageError("--check and --no-check contradict each other")
    source = way.folder(args)
    if target:
        args.sync_exclude = [*args.sync_exclude, *contents.copy_itself(source, target)]
    hosts = way.find_hosts(args, environ)
    processes = distribute(args.num_workers, num_servers, hosts, args.placement)
    env = passed(args, environ, way.knows)
    check_shown(args.show, processes)
    interface = find_interface(args, way, env)
    is_to_submit = way.submits(environ)
    job = Job(command, hosts, processes, source, target, args, way, env, interface, is_to_submit)
    way.settle(job, environ)
    return job


def find_command(args):
    """Return the command, without the `--` that may stand in front of it."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if args.check and not command:
        return ["python"]
    if not command:
        raise UsageError("no command to run: it stands after the options")
    if not command[0].strip():
        raise UsageError("the command begins with an empty word: is a variable not set?")
    return command


def find_way(args):
    """Return the way of starting, if there is such a one and it knows the given options."""
    name = args.launcher or ("ssh" if args.hostfile else "local")
    if name not in WAYS:
        raise UsageError(f"--launcher {name}: available are {', '.join(WAYS)}")
    for option in PARTICULAR:
        if getattr(args, option) and option not in WAYS[name].options:
            knowing = ", ".join(other for other, way in WAYS.items() if option in way.options)
            flag = "--" + option.replace("_", "-")
            raise UsageError(f"{flag} is for --launcher {knowing}, not {name}")
    for option in args.launcher_option:
        if not option.startswith("-"):
            programs = " and ".join(WAYS[name].programs)
            raise UsageError(f"--launcher-option {option!r}: those of {programs} begin with a dash")
        why = WAYS[name].refusal(option)
        if why:
            raise UsageError(f"--launcher-option={option}: {why}")
    return WAYS[name]


def count_servers(args, command):
    """Return how many servers: as many as workers, if nobody said, and none for Horovod."""
    num_servers = args.num_servers
    if num_servers is None:
        num_servers = 0 if imports_horovod(command) else args.num_workers
    if args.p3 and not num_servers:
        raise UsageError("--p3 is about servers: leave it out with -s 0")
    if num_servers > max(16, 4 * args.num_workers):
        workers = counted(args.num_workers, "worker")
        raise UsageError(f"-s {num_servers}: for {workers} that is too many")
    return num_servers


def imports_horovod(command):
    """Return whether the command is a Python script here that imports Horovod at its top level.

    Not within a `try` or an `if`: such a program may do without.
    """
    try:
        words = command if len(command) > 1 else shlex.split(command[0])
        script = next(word for word in words if word.endswith(".py"))
        with open(script, encoding="utf-8", errors="replace") as file:
            return bool(re.search(r"^(import|from) horovod\b", file.read(MOST), re.MULTILINE))
    except (StopIteration, ValueError, OSError):
        return False


def check_ssh_options(args):
    """Refuse what is no option, and options that turn off the check of host keys."""
    for option in args.ssh_option:
        if not option.startswith("-"):
            raise UsageError(
                f"--ssh-option {option!r}: an option of ssh's, as in --ssh-option=-Ffile"
            )
        if re.search("(?i)stricthostkeychecking[ =]*(no|off)", option):
            raise UsageError("--ssh-option: host keys are always checked; new hosts are accepted")


def find_target(args):
    """Return the folder of `--sync-dst-dir`, relative to the home there, or None."""
    target = args.sync_dst_dir and re.sub("^~(/+|$)", "", args.sync_dst_dir)
    if target is not None and re.fullmatch("[/ ]*|~.*", target):
        raise UsageError(f"--sync-dst-dir {target!r}: name a folder")
    return target


def find_interface(args, way, env):
    """Return the network to use: that of `--interface`, else of MXNet's own variable, or None."""
    if "interface" not in way.options:  # all is on this machine
        return None
    for given in (args.interface, env["worker"].get("DMLC_INTERFACE")):
        if given and given.strip(", "):
            return ",".join(given.replace(",", " ").split())
    return None


def check_shown(show, processes):
    """Raise a `UsageError` if a process that `--show` names is not there."""
    for role, rank in show or ():
        last = max((process.rank for process in processes if process.role == role), default=None)
        if last is None:
            raise UsageError(f"--show {role}: there is none with -s 0")
        if rank is not None and rank > last:
            raise UsageError(f"--show {role}:{rank}: the last is {role}:{last}")

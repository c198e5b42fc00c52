"""YARN: ask for a container a worker, in which supervisors call the launcher back.

Hadoop's own DistributedShell asks for the containers (`application.py`). It runs one command in all
of them, in containers of one size, so each holds a worker and its servers. Which container holds
which is settled here, when they have come.
"""

import math
import os
import re
import shlex
import signal
import sys
from dataclasses import dataclass, field

from gluon_launch.job.hosts import Host
from gluon_launch.job.statuses import UsageError
from gluon_launch.job.values import Flag, count, given, memory
from gluon_launch.starting.application import CLIENT, SCRIPT, Application
from gluon_launch.starting.way import Way, own_words

RELAY = os.path.join(os.path.dirname(__file__), "relay.py")
MASTER_MB = 128
FLAGS = (
    Flag("--queue", given, None, "NAME", "queue of YARN; default: default"),
    Flag("--jobname", given, None, "NAME", "name of the application; default: launch"),
    Flag("--worker-memory", memory, None, "SIZE", "of a worker: 2g, 512m; default 1g"),
    Flag("--server-memory", memory, None, "SIZE", "of a server; default 1g"),
    Flag("--worker-cores", count, None, "N", "of a worker; default 1"),
    Flag("--server-cores", count, None, "N", "of a server; default 1"),
    Flag("--files", given, [], "FILES", "bring these to the folder of the command: a.py,b.py#name"),
    Flag("--archives", given, [], "FILES", "bring these there, and unpack them: data.zip,x.tar.gz"),
)  # fmt: skip
REFUSED_FILES = "--files and --archives bring files"


@dataclass
class Request:
    """What is asked for."""

    name: str
    count: int
    memory: int  # of one container, in MB
    cores: int
    words: list
    files: list = field(default_factory=list)  # paths of what the containers get
    archives: list = field(default_factory=list)  # names of those to unpack
    links: dict = field(default_factory=dict)  # by the name of a link that of its file

    def argv(self, jar, script):
        """Return the command that asks YARN."""
        return [
            *("yarn", "jar", jar, CLIENT, "-jar", jar),
            *("-appname", self.name, "-timeout", "0", "-num_containers", str(self.count)),
            *("-container_memory", str(self.memory), "-container_vcores", str(self.cores)),
            *("-master_memory", str(MASTER_MB), "-shell_command", f"exec python3 -I {SCRIPT}"),
            *("-localize_files", ",".join([script, *self.files])),
            *self.words,
        ]


ABOUT = """\
  --launcher yarn   Hadoop's DistributedShell is asked for a container a worker, which also holds
    its servers; from there the launcher is called back. It ends with this launcher, like ssh. The
    nodes share this folder, or get --files and --archives. Options as dmlc-submit has them:
    --queue, --worker-memory and so on; --launcher-option is for DistributedShell.
"""


class Yarn(Way):
    """See `Way`."""

    name = "yarn"
    about = ABOUT
    programs = ("yarn",)
    flags = FLAGS
    options = ("interface", "launcher_option", *(flag.option for flag in FLAGS))
    refused = {  # noqa: RUF012
        "--?shell_(command|script|args)": "the command stands at the end",
        "--?shell_env": "it would stand on a command line: --env NAME passes a variable",
        "--?num_containers|--?placement_spec": "the launcher's own -n counts the containers",
        "--?(jar|help|debug|timeout)": "the launcher itself gives it, or has an option for it",
        "--?localize_files": REFUSED_FILES,
        "--?appname": "--jobname names the job",
        "--?queue": "--queue names it",
        "--?container_(memory|vcores)": "see --worker-memory, --worker-cores and those of servers",
        "--?(container_(max_)?retr|keep_)": "--max-restarts starts a job again",
    }

    def find_hosts(self, options, environ):
        """Return a container for each worker; their hosts are known once they call back."""
        return [Host(f"container-{i + 1}") for i in range(options.num_workers)]

    def ask_for_hosts(self, job, say):
        self.application = Application(job, request(job), say)
        return self.application

    def supervisor(self, host, job):
        """Return the command of a relay to the supervisor in a container."""
        application = self.application
        return [sys.executable, "-I", RELAY, str(application.files[0])], application.environ

    def address(self, host, ready):
        return ready["hostname"]

    def doubtful(self, connections):
        """Return none: any host will do."""
        return []

    def left(self, host, why):
        signalled = re.fullmatch(r"it was sent signal (\d+)", why)
        if not signalled:
            return super().left(host, why)
        number = int(signalled[1])
        return f"{host}: the container was sent {signal.Signals(number).name}", 128 + number

    def why_not(self, program, error):
        """Return the line for a missing `yarn`: no package has it."""
        if program == "yarn" and isinstance(error, FileNotFoundError):
            return "yarn is not installed here: put the bin folder of your Hadoop on PATH"
        return super().why_not(program, error)

    def folder(self, options):
        """Return the folder of the container, to which files are brought."""
        return "." if options.files or options.archives else super().folder(options)

    def settle(self, job, environ):
        request(job)

    def asks(self, job):
        command = shlex.join(request(job).argv("distributedshell.jar", SCRIPT))
        return [
            "# The launcher asks YARN for the containers, in which a small program calls it back:",
            f"#   {command}",
            "# Without it: run each block on a node of its own.",
        ]


def request(job):
    """Return what a job asks of YARN.

    Raises
    ------
    UsageError
        YARN cannot be asked for this.
    """
    options = job.options
    workers, servers = job.count("worker"), job.count("server")
    each = math.ceil(servers / workers)  # servers in a container
    taken = {SCRIPT: None}
    files, links = named(options.files, taken)
    packed, others = named(options.archives, taken)
    if others:
        raise UsageError("--archives: no # here: they are unpacked into the folder of the command")
    for name in (options.jobname or "launch", *map(os.path.basename, (*files, *packed))):
        if shlex.quote(name) != name:
            only = "only letters, digits and ._- are safe"
            raise UsageError(f"{name!r}: DistributedShell puts it on a command line: {only}")
    return Request(
        name=options.jobname or "launch",
        count=workers,
        memory=(options.worker_memory or 1024) + each * (options.server_memory or 1024),
        cores=(options.worker_cores or 1) + each * (options.server_cores or 1),
        words=[*(["-queue", options.queue] if options.queue else []), *own_words(options)],
        files=[*files, *packed],
        archives=[os.path.basename(path) for path in packed],
        links=links,
    )


def named(items, taken):
    """Return the absolute paths in options such as a.py,b.py#c.py, and the target of each link.

    `taken` has the path by the name that it has in a container, where all are in one folder.
    """
    paths, links = {}, {}
    for item in filter(None, re.split(",", ",".join(items))):
        path, _, link = item.partition("#")
        if not os.path.isfile(path):
            raise UsageError(f"{path}: no such file here, to be brought to the containers")
        name, path = os.path.basename(path), os.path.abspath(path)
        paths[path] = None
        if link and link != name:
            links[link] = name
        for each in (name, link or name):
            if taken.setdefault(each, path) != path:
                raise UsageError(f"--files, --archives: two of them would be {each} in a container")
    return list(paths), links

"""Run the whole program once for each line of standard input, in processes forked from this one.

A line is JSON: ``words`` of the command line, ``folder`` to run in, ``workers`` (0: no launcher).
The answer is a line, too: ``status`` (None: not done within LIMIT_S) and ``text``, all that was
printed. ``import mxnet`` is paid for once. MXNet must not be used before a fork, nor is it here.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import gluon_dist  # noqa: F401
from gluon_dist.common.failure import exit_with
from gluon_dist.setup.changes import correct
from gluon_dist.setup.parameter_server import serve_if_told

import mxnet as mx
import train_tiny

import cifar10_dist
from networks.create import create_network

LIMIT_S = 60
MEMORY = 8 << 30  # bytes of addresses, that an absurd number harms nobody else
RANKS_S = 8  # the others' time to end after one has failed


def create_tiny_network(args, *others):
    """Create the network of train_tiny.py in place of the default one, others for real."""
    is_small = args.network == "resnet18_v1" and args.num_classes < 1000
    return (train_tiny.create_network if is_small else create_network)(args, *others)


def no_network(url, **_):
    raise urllib.error.URLError("no network")


def start(words, folder, output, environment):
    """Fork a process; return its id, or None in the process."""
    pid = os.fork()
    if pid:
        return pid
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(folder)
    os.environ.update(environment, MXNET_HOME=folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    serve_if_told()
    correct(mx)  # which was imported before this was a worker
    exit_with(lambda: cifar10_dist.main(words), "cifar10_dist.py")
    return None


def environments(workers):
    """Return the environment of each process of a job, the workers last."""
    if not workers:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": "127.0.0.1",
        "DMLC_NUM_WORKER": str(workers),
        "DMLC_NUM_SERVER": "1",
        "LAUNCH_JOB": "try-flags",
        "LAUNCH_LOCAL_WORKERS": str(workers),
    }
    ranks = [
        dict(common, DMLC_ROLE="worker", LAUNCH_WORKER_ID=str(i), LAUNCH_LOCAL_RANK=str(i))
        for i in range(workers)
    ]
    return [dict(common, DMLC_ROLE="scheduler"), dict(common, DMLC_ROLE="server"), *ranks]


def wait(pids, workers):
    """Wait for all workers, as a launcher does; return the first status that is not 0."""
    end, status, running = time.monotonic() + LIMIT_S, 0, set(workers)
    while running and time.monotonic() < end:
        for pid in list(running):
            found, code = os.waitpid(pid, os.WNOHANG)
            if found:
                running.discard(pid)
                if code and not status:
                    status = os.WEXITSTATUS(code) if os.WIFEXITED(code) else -os.WTERMSIG(code)
                    end = min(end, time.monotonic() + RANKS_S)
        time.sleep(0.01)
    for pid in running | (set(pids) - set(workers)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return None if running and not status else status


urllib.request.urlopen = no_network
train_tiny.shrink()
cifar10_dist.create_network = create_tiny_network
for line in sys.stdin:
    case = json.loads(line)
    with open(Path(case["folder"]).with_suffix(".out"), "w+b") as output:
        pids = []
        for environment in environments(case["workers"]):
            pids.append(start(case["words"], case["folder"], output.fileno(), environment))
            if pids[-1] is None:
                sys.exit()  # the ordinary way out, with all destructors
        status = wait(pids, pids[-max(1, case["workers"]) :])
        output.seek(0)
        text = output.read().decode(errors="replace")
    print(json.dumps({"status": status, "text": text}), flush=True)

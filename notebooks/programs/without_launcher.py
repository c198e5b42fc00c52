"""Start a job of two workers and a server without the launcher, and watch it after a death.

Usage: without_launcher.py PROGRAM [ARGUMENT …]
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WATCH_S = 4  # seconds from the first end of a process to the report
ROLES = {"scheduler": "scheduler", "server": "server", "worker A": "worker", "worker B": "worker"}


def start(role, port, command, log):
    """Start a process as MXNet wants it: its role, its address, and the scheduler's."""
    environ = {
        "DMLC_ROLE": role,
        "DMLC_NUM_WORKER": "2",
        "DMLC_NUM_SERVER": "1",
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(port),
        "DMLC_NODE_HOST": "127.0.0.1",  # its own address
        "PS_HEARTBEAT_INTERVAL": "1",  # s: every process tells the scheduler that it lives
        "PS_HEARTBEAT_TIMEOUT": "2",
    }
    with open(log, "w", encoding="utf-8") as file:
        return subprocess.Popen(command, env={**os.environ, **environ}, stdout=file, stderr=file)


def main(command):
    os.environ.pop("PORT", None)  # ps-lite would listen there
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for name, role in ROLES.items():
                processes[name] = start(role, port, command, Path(folder, name))
            while all(process.poll() is None for process in processes.values()):
                time.sleep(0.1)
            time.sleep(WATCH_S)
            for name, process in processes.items():
                print(f"{name}: {describe(process.poll())}")
                for line in Path(folder, name).read_text(encoding="utf-8").splitlines():
                    print(f"    {line}")
        finally:
            for process in processes.values():
                process.kill()
                process.wait()


def describe(status):
    """Return what became of a process, in words."""
    if status is None:
        return f"alive {WATCH_S} s later"
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with {status}"


if __name__ == "__main__":
    main([sys.executable, *sys.argv[1:]])

"""Run the program, alone or under the launcher, as a user does."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "cifar10_dist/cifar10_dist.py"


def launch(workers, *command, servers=None, timeout=240, env=None):
    """Run a command under ``tools/launch.py --launcher local``; return the finished process."""
    args = ["-n", str(workers), "-s", str(servers or workers), "--launcher", "local", *command]
    return _run([sys.executable, "tools/launch.py", *args], timeout, env)


def train(*options, timeout=240, env=None):
    """Run the program in one process, without a launcher."""
    return _run([sys.executable, PROGRAM, *options], timeout, env)


def train_with(workers, *options, timeout=240, servers=None):
    """Run the program with several workers."""
    return launch(workers, sys.executable, PROGRAM, *options, timeout=timeout, servers=servers)


def accuracies(output):
    """Return the test accuracies that a job printed, a list for each epoch."""
    found = {}
    for line in output.splitlines():
        if ": Test_acc " in line:
            epoch, accuracy = line.split("Epoch ")[1].split(": Test_acc ")
            found.setdefault(int(epoch), []).append(float(accuracy.split()[0]))
    return [found[epoch] for epoch in sorted(found)]


def _run(command, timeout, env):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DMLC_")}
    environment["PYTHONPATH"] = str(ROOT / "cifar10_dist")  # for the small programs of tests
    environment.update(env or {})
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout
    )

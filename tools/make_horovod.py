#!/usr/bin/env python3
"""Add Horovod to .venv; `make setup HOROVOD=1` runs it, after make_venv.py.

    python3 tools/make_horovod.py 1 [--venv .venv]

PyPI has Horovod's source only. Its wheel is built beside the MXNet of .venv, in an environment of
its own, and kept in the user's cache. It talks over gloo; plain mpirun would need one built with
MPI. Without the 1 it only adds Horovod again, to an environment that had it and was built anew.
Exit status: 0 ready; 1 Horovod could not be built; 2 a program is missing here.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from make_venv import (
    HOROVOD_STAMP,
    ROOT,
    Unsuitable,
    exit_with,
    pip,
    pip_settings,
    provide_libraries,
    run,
    take,
)

REQUIREMENTS = ROOT / "requirements-horovod.txt"
CONSTRAINTS = ("-c", ROOT / "constraints.txt")
# What a wheel must fit, asked of the Python in .venv.
FITS = """
import importlib.metadata as m, sys, sysconfig
names = {d.metadata["Name"] for d in m.distributions()} & {"mxnet", "mxnet-cu112"}
print(*(f"{name}=={m.version(name)}" for name in names))
print(sys.implementation.cache_tag, sysconfig.get_platform())
"""


def compare(venv):
    """Return what is wanted, and whether it is there."""
    wanted, stamp = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12], venv / HOROVOD_STAMP
    return wanted, stamp.exists() and stamp.read_text(encoding="utf-8") == wanted


def add(venv):
    """Install the wheel, built if the cache does not have it; return the exit status."""
    wanted, is_there = compare(venv)
    if is_there:
        return 0
    python = venv / "bin" / "python"
    status, fits = run(python, "-c", FITS)
    if status != 0:
        raise Unsuitable(f"{venv} cannot be used: make setup")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "cifar10_dist" / "horovod" / "-".join([*fits.split(), wanted])
    log = folder.parent / "build.log"
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = folder.parent / "lock"  # setup may run in several clones at once
    with open(place, "w", encoding="utf-8") as lock:
        take(lock)
        if not folder.exists():
            build(python, fits.split()[0], folder, log)
        install = [*pip(venv), "install", "--force-reinstall", *folder.iterdir(), *CONSTRAINTS]
        write_down(log, *install, **pip_settings(venv))
    (venv / HOROVOD_STAMP).write_text(wanted, encoding="utf-8")
    print(f"Installed Horovod in {venv.name}, from {folder}.")
    return 0


def parted(requirements):
    """Return Horovod's own line of the requirements, and the lines of what builds it."""
    lines = requirements.splitlines()
    horovod = next(line for line in lines if line.startswith("horovod"))
    return horovod, "\n".join(line for line in lines if line != horovod)


def build(python, mxnet, folder, log):
    """Build the wheel in an environment of its own, beside the same MXNet."""
    missing = [program for program in ("g++", "make") if not shutil.which(program)]
    if missing:
        raise Unsuitable(f"Horovod is built from its source: apt-get install {' '.join(missing)}")
    print("Building Horovod's wheel (2 to 5 minutes, once) ...", flush=True)
    start, (horovod, tools_needed) = time.time(), parted(REQUIREMENTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(dir=str(folder.parent)) as place:
        venv, wheels, tools = (Path(place, name) for name in ("venv", "wheels", "tools.txt"))
        tools.write_text(tools_needed, encoding="utf-8")
        write_down(log, python, "-m", "venv", venv)
        settings = pip_settings(venv)
        write_down(log, *pip(venv), "install", mxnet, "numpy", *CONSTRAINTS, **settings)
        write_down(log, *pip(venv), "install", "-r", tools, **settings)
        provide_libraries(venv / "bin" / "python")  # libgomp comes with g++
        (packages,) = venv.glob("lib/python*/site-packages")
        # MXNet needs np.bool, which NumPy 1.24 removed: gluon_dist puts it back elsewhere.
        line = "import numpy; vars(numpy).setdefault('bool', bool)\n"
        (packages / "numpy_name.pth").write_text(line, encoding="utf-8")
        write_down(
            log,
            *pip(venv),
            *("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, horovod),
            **settings,
            PATH=f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",  # for its cmake
            MAKEFLAGS=f"-j{os.cpu_count()}",
            HOROVOD_WITH_MXNET="1",
            HOROVOD_WITH_GLOO="1",
            HOROVOD_WITHOUT_MPI="1",
            HOROVOD_WITHOUT_PYTORCH="1",
            HOROVOD_WITHOUT_TENSORFLOW="1",
        )
        wheels.rename(folder)
    print(f"Built it in {time.time() - start:.0f} s.")


def write_down(log, *command, **env):
    """Run a command; what it prints goes to a file, which is named if it fails."""
    status, said = run(*command, **env)
    log.write_text(" ".join(map(str, command)) + "\n" + said, encoding="utf-8")
    if status != 0:
        print(f"make setup: Horovod could not be built or installed: see {log}", file=sys.stderr)
        sys.exit(1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wanted", choices=["", "1"], help="1: add it, also where it was not before")
    parser.add_argument("--venv", default=ROOT / ".venv", type=Path, help="folder to install in")
    args = parser.parse_args()
    if not args.wanted and not (args.venv / HOROVOD_STAMP).exists():
        return 0
    if compare(args.venv)[1]:  # before anything is written: it may be somebody else's
        return 0
    place = f"{args.venv}.lock"  # `make train` and `make test` may both come here
    with open(place, "w", encoding="utf-8") as lock:
        take(lock)
        return add(args.venv)


if __name__ == "__main__":
    exit_with(main, "make setup")

#!/usr/bin/env python3
"""Build the project's virtual environment; `make setup` runs it.

    python3 tools/make_venv.py [--python PYTHON] [--device cpu|gpu] [--venv .venv]

Does nothing if the environment fits the requirement files, the options and its place; else builds
it anew, also after an interrupted run. If that fails, the one before is put back. Options that it
was built with are remembered until the folder is removed. Needs nothing installed and runs on
Python 3.6 or later, so that it can say what is missing.
Exit status: 0 ready; 1 venv or pip failed; 2 this machine or an option will not do.
"""

import argparse
import ast
import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IPYTHON = "tools/ipython_config.py"
FILES = (
    *("requirements.txt", "requirements-cpu.txt", "requirements-common.txt", "constraints.txt"),
    IPYTHON,
)
STAMP = "built-from.json"  # written last: without it a run was cut short
BEFORE = ".before"  # ends the name of an environment until its successor is whole
HOROVOD_STAMP = "horovod.txt"  # of make_horovod.py, which adds to this environment
PYTHONS = ("python3.11", "python3.10", "python3.12", "python3.9", "python3.8", "python3")
SUPPORTED = ((3, 8), (3, 12))
# Debian and Ubuntu package ensurepip apart; a Python that was compiled may lack the other modules.
ASK_PYTHON = """
import sys
print("version", *sys.version_info[:3], flush=True)
import ctypes, ensurepip, os, ssl
if sys.prefix != sys.base_prefix: print("base", os.path.realpath(sys.executable))
"""
LIBRARIES = ROOT / "cifar10_dist" / "gluon_dist" / "setup" / "libraries.py"
# The user's settings of pip that are kept: where packages come from. The rest is left out: user,
# target or prefix, for instance, would install somewhere else.
PIP_SETTINGS = (
    *("index-url", "extra-index-url", "no-index", "find-links", "proxy", "cert", "client-cert"),
    *("trusted-host", "keyring-provider", "use-feature", "timeout", "default-timeout", "retries"),
    *("cache-dir", "no-cache-dir"),
)
# MXNet 1.9.1 has wheels for these, and Apple and Windows users should know it at once.
PLATFORMS = (("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "x86_64"))
GPU_PLATFORMS = PLATFORMS[:1]
HERE = (platform.system(), platform.machine())
# mxnet-cu112 holds code for cards of these compute capabilities and cannot make any for newer ones.
GPU_CAPABILITIES = (5.0, 8.9)


class Unsuitable(Exception):
    """This machine or an option will not do; the message says what to do."""


class Live:
    """A line that shows how far pip is: on a terminal always there, elsewhere now and then."""

    EVERY_S = 30  # where it is no terminal

    def __init__(self):
        self.count, self.name = 0, ""
        self.start = self.printed = time.time()

    def take(self, line):
        """Take in a line of pip's."""
        found = re.match(r"Collecting ([\w.-]+)", line)
        if found:
            self.count, self.name = self.count + 1, found.group(1)
        elif line.startswith("Installing collected"):
            self.name = "unpacking all of them"

    def show(self):
        """Draw the line, or print it if it is time."""
        minutes, seconds = divmod(int(time.time() - self.start), 60)
        text = f"  {self.count} packages, {minutes}:{seconds:02}, {self.name}"
        if sys.stdout.isatty():
            print(f"\r\x1b[K{text[:78]}", end="", flush=True)
        elif time.time() - self.printed > self.EVERY_S:
            self.printed = time.time()
            print(text, flush=True)

    def wipe(self):
        """Leave nothing on a terminal."""
        if sys.stdout.isatty():
            print("\r\x1b[K", end="", flush=True)


def run(*command, is_long=False, **env):
    """Run a command, with these variables; return its exit status and what it printed.

    Python and pip do not see settings for another Python or pip (PYTHONHOME, PIP_USER). With
    ``is_long`` it is pip that installs much, and how far it is is shown.
    """
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    pipe = {
        "env": dict(plain, **env),
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
    }
    command, live = [str(word) for word in command], Live()
    if is_long:
        command.remove("-q")
    try:
        process = subprocess.Popen(command, universal_newlines=True, **pipe)
    except OSError as error:
        return 127, str(error)
    said = []

    def read():
        for line in process.stdout:
            live.take(line)
            said.append(line)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        while reader.is_alive():
            reader.join(0.5 if is_long else None)
            if is_long:
                live.show()
        process.wait()
    except BaseException:  # Ctrl-C, or make is told to stop
        process.kill()
        raise
    finally:
        if is_long:
            live.wipe()
    return process.returncode, "".join(said)


def choose_python(wanted):
    """Return the interpreter to build with and its version: the one wanted, or one on PATH."""
    seen = {}  # what is wrong with each version: it may have two names
    for name in [wanted] if wanted else PYTHONS:
        # Even a name on PATH may not run: pyenv's can answer "command not found".
        status, said = run(name, "-c", ASK_PYTHON)
        version = said.split()[1:4] if said.startswith("version") else []
        is_supported = version and SUPPORTED[0] <= tuple(map(int, version[:2])) <= SUPPORTED[1]
        if status == 0 and is_supported:
            base = said.partition("\nbase ")[2].strip()  # of .venv, which will be put aside
            return base or name, ".".join(version)
        number, what = ".".join(version), f"{name} does not run"
        if is_supported:
            package = ": apt-get install python{}.{}-venv (Debian, Ubuntu)".format(*version)
            what = f"{name}: {said.splitlines()[-1]}{package if 'ensurepip' in said else ''}"
        elif version:
            what = f"{name} is {number}"
        if version or wanted:
            seen.setdefault(number, what)
    raise Unsuitable(
        "MXNet 1.9.1 needs Python 3.8 to 3.12 ({}): install one (without root: uv python install "
        "3.11) and say PYTHON=python3.11".format("; ".join(seen.values()) or "found none")
    )


def check_platform(device):
    """Refuse a machine that MXNet has no wheels for."""
    if HERE not in PLATFORMS:
        raise Unsuitable(
            "MXNet 1.9.1 has no package for {} {}: use Linux on x86-64 (also in a container or "
            "virtual machine), or macOS on an Intel processor".format(*HERE)
        )
    if device == "gpu" and HERE not in GPU_PLATFORMS:
        raise Unsuitable("DEVICE=gpu: mxnet-cu112 is for Linux x86-64 only; use DEVICE=cpu")


def choose_device():
    """Return "cpu" or "gpu", and why a card that is here will not be used, or None."""
    status, said = run("nvidia-smi", "--query-gpu=compute_cap,name", "--format=csv,noheader")
    if HERE not in GPU_PLATFORMS or status == 127:
        return "cpu", None
    cards = []
    for line in said.splitlines():
        capability, _, name = line.partition(",")
        try:
            cards.append((float(capability), name.strip()))
        except ValueError:  # an error message, or a card that says N/A
            pass
    if status != 0 or not cards:
        return "cpu", "nvidia-smi names no card with its compute capability"
    if any(GPU_CAPABILITIES[0] <= capability <= GPU_CAPABILITIES[1] for capability, _ in cards):
        return "gpu", None
    return "cpu", "mxnet-cu112 has code for compute capability 5.0 to 8.x, and {1} has {0}".format(
        *cards[0]
    )


def read_stamp(venv):
    """Return what an environment was built from; nothing if it is not whole."""
    try:
        return json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none, or cut short by a full disk
        return {}


def compare(args):
    """Return what is wanted, and whether it is there."""
    built = read_stamp(args.venv)
    wanted = {
        "python": args.python or built.get("python", ""),
        "device": args.device or built.get("device", ""),
        "files": hashlib.sha256(b"".join((ROOT / f).read_bytes() for f in FILES)).hexdigest(),
    }
    is_there = (
        all(built.get(name) == wanted[name] for name in ("python", "files"))
        and wanted["device"] in ("", built.get("chosen"))
        and is_in_place(args.venv, built)
    )
    return wanted, is_there


def is_in_place(venv, built):
    """Return whether an environment still works: its files name its path, and its Python's version.

    A project may be moved, renamed or copied, also with its environment.
    """
    try:
        is_same = os.path.samefile(built["place"], str(venv))  # which may have several names
    except (OSError, KeyError):
        return False
    return is_same and built["runs"] == interpreter(venv)


def interpreter(venv):
    """Return the name of the program that runs, as python3.11; None if it is gone."""
    path = os.path.realpath(str(venv / "bin" / "python"))
    return os.path.basename(path) if os.path.exists(path) else None


def build(venv, wanted):
    """Choose, build and say so; return the exit status."""
    python, version = choose_python(wanted["python"])
    provide_libraries(python, "--before-mxnet")
    device, reason = (wanted["device"], None) if wanted["device"] else choose_device()
    if reason:
        print(f"Using CPU packages: {reason} (DEVICE=gpu overrides)")
    size = "2 GB to download, 5 minutes or more" if device == "gpu" else "0.3 GB, about 2 minutes"
    what = f"Python {version} and {device.upper()} packages ({size})"
    print(f"Building {venv.name} with {what} ...", flush=True)
    start = time.time()
    has_horovod = (venv / HOROVOD_STAMP).exists() and not venv.is_symlink()  # to somebody else's
    if read_stamp(venv):
        try:
            venv.rename(f"{venv}{BEFORE}")
        except OSError:  # a mount point, for instance, stays where it is
            (venv / STAMP).unlink()
    elif venv.is_symlink():
        venv.unlink()
    requirements = ROOT / ("requirements.txt" if device == "gpu" else "requirements-cpu.txt")
    # The constraints name all that is needed. GluonCV asks for more: see requirements-common.txt.
    install = [*pip(venv), "install", "--no-deps"]
    packages = ["-r", requirements, "-r", ROOT / "constraints.txt"]
    if not succeeds(python, "-m", "venv", "--clear", venv):
        return 1
    settings = pip_settings(venv)
    if not succeeds(*install, *packages, is_long=True, **settings):
        return 1
    # Debian 11's pip cannot install gluon_dist: before 21.3 a folder needed a setup.py for -e.
    if not succeeds(*install, "pip>=21.3", **settings):
        return 1
    if not succeeds(*install, "--no-build-isolation", "-e", ROOT, **settings):
        return 1
    provide_libraries(venv / "bin" / "python")
    (venv / "etc" / "ipython").mkdir(parents=True, exist_ok=True)
    shutil.copy(str(ROOT / IPYTHON), str(venv / "etc" / "ipython"))
    if has_horovod:
        (venv / HOROVOD_STAMP).write_text("to be added again", encoding="utf-8")
    wanted.update(chosen=device, place=os.path.abspath(str(venv)), runs=interpreter(venv))
    (venv / STAMP).write_text(json.dumps(wanted), encoding="utf-8")
    print(f"Built {venv.name} in {time.time() - start:.0f} s.")
    return 0


def settle(venv):
    """Of an environment and the one before it, keep the one that is whole."""
    before = Path(f"{venv}{BEFORE}")
    if not os.path.lexists(str(before)):
        return
    is_whole = bool(read_stamp(venv))
    useless = before if is_whole else venv
    if useless.is_symlink():
        useless.unlink()
    else:
        shutil.rmtree(str(useless), ignore_errors=True)
    if not is_whole:
        before.rename(venv)
        print(f"make setup: {venv.name} is again what it was before", file=sys.stderr)


def pip(venv):
    """Return the words that begin a command of an environment's pip."""
    options = ["--disable-pip-version-check", "--no-input", "-q"]
    return [venv / "bin" / "python", "-m", "pip", *options]


def pip_settings(venv):
    """Return variables that tell pip where packages come from, as the user's do, and no more."""
    theirs = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    theirs.update(PIP_QUIET="0", PIP_VERBOSE="0")
    status, said = run(venv / "bin" / "python", "-m", "pip", "config", "list", **theirs)
    if status != 0:
        raise Unsuitable(f"pip config list: {said.strip()}")
    settings = {"PIP_CONFIG_FILE": os.devnull}
    # global.timeout='9', then install.timeout='9', then :env:.timeout='9': the last one counts
    for line in sorted(said.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        section, _, name = name.rpartition(".")
        if section in ("global", "install", ":env:") and name in PIP_SETTINGS:
            settings["PIP_" + name.upper().replace("-", "_")] = ast.literal_eval(value)
    return settings


def succeeds(*command, **env):
    """Run a command, and show what it printed if it fails."""
    status, said = run(*command, **env)
    if status != 0:
        print(said, file=sys.stderr)
        print("failed: " + " ".join(map(str, command)), file=sys.stderr)
        if re.search("from versions: none|connection broken|SSLError", said):
            why = "pip did not reach the packages: see the network, https_proxy and PIP_CERT"
            print(f"make setup: {why}", file=sys.stderr)
    return status == 0


def provide_libraries(python, *options):
    """Let a Python have what MXNet needs of the system, or say what is missing."""
    status, said = run(python, "-I", LIBRARIES, *options)
    if status != 0:
        raise Unsuitable(said.strip())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="", help="interpreter (default: the best one on PATH)")
    parser.add_argument("--device", default="", choices=["", "cpu", "gpu"], help="default: look")
    parser.add_argument("--venv", default=ROOT / ".venv", type=Path, help="folder to build in")
    args = parser.parse_args()

    check_platform(args.device)
    if compare(args)[1]:  # before anything is written: it may be somebody else's
        return 0
    is_ours = args.venv == ROOT / ".venv" or (args.venv / "pyvenv.cfg").exists()
    if not is_ours and args.venv.exists() and any(args.venv.iterdir()):
        raise Unsuitable(f"{args.venv}: not a virtual environment; move it away")
    args.venv.parent.mkdir(parents=True, exist_ok=True)
    place = f"{args.venv}.lock"  # `make train` and `make test` may both come here
    with open(place, "w", encoding="utf-8") as lock:
        take(lock)
        settle(args.venv)  # after a run that was killed
        wanted, is_there = compare(args)
        try:
            return 0 if is_there else build(args.venv, wanted)
        finally:
            settle(args.venv)


def take(lock):
    """Wait for the lock of an open file, and say so; a disk may have none, as NFS without lockd."""
    import fcntl  # not on Windows, which check_platform refuses in plain words

    with contextlib.suppress(OSError):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another setup is at work: waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)


def exit_with(main, program):
    """Call ``main()`` and end with its status; what the user can mend is one line."""
    # End pip too when make is told to stop: Python passes an exit on to what it runs, not a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except (Unsuitable, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: the next run starts again", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    exit_with(main, "make setup")

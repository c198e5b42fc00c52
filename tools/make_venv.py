#!/usr/bin/env python3
"""Build the project's virtual environment; `make setup` runs it.

    python3 tools/make_venv.py [--python PYTHON] [--device cpu|gpu] [--venv .venv] [--dry-run]

Does nothing when the environment is there and fits the requirement files and options; else builds
it anew, also after an interrupted run. Options are remembered until the folder is removed. Needs
nothing installed and runs on Python 3.6 or later, so that it can say what is missing.
Exit status: 0 ready; 1 pip failed; 2 this machine or an option will not do.
"""

import argparse
import hashlib
import json
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = ("requirements.txt", "requirements-cpu.txt", "requirements-common.txt", "constraints.txt")
STAMP = "built-from.json"  # written last: without it the last run was cut short
PYTHONS = ("python3.11", "python3.10", "python3.12", "python3.9", "python3.8", "python3")
SUPPORTED = ((3, 8), (3, 12))
# MXNet 1.9.1 has wheels for these, and Apple and Windows users should know it at once.
PLATFORMS = (("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "x86_64"))
# mxnet-cu112 holds code for cards of these compute capabilities and cannot make any for newer ones.
GPU_CAPABILITIES = (5.0, 8.9)


class Unsuitable(Exception):
    """This machine or an option will not do; the message says what to do."""


def run(*command):
    """Run a command; return its exit status and what it printed."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True,
        )
    except OSError as error:
        return 127, str(error)
    return done.returncode, done.stdout


def python_version(python):
    """The version of an interpreter as (3, 11, 7), or None if it does not run."""
    # Asked for even if on PATH: pyenv puts names there that may answer "command not found".
    status, said = run(python, "-c", "import sys; print('version', *sys.version_info[:3])")
    return tuple(int(n) for n in said.split()[1:]) if status == 0 else None


def choose_python(wanted):
    """The interpreter to build with and its version: the one wanted, or the best on PATH."""
    seen = []
    for name in [wanted] if wanted else PYTHONS:
        version = python_version(name)
        if version and SUPPORTED[0] <= version[:2] <= SUPPORTED[1]:
            return name, version
        if version:
            seen.append("{} is {}".format(name, ".".join(map(str, version))))
        elif wanted:
            seen.append(f"{name} does not run")
    raise Unsuitable(
        "MXNet 1.9.1 needs Python 3.8 to 3.12 ({}): install one and say PYTHON=python3.11".format(
            "; ".join(seen) or "found none"
        )
    )


def check_platform():
    """Refuse a machine that MXNet has no wheels for."""
    here = (platform.system(), platform.machine())
    if here not in PLATFORMS:
        raise Unsuitable(
            "MXNet 1.9.1 has no package for {} {}: use Linux on x86-64 or aarch64 (also in a "
            "container or virtual machine), or macOS on an Intel processor".format(*here)
        )


def choose_device(wanted):
    """Return "cpu" or "gpu", and why a card that is here will not be used, or None."""
    if wanted == "gpu" and (platform.system(), platform.machine()) != PLATFORMS[0]:
        raise Unsuitable("DEVICE=gpu: mxnet-cu112 is for Linux x86-64 only; use DEVICE=cpu")
    if wanted or (platform.system(), platform.machine()) != PLATFORMS[0]:
        return wanted or "cpu", None
    status, said = run("nvidia-smi", "--query-gpu=compute_cap,name", "--format=csv,noheader")
    if status == 127:
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


def remove(venv):
    """Remove an environment: first what says that it is built, last what says that it is one."""
    if venv.is_symlink():  # to somebody else's
        venv.unlink()
    for path in [venv / STAMP, *venv.iterdir()] if venv.exists() else []:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(str(path))
        elif path.exists() and path.name != "pyvenv.cfg":
            path.unlink()
    if venv.exists():
        shutil.rmtree(str(venv))


def build(python, venv, requirements):
    """Make the environment and install into it; print the error and return False if that fails."""
    remove(venv)
    pip = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "-q"]
    files = ["-r", ROOT / requirements, "-c", ROOT / "constraints.txt"]
    for command in [python, "-m", "venv", venv], [*pip, "install", *files]:
        status, said = run(*command)
        if status != 0:
            print(said, file=sys.stderr)
            print("failed: " + " ".join(map(str, command)), file=sys.stderr)
            return False
    return True


def compare(args):
    """Return what is wanted, and whether it is there."""
    try:
        built = json.loads((args.venv / STAMP).read_text())
    except (OSError, ValueError):  # none, or cut short by a full disk
        built = {}
    wanted = {
        "python": args.python or built.get("python", ""),
        "device": args.device or built.get("device", ""),
        "files": hashlib.sha256(b"".join((ROOT / f).read_bytes() for f in FILES)).hexdigest(),
    }
    return wanted, built == wanted and (args.venv / "bin" / "python").exists()


def build_if_needed(args):
    """Look at what is there, choose, build; return the exit status."""
    wanted, is_there = compare(args)
    if is_there:
        if args.dry_run:
            print(f"{args.venv.name} is up to date")
        return 0
    if args.venv.exists() and any(args.venv.iterdir()) and not (args.venv / "pyvenv.cfg").exists():
        raise Unsuitable(f"{args.venv}: not a virtual environment; move it away")
    python, version = choose_python(wanted["python"])
    device, reason = choose_device(wanted["device"])
    if reason:
        print(f"Using CPU packages: {reason} (DEVICE=gpu overrides)")
    size = "2 GB to download, 5 minutes or more" if device == "gpu" else "0.3 GB, about 2 minutes"
    print(
        "Building {} with Python {} and {} packages ({}) ...".format(
            args.venv.name, ".".join(map(str, version)), device.upper(), size
        ),
        flush=True,
    )
    if args.dry_run:
        return 0
    if run(python, "-c", "import ensurepip")[0] != 0:
        raise Unsuitable(
            f"{python} cannot make virtual environments: on Debian or Ubuntu, "
            f"apt-get install python{version[0]}.{version[1]}-venv"
        )
    start = time.time()
    requirements = "requirements.txt" if device == "gpu" else "requirements-cpu.txt"
    if not build(python, args.venv, requirements):
        return 1
    (args.venv / STAMP).write_text(json.dumps(wanted))
    print(f"Built {args.venv.name} in {time.time() - start:.0f} s.")
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default="", help="interpreter (default: the best one on PATH)")
    parser.add_argument("--device", default="", choices=["", "cpu", "gpu"], help="default: look")
    parser.add_argument("--venv", default=ROOT / ".venv", type=Path, help="folder to build in")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    args = parser.parse_args()

    check_platform()
    import fcntl  # not on Windows, which check_platform refuses in plain words

    if compare(args)[1]:  # somebody else's, perhaps, and not to be written to
        return build_if_needed(args)
    try:
        args.venv.parent.mkdir(parents=True, exist_ok=True)
        lock = open(f"{args.venv}.lock", "w")  # noqa: SIM115
    except OSError as error:
        why = f"{args.venv}.lock: {error.strerror}; who may write there runs this first"
        raise Unsuitable(why) from None
    with lock:  # `make train` and `make test` may both come here
        fcntl.flock(lock, fcntl.LOCK_EX)
        return build_if_needed(args)


if __name__ == "__main__":
    # End pip too when make is told to stop: Python passes an exit on to what it runs, not a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except Unsuitable as error:
        print(f"make_venv.py: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted: the next run starts again", file=sys.stderr)
        sys.exit(130)

#!/usr/bin/env python3
"""What was measured: the program's files with their hashes, the commit, the machine, PyTorch.

    python benchmarks/measured.py    warn if the program is not the one that RESULTS.md measured

bench.py writes the list of files beside the results, in the form that `sha256sum --check` reads.
"""

import hashlib
import platform
import re
import subprocess
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIST = HERE / "results" / "measured.sha256"
FILES = (
    "cifar10_dist/**/*.py",
    "tools/launch.py",
    "tools/gluon_launch/**/*.py",
    "benchmarks/peers/*",
    *(f"benchmarks/{name}.py" for name in ("ladder", "rungs", "loading", "peak", "growth_worker")),
    # steps and options
    *(f"benchmarks/{name}.py" for name in ("contenders", "groups", "between_hosts", "hosts")),
)
TORCH_VERSION = """
import importlib.util, runpy
(folder,) = importlib.util.find_spec("torch").submodule_search_locations
print(runpy.run_path(f"{folder}/version.py")["__version__"])
"""  # importing it takes seconds
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


def measured_files(root=ROOT):
    """Return a line for each measured file: its hash, and its path."""
    paths = sorted({p for pattern in FILES for p in root.glob(pattern) if p.is_file()})
    return [
        f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(root).as_posix()}"
        for p in paths
    ]


def changed_files(listed=LIST, root=ROOT):
    """Return the paths that are not as they were measured; none if nothing was measured."""
    if not listed.exists():
        return []
    differing = {*listed.read_text().splitlines()} ^ {*measured_files(root)}
    return sorted({line.split("  ", 1)[1] for line in differing})


@lru_cache(None)
def where():
    """Describe what every row is measured with."""
    return {
        "machine": machine(Path("/proc/cpuinfo").read_text()) or platform.processor(),
        "python": platform.python_version(),
        "commit": commit(),
        "torch": _printed(str(PEERS_PYTHON), "-c", TORCH_VERSION),
    }


def machine(cpuinfo):
    """Name the processors of a ``/proc/cpuinfo``: ``2 x AMD EPYC, family 25 model 1``.

    Processors of one name can be of different generations. Empty if they have no name.
    """
    pairs = re.findall(r"^(.*?)\s*: *(.*)$", cpuinfo, re.MULTILINE)
    fields, count = dict(pairs), [key for key, _ in pairs].count("model name")
    if not count or "cpu family" not in fields:
        return f"{count} x {fields['model name']}" if count else ""
    return (
        f"{count} x {fields['model name']}, family {fields['cpu family']} model {fields['model']}"
    )


def commit():
    """Return the short name of the commit, with a + if measured files differ from it."""
    paths = [line.split("  ", 1)[1] for line in measured_files()]
    name = _printed("git", "rev-parse", "--short", "HEAD")
    return name + ("+" if name and _printed("git", "status", "--porcelain", *paths) else "")


def _printed(*command):
    """Return what a program prints; nothing if it fails or is missing."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def main():
    changed = changed_files()
    if changed:
        names = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")
        print(
            f"warning: {len(changed)} files are not as RESULTS.md measured them ({names}); "
            "to measure again: make bench"
        )


if __name__ == "__main__":
    main()

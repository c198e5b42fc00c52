"""Print which versions of other programs the tests meet here, as a table for docs/tried.md.

    python tests/versions.py        (make versions)

A program that is not installed here has the version `-`.
"""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import cluster_yarn  # noqa: E402
from smoke_pythons import VERSIONS, find_python  # noqa: E402


def debian_package(name):
    """Return the version that a package of Debian has of its program, or None."""
    try:
        command = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev} ${Version}", name]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.match(r"ii +(?:\d+:)?([\w.]+)", done.stdout)
    return found and found[1]


def package(name):
    """Return the version of a package of this Python, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def pythons():
    """Return the Pythons, of those that MXNet runs on, that are here."""
    return ", ".join(version for version in VERSIONS if find_python(version))


def hadoop():
    """Return the version of Hadoop whose jars `make cluster WITH=yarn` has fetched."""
    version = cluster_yarn.VERSION
    return version if (cluster_yarn.CACHE / f"mxnet-cluster/hadoop-{version}").exists() else None


def debian():
    """Return the version of Debian."""
    path = Path("/etc/debian_version")
    return path.read_text(encoding="utf-8").strip() if path.exists() else None


ROWS = (  # what, its version here, what ran with it
    ("Debian", debian, "all tests; on Debian 11 the quick ones (`make test-bare`)"),
    ("Python", pythons, "all tests on 3.11; a short training on each (`make test-pythons`)"),
    ("MXNet", lambda: package("mxnet"), "all tests, with the CPU package"),
    ("GluonCV", lambda: package("gluoncv"), "all tests"),
    ("Horovod", lambda: package("horovod"), "`make test-horovod`"),
    ("OpenSSH", lambda: debian_package("openssh-client"), "`--launcher ssh`"),
    ("Open MPI", lambda: debian_package("openmpi-bin"), "`--launcher mpi`"),
    ("MPICH", lambda: debian_package("mpich"), "`--launcher mpi`"),
    ("Slurm", lambda: debian_package("slurm-client"), "`--launcher slurm`, `examples/`"),
    ("Grid Engine", lambda: debian_package("gridengine-client"), "`--launcher sge`, `examples/`"),
    ("Hadoop", hadoop, "`--launcher yarn`, `examples/`"),
)


def rows():
    """Yield each row: the name, the version here or `-`, what ran with it."""
    for name, ask, what in ROWS:
        yield name, ask() or "-", what


if __name__ == "__main__":
    print("| program | version | tried by |\n|---|---|---|")
    for row in rows():
        print(f"| {' | '.join(row)} |")

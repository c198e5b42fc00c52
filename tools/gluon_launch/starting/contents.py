"""What `--sync-dst-dir` copies of a folder, and what not: rsync itself lists the files."""

import functools
import json
import os
import pathlib
import re
import subprocess
from dataclasses import dataclass
from typing import Dict, List

from gluon_dist.contract import MANIFEST_ENDING, MANIFEST_FORMAT, PARAMS_ENDING

from gluon_launch.job.statuses import counted

NOT_COPIED = (  # by default
    ".git/",
    ".venv/",
    "__pycache__/",
    ".ipynb_checkpoints/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".cluster/",
)


@dataclass(frozen=True)
class Contents:
    """What is known of a folder, its files by their paths in it."""

    sizes: Dict[str, int]  # bytes of the files that are copied
    large: Dict[str, int]  # of those that are left out as too large
    checkpoints: List[Dict[str, int]]  # of those of each checkpoint that is left out
    limit: int  # bytes from which on a file is too large

    def left_out(self):
        """Return a line on what is left out and which flag changes that; "" if nothing is."""
        found = []
        if self.large:
            names = sorted(self.large, key=self.large.get, reverse=True)
            shown = ", ".join(names[:3] + ["…"] * (len(names) > 3))
            what = f"{counted(len(self.large), 'file')} above {human(self.limit)}: {shown}"
            found.append(f"{what} ({human(sum(self.large.values()))}; see --sync-max-size)")
        if self.checkpoints:
            size = human(sum(sum(files.values()) for files in self.checkpoints))
            folders = sorted({os.path.dirname(next(iter(files))) for files in self.checkpoints})
            where = ", ".join(f"{folder or '.'}/" for folder in folders[:3])
            what = f"{counted(len(self.checkpoints), 'checkpoint')} in {where}"
            found.append(f"{what} ({size}; --sync-exclude none copies them)")
        text = f"--sync-dst-dir leaves out {' and '.join(found)}" if found else ""
        return "".join(c if c.isprintable() else "?" for c in text)  # a name may have several lines

    def excludes(self):
        """Return rsync's options for what is left out besides `patterns`."""
        paths = [path for files in self.checkpoints for path in files]
        max_size = [f"--max-size={self.limit}"] if self.limit else []
        return [*max_size, *(f"--exclude=/{_literal(path)}" for path in paths)]


def look(source, options):
    """Look at what of a folder will be copied: nothing without rsync, as the copy will say."""
    return _look(source, tuple(options.sync_exclude), options.sync_max_size)


@functools.lru_cache(maxsize=1)  # for the check, and for the copy to each host
def _look(source, excluded, limit):
    """Return the :class:`Contents` of a folder; asked again, the same."""
    sizes = _list(source, excluded)
    checkpoints = [] if "none" in excluded else [*_checkpoints(source, sizes)]
    for files in checkpoints:
        for path in files:
            sizes.pop(path, None)  # several have one symbol
    large = {path: size for path, size in sizes.items() if limit and size > limit}
    copied = {path: size for path, size in sizes.items() if path not in large}
    return Contents(copied, large, checkpoints, limit)


def copy_itself(source, target):
    """Return the pattern of the copy where it lies in the folder: a host may share our disk.

    Else the copy would have a copy of itself, one more with each job.
    """
    target = os.path.join(os.path.expanduser("~"), target)
    inside = os.path.relpath(os.path.realpath(target), os.path.realpath(source))
    return [] if inside.split(os.sep)[0] in (os.curdir, os.pardir) else [f"/{_literal(inside)}/"]


def patterns(excluded):
    """Return rsync's options for what is left out by name."""
    chosen = [pattern for pattern in excluded if pattern != "none"]
    return [f"--exclude={p}" for p in [*chosen, *(() if "none" in excluded else NOT_COPIED)]]


def _list(source, excluded):
    """Return the size of each file, by its path."""
    argv = ["rsync", "-rlptn", "--out-format=%l %n", "--no-human-readable", *patterns(excluded)]
    try:
        done = subprocess.run(
            [*argv, "--", f"{source}/", "/proc/0/"],  # which is never there, nor is it made (-n)
            env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return {}
    found = re.findall(rb"^(\d+) (.*[^/\n])$", done.stdout, re.MULTILINE)
    return {os.fsdecode(_unescaped(name)): int(size) for size, name in found}


def _unescaped(name):
    """Return a name of rsync's list, in which bytes that are not printable stand as `\\#012`."""
    return re.sub(rb"\\#([0-7]{3})", lambda match: bytes([int(match[1], 8)]), name)


def _checkpoints(source, sizes):
    """Yield the files of each checkpoint of our program, as its manifest names them, with sizes."""
    for path in sizes:
        stem, ending = os.path.splitext(path)
        if ending != MANIFEST_ENDING or f"{stem}{PARAMS_ENDING}" not in sizes:
            continue
        try:
            manifest = json.loads(pathlib.Path(source, path).read_bytes())
            is_ours = manifest["format"] == MANIFEST_FORMAT
            names = [os.path.join(os.path.dirname(path), name) for name in manifest["files"]]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue
        if is_ours:
            yield {name: sizes[name] for name in [path, *names] if name in sizes}


def _literal(path):
    """Return a path as a pattern of rsync's, where a backslash counts only beside a wildcard."""
    return re.sub(r"([*?\[\\])", r"\\\1", path) if set(path) & set("*?[") else path


def human(size):
    """Return a number of bytes as people read it: `2.1 GB`."""
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.3g} {unit}"
    return f"{size} B"

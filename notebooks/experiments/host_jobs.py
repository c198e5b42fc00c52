"""Ask the launcher where it would start what, and shorten the log of a job that hung."""

import re

from helpers import run_quietly

LAUNCH = ("python", "tools/launch.py")
_PLACED = re.compile(r"# ([\w.-]+): ((?:scheduler|server|worker) ?\d*.*)")
_FRAME = re.compile(r'^(\[.*?\])\s+File "(?:.*/site-packages/)?(.*)", line (\d+) in (\w+)$')


def dry_run(*options):
    """Return the lines of the script that ``--dry-run`` prints; a mistake is a ValueError."""
    status, lines = run_quietly(*LAUNCH, *options, "--dry-run", "python train.py")
    if status:
        raise ValueError(lines[-1])
    return lines


def placement(*options):
    """Return ``{host: [processes]}`` as the launcher would start them with these options."""
    pairs = filter(None, map(_PLACED.fullmatch, dry_run(*options)))
    return {pair[1]: pair[2].split(", ") for pair in pairs}


def where_it_hangs(lines):
    """Return the lines worth reading of a hung job: the launcher's, and the program's stacks.

    Of a stack, the frames that every program here ends with are left out.
    """
    kept = []
    for line in lines:
        frame = _FRAME.match(line)
        if frame and frame[4] not in ("exit_with", "module"):
            kept.append(f"{frame[1]} {frame[2]}, line {frame[3]}, in {frame[4]}")
        elif re.search(r"\[worker.*step|stall-timeout: |hint: ", line):
            kept.append(line)
    return kept

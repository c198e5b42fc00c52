"""The programs that the notebook on mixed precision starts: each computes in one type only."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from helpers import ROOT, run_quietly

PROGRAMS = ROOT / "notebooks" / "programs"
# oneDNN uses no newer instructions than DNNL_MAX_CPU_ISA names.
PROCESSORS = {
    "float32": ("float32", {}),
    "bfloat16": ("bfloat16", {}),
    "bfloat16, no newer than AVX-512": ("bfloat16", {"DNNL_MAX_CPU_ISA": "AVX512_CORE"}),
    "bfloat16, no newer than AVX2": ("bfloat16", {"DNNL_MAX_CPU_ISA": "AVX2"}),
}


def lines_of(program, *words, **environ):
    """Run a program on one thread; return the objects that it prints as JSON."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *words],
        env=dict(os.environ, OMP_NUM_THREADS="1", **environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def time_layers():
    """Time stacks of layers: ``{processor: {stack: milliseconds a step, None if refused}}``."""
    with ThreadPoolExecutor(2) as pool:  # two at a time, one thread each
        jobs = [pool.submit(lines_of, "layer_speed.py", d, **e) for d, e in PROCESSORS.values()]
        found = dict(zip(PROCESSORS, (job.result() for job in jobs)))
    return {name: {line["stack"]: line.get("ms") for line in f} for name, f in found.items()}


def train_both(*seeds):
    """Train in float32 and in bfloat16, side by side: ``{type: [results of each seed]}``.

    The list of a type that this processor refuses is empty.
    """
    both = "float32", "bfloat16"
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(lines_of, "train_in_type.py", dtype, *seeds) for dtype in both]
        found = dict(zip(both, (job.result() for job in jobs)))
    return {dtype: [line for line in f if "accuracy" in line] for dtype, f in found.items()}


def skip(way):
    """Let two workers meet an overflow; return the lines of each rank."""
    launch = "python", "tools/launch.py", "-n", 2, "-s", 1, "--launcher", "local"
    status, lines = run_quietly(*launch, "python", "notebooks/programs/skip_together.py", way)
    if status:
        raise RuntimeError("\n".join(lines[-20:]))
    found = [json.loads(line[line.index("{") :]) for line in lines if "{" in line]
    return [[line for line in found if line["rank"] == rank] for rank in range(2)]

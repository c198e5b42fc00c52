"""The instruction sets of the processor."""

from pathlib import Path


def processor_flags():
    """Return the processor's flags that Linux lists, such as ``avx512bw``; else an empty set."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return set()
    return set(next((line.split() for line in lines if line.startswith("flags")), ()))

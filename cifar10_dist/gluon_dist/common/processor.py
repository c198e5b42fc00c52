"""What the processor can do."""

from pathlib import Path


def processor_flags(cpuinfo="/proc/cpuinfo"):
    """Return what Linux says the processor can do, as a set of words such as ``avx512bw``."""
    try:
        lines = Path(cpuinfo).read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return set()
    return set(next((line.split() for line in lines if line.startswith("flags")), ()))

"""``--profile``: a trace of what MXNet does."""

import contextlib
from pathlib import Path

import mxnet as mx


@contextlib.contextmanager
def profiled(path, rank):
    """Write a trace of what MXNet does to a file, ``rank1_`` before its name for worker 1."""
    if path is None:
        yield
        return
    target = Path(path)
    name = target.with_name(f"rank{rank}_{target.name}" if rank else target.name)
    mx.profiler.set_config(profile_all=True, filename=str(name), continuous_dump=False)
    mx.profiler.set_state("run")
    try:
        yield
        mx.nd.waitall()
    finally:
        mx.profiler.set_state("stop")
        mx.profiler.dump()

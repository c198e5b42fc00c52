"""Make the process ready for MXNet 1.9.1: import this before mxnet, in every program and notebook.

MXNet reads its surroundings once, while it is imported. So the work is done by importing this
module, in this order; servers and the scheduler never return from it, as from ``import mxnet``:

- OMP_NUM_THREADS: MXNet assumes two hyper-threads a core, and starts only half as many threads as
  there are processors. Here it gets every processor this process may use, divided
  by the workers on this host (LAUNCH_LOCAL_WORKERS, from the launcher). A number you set stays.
- MXNET_USE_NUM_CORES_OPERATOR_TUNING: MXNet halves once more when it measures which operators are
  worth several threads; it is told the same number.
- PORT: ps-lite, below `kvstore='dist'`, listens on it. Containers often set PORT for a web server,
  which breaks every node, so it is removed.
- malloc: the C library returns the memory of a large message or batch to the system, which must
  fill it with zeros for the next one: that is slow. Here it is kept, unless you have tuned malloc
  yourself (MALLOC_…, GLIBC_TUNABLES).
- Shared libraries: mxnet-cu112 needs CUDA 11, which pip puts in site-packages/nvidia/*/lib, where
  the system's loader does not look. It finds a library that was loaded before with RTLD_GLOBAL.
  Where one of the system is missing, a line names it, and status 2 (ground/libraries.py).
- NumPy's old names: MXNet and GluonCV use np.bool, np.int and np.float, which NumPy 1.24 removed
  and 1.20 to 1.23 warn about. They were the built-in types, and are put back as such.
- scikit-learn and scipy.stats: MXNet imports them, with pandas, for mxnet.model.FeedForward (which
  Gluon replaced) and for its own tests. Without them the import takes two thirds of the time,
  which every process of a job pays. They stay away from MXNet only.
- setuptools: it puts itself in the place of Python's distutils, of which MXNet and GluonCV want to
  compare versions: a tenth of the import. (Python 3.12 has no distutils: there it stays.)
- Jobs: a worker ends at once on an exception, also in a callback from MXNet (ground/endings.py).
  Faults of MXNet that make weights wrong, or a job hang, are mended (ground/corrections.py).
"""

import ctypes
import os
import re
import sys
import warnings
from pathlib import Path

from ground import corrections, endings, environment, libraries
from ground.parameter_server import serve_if_told

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def usable_processors(cgroup_limit="/sys/fs/cgroup/cpu.max"):
    """Count the processors this process may use, by its affinity and its container's limit."""
    try:
        processors = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        processors = os.cpu_count() or 1
    try:
        quota_us, period_us = Path(cgroup_limit).read_text().split()
        processors = min(processors, max(1, int(quota_us) // int(period_us)))
    except (OSError, ValueError):  # no such file, or its first word is "max"
        pass
    return processors


def set_threads():
    """Share the processors out, unless the user has."""
    workers = environment.local_workers()
    threads = str(max(1, usable_processors() // workers))
    # A number inherited from a notebook that launches workers is this module's, not the user's.
    ours = os.environ.get("MXNET_SETUP_THREADS")
    os.environ.pop("MXNET_SETUP_THREADS", None)
    if os.environ.get("OMP_NUM_THREADS") in (None, "", ours):
        os.environ["OMP_NUM_THREADS"] = os.environ["MXNET_SETUP_THREADS"] = threads
    else:
        threads = os.environ["OMP_NUM_THREADS"].split(",")[0]  # "4,2": outer loops, inner ones
    if os.environ.get("MXNET_USE_NUM_CORES_OPERATOR_TUNING") in (None, "", ours):
        os.environ["MXNET_USE_NUM_CORES_OPERATOR_TUNING"] = threads


def remove_inherited_port():
    """Remove PORT, which is not meant for ps-lite."""
    os.environ.pop("PORT", None)


def keep_freed_memory():
    """Let the process use the memory of its last batches and messages for its next ones."""
    is_tuned = any(re.match("MALLOC_|GLIBC_TUNABLES$", name) for name in os.environ)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if mallopt and not is_tuned:
        mallopt(M_MMAP_THRESHOLD, 32 << 20)  # the largest that it takes
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def restore_numpy_names():
    """Put np.bool and its kind back, without the warning that asking for them gives."""
    try:
        import numpy
    except ImportError:
        return
    if int(numpy.__version__.split(".")[0]) > 1:
        found = f"{os.path.dirname(numpy.__file__)} is {numpy.__version__}"
        advice = "look at PYTHONPATH, then pip install 'numpy<2'"
        libraries.refuse("mxnet_setup", f"MXNet 1.9.1 needs NumPy 1, and {found}: {advice}")
    for builtin in (bool, int, float, complex, object, str):
        vars(numpy).setdefault(builtin.__name__, builtin)


def keep_setuptools_out():
    """Let distutils be Python's own; who imports setuptools still gets it."""
    hack = sys.modules.get("_distutils_hack")  # loaded at the start of Python
    if hack and sys.version_info < (3, 12):
        hack.remove_shim()


class NotForMXNet:
    """A finder that hides what MXNet can do without, as long as mxnet is being imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Raise ImportError for such a module, and leave the search for others to others."""
        if name in ("sklearn", "scipy.stats"):
            mxnet = sys.modules.get("mxnet")
            if mxnet is not None and mxnet.__spec__._initializing:
                raise ModuleNotFoundError("MXNet does without", name=name)


if "mxnet" in sys.modules:
    warnings.warn(
        "import mxnet_setup before mxnet: it is too late to set its threads", stacklevel=2
    )
set_threads()
remove_inherited_port()
keep_freed_memory()
libraries.load_cuda()
libraries.require("mxnet_setup")
restore_numpy_names()
keep_setuptools_out()
sys.meta_path.insert(0, NotForMXNet)
serve_if_told()
if os.environ.get("DMLC_ROLE") == "worker":
    endings.end_on_exceptions()
    corrections.correct_mxnet()

"""What MXNet 1.9.1 needs of its process, before it is imported: it reads these settings once."""

import contextlib
import ctypes
import os
import re
import sys
from pathlib import Path

from gluon_dist.setup import environment, libraries

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
OURS = "GLUON_DIST_THREADS"  # the number that was set here, and not by the user


def usable_processors(cgroup_limit="/sys/fs/cgroup/cpu.max"):
    """Count the processors this process may use, by its affinity and its container's limit."""
    try:
        processors = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        processors = os.cpu_count() or 1
    try:
        quota_us, period_us = Path(cgroup_limit).read_text(encoding="utf-8").split()
        processors = min(processors, max(1, int(quota_us) // int(period_us)))
    except (OSError, ValueError):  # no such file, or its first word is "max"
        pass
    return processors


def set_threads():
    """Set OMP_NUM_THREADS to the usable processors, divided by the workers on this host.

    MXNet assumes two hyper-threads a core, and starts half as many threads as there are processors.
    It halves once more when it measures which operators are worth several threads:
    MXNET_USE_NUM_CORES_OPERATOR_TUNING tells it the same number. A number that you set stays; of a
    list (4,2: outer loops, inner ones) the first, for with a list MXNet aborts.
    """
    threads = str(max(1, usable_processors() // environment.local_workers()))
    ours = os.environ.pop(OURS, None)  # inherited, from a notebook that starts workers
    if os.environ.get("OMP_NUM_THREADS") in (None, "", ours):
        os.environ["OMP_NUM_THREADS"] = os.environ[OURS] = threads
    else:
        threads = os.environ["OMP_NUM_THREADS"].split(",")[0]
        os.environ["OMP_NUM_THREADS"] = threads
    if os.environ.get("MXNET_USE_NUM_CORES_OPERATOR_TUNING") in (None, "", ours):
        os.environ["MXNET_USE_NUM_CORES_OPERATOR_TUNING"] = threads


def remove_port():
    """Remove PORT from the environment.

    ps-lite, below ``kvstore='dist'``, would listen on it. Containers often set it for a web server,
    and then every node fails.
    """
    os.environ.pop("PORT", None)


def keep_freed_memory():
    """Let malloc keep freed memory, unless you have tuned it (MALLOC_…, GLIBC_TUNABLES).

    The C library returns the memory of a large message or batch to the system, which must fill it
    with zeros for the next one: that is slow.
    """
    is_tuned = any(re.match("MALLOC_|GLIBC_TUNABLES$", name) for name in os.environ)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it
    if mallopt and not is_tuned:
        mallopt(M_MMAP_THRESHOLD, 32 << 20)  # the largest that it takes
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def load_libraries():
    """Load the CUDA 11 libraries that pip installed, for mxnet-cu112 alone.

    pip puts them into site-packages/nvidia/*/lib, where the system's loader does not look. Where a
    library of the system is missing, a line names it, and the status is 2.
    """
    libraries.load_cuda()
    libraries.require("gluon_dist")


def restore_numpy_names():
    """Put np.bool, np.int and their kind back.

    MXNet and GluonCV use them. NumPy 1.24 removed them, and 1.20 to 1.23 warn about them. They were
    the built-in types. With NumPy 2 a line says that MXNet needs NumPy 1, and the status is 2.
    """
    try:
        import numpy
    except ImportError:
        return
    if int(numpy.__version__.split(".")[0]) > 1:
        found = f"{os.path.dirname(numpy.__file__)} is {numpy.__version__}"
        advice = "look at PYTHONPATH, then pip install 'numpy<2'"
        libraries.refuse("gluon_dist", f"MXNet 1.9.1 needs NumPy 1, and {found}: {advice}")
    for builtin in (bool, int, float, complex, object, str):
        vars(numpy).setdefault(builtin.__name__, builtin)


def keep_setuptools_out():
    """Let distutils be Python's own; who imports setuptools still gets it.

    setuptools puts itself in its place, and MXNet and GluonCV only compare versions with it.
    (Python 3.12 has no distutils: there it stays.)
    """
    hack = sys.modules.get("_distutils_hack")  # loaded at the start of Python
    if hack and sys.version_info < (3, 12):
        hack.remove_shim()


@contextlib.contextmanager
def unneeded_modules_hidden():
    """Hide scikit-learn and scipy.stats, as long as mxnet is being imported.

    MXNet imports them, with pandas, for mxnet.model.FeedForward (which Gluon replaced) and for its
    own tests. Every process of a job would wait for them.
    """
    sys.meta_path.insert(0, _Hidden)
    try:
        yield
    finally:
        sys.meta_path.remove(_Hidden)


class _Hidden:
    """A finder that hides what MXNet can do without."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Raise ImportError for such a module, and leave the search for others to others."""
        if name in ("sklearn", "scipy.stats"):
            raise ModuleNotFoundError("MXNet does without", name=name)

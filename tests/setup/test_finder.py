"""The process is made ready for MXNet at its import, so every test has a process of its own."""

import ctypes
import os
import subprocess
import sys
from importlib import util
from pathlib import Path

import gluon_dist
from gluon_dist.setup.process import OURS as SET_HERE
from gluon_dist.setup.process import usable_processors

import pytest

TIME_BUDGET_S = 40
OURS = ("OMP_NUM_THREADS", "MXNET_USE_NUM_CORES_OPERATOR_TUNING", SET_HERE)
THREADS = f"print(os.environ['{OURS[0]}'], os.environ['{OURS[1]}'])"


def after_import(code, *, before="", **options):
    """What `code` prints in a new process that imported MXNet after gluon_dist."""
    return run(f"import os\n{before}\nimport gluon_dist, mxnet\n{code}", **options)


def threads(before="", **env):
    """What the import of MXNet would set, in a new process, without the import."""
    imports = f"import os\n{before}\nfrom gluon_dist.setup.process import set_threads"
    return run(f"{imports}; set_threads(); {THREADS}", **env)


def run(code, *, python=(sys.executable,), **env):
    """What `code` prints in a new process; stderr must stay empty."""
    clean = {name: value for name, value in os.environ.items() if name not in OURS}
    done = subprocess.run(
        [*python, "-c", code],
        env={**clean, "PYTHONPATH": str(Path(gluon_dist.__file__).parents[1]), **env},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_mxnet_gets_every_processor_this_process_may_use():
    number = usable_processors()
    assert 1 <= number <= os.cpu_count()
    assert after_import(THREADS) == f"{number} {number}"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux binds processes")
def test_a_process_bound_to_one_processor_gets_one_thread():
    bind = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
    assert threads(bind) == "1 1"


@pytest.mark.parametrize("quota_us", [50000, 100000, 199999])
def test_a_container_limited_to_one_processor_gets_one_thread(tmp_path, quota_us):
    (tmp_path / "cpu.max").write_text(f"{quota_us} 100000\n")
    assert usable_processors(tmp_path / "cpu.max") == 1


def test_a_container_without_a_limit_gets_every_processor(tmp_path):
    (tmp_path / "cpu.max").write_text("max 100000\n")
    every = usable_processors(tmp_path / "no such file")
    assert usable_processors(tmp_path / "cpu.max") == every


def test_workers_on_one_host_share_its_processors():
    many = str(os.cpu_count())
    assert threads(LAUNCH_LOCAL_WORKERS=many) == "1 1"
    assert threads(LAUNCH_LOCAL_WORKERS="1000") == "1 1"


def test_a_server_on_a_host_without_workers_starts():
    assert threads(LAUNCH_LOCAL_WORKERS="0") == threads()


def test_a_number_of_threads_set_by_the_user_stays():
    assert threads(OMP_NUM_THREADS="7") == "7 7"
    assert after_import(THREADS, OMP_NUM_THREADS="4,2") == "4 4"  # with the list MXNet aborts
    assert threads(OMP_NUM_THREADS="7", **{OURS[1]: "3"}) == "7 3"


def test_a_number_of_threads_set_by_the_user_stays_in_what_is_launched():
    sets = f"import os; from gluon_dist.setup.process import set_threads; set_threads(); {THREADS}"
    code = f"{sets}; import subprocess, sys; subprocess.run([sys.executable, '-c', {sets!r}])"
    many = {"LAUNCH_LOCAL_WORKERS": "1000", "PYTHONUNBUFFERED": "1"}
    assert run(code, OMP_NUM_THREADS="7", **many) == "7 7\n7 7"
    assert run(code, **many) == "1 1\n1 1"


def test_workers_launched_from_a_notebook_do_not_take_its_number_for_the_users():
    inherited = dict.fromkeys(OURS, "64")
    assert threads(LAUNCH_LOCAL_WORKERS="1000", **inherited) == "1 1"


def test_an_inherited_port_is_removed():
    assert after_import("print(os.environ.get('PORT'))", PORT="8080") == "None"


def test_numpys_old_names_are_the_builtin_types_and_give_no_warning():
    code = "from gluon_dist.setup.process import restore_numpy_names; restore_numpy_names()\n"
    code += "import numpy; print(numpy.bool is bool, numpy.int is int, numpy.float is float)"
    assert run(code, python=(sys.executable, "-W", "error")) == "True True True"


def test_importing_mxnet_and_gluoncv_prints_nothing():
    code = "import mxnet, gluoncv; print(mxnet.__version__)"
    assert after_import(code) == "1.9.1"


def test_mxnet_is_imported_without_what_it_does_without_and_others_have_it():
    heavy = "{'sklearn', 'pandas', 'scipy.stats'}"
    code = f"import sys, mxnet; print({heavy} & set(sys.modules))\nimport sklearn, scipy.stats"
    assert after_import(code) == "set()"


@pytest.mark.skipif(util.find_spec("setuptools") is None, reason="needs setuptools")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python 3.12 has no distutils")
def test_setuptools_comes_with_neither_mxnet_nor_gluoncv_and_is_there_for_others():
    code = """
import sys, warnings, mxnet, gluoncv
print({"setuptools", "pkg_resources"} & set(sys.modules))
warnings.simplefilter("ignore")  # setuptools says that it comes after distutils
import setuptools
print(setuptools.setup.__name__)
"""
    assert after_import(code).splitlines() == ["set()", "setup"]


def test_numpy_2_is_refused_with_a_line_that_says_where_it_is(tmp_path):
    """As on a cluster whose modules set PYTHONPATH."""
    (tmp_path / "numpy.py").write_text("__version__ = '2.2.6'")
    path = f"{tmp_path}{os.pathsep}{Path(gluon_dist.__file__).parents[1]}"
    command = [sys.executable, "-c", "import gluon_dist, mxnet"]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"{tmp_path} is 2.2.6: look at PYTHONPATH" in done.stderr


def test_it_imports_where_neither_mxnet_nor_numpy_is_installed():
    python = (sys.executable, "-S")
    code = "import gluon_dist; print('fine')"
    assert run(code, python=python) == "fine"


def test_importing_it_after_mxnet_says_that_it_is_too_late():
    code = "import mxnet, gluon_dist"
    env = {**os.environ, "PYTHONPATH": str(Path(gluon_dist.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, stderr=subprocess.PIPE)
    assert b"import gluon_dist before mxnet" in done.stderr


@pytest.mark.parametrize("role", ["scheduler", "server", "worker"])
def test_its_import_changes_nothing_in_any_role(role):
    code = """
import os, sys
before = dict(os.environ), sys.excepthook, sys.unraisablehook
import gluon_dist
print(before == (dict(os.environ), sys.excepthook, sys.unraisablehook))
print({"mxnet", "numpy", "ctypes"} & set(sys.modules))
"""
    job = {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "1", "PORT": "8080"}
    assert run(code, DMLC_ROLE=role, **job).splitlines() == ["True", "set()"]


def test_all_that_it_changes_is_listed_with_its_reason():
    said = run("import gluon_dist; gluon_dist.explain()")
    assert "\n  wait_for_weights (MXNet 1.9.1)\n    Let KVStore.broadcast" in said


MAPPED_BY_MALLOC = """
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
class Info(ctypes.Structure):
    _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]
libc.mallinfo2.restype = Info
before = libc.mallinfo2().field3
libc.malloc(16 << 20)
print(libc.mallinfo2().field3 - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="needs glibc 2.33")
def test_large_blocks_come_from_what_the_process_keeps_not_from_the_system():
    """The fourth field of mallinfo2 counts blocks that are mapped one by one, and given back."""
    assert after_import(MAPPED_BY_MALLOC) == "0"
    assert after_import(MAPPED_BY_MALLOC, GLIBC_TUNABLES="glibc.malloc.arena_test=8") == "1"

"""A program that imports mxnet and nothing of ours, in a process that the launcher has started."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import gluon_dist
from gluon_dist.setup import patches

import mxnet as mx
import pytest

TIME_BUDGET_S = 30
PACKAGE = pathlib.Path(gluon_dist.__file__).parent
IS_PREPARED = "print(sys.excepthook.__module__.startswith('gluon_dist'), flush=True)"
IMPORTS = f"import sys, mxnet; {IS_PREPARED}"


def run(code, *, python=sys.executable, package=PACKAGE, before=(), status=0, in_job=True, **env):
    """What `code` prints in a new process, and its standard error."""
    places = os.pathsep.join(map(str, [package / "startup", *before]))
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "LAUNCH_", "OMP_"))}
    environ = {**clean, "PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1", **env}
    environ.update({"DMLC_ROLE": "worker"} if in_job else {})
    done = subprocess.run([python, "-c", code], env=environ, capture_output=True, timeout=120)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode().split(), done.stderr.decode()


def test_mxnet_is_made_right_where_it_is_imported_and_not_before():
    code = f"""if True:
        import importlib, importlib.util, inspect, sys
        places, spec = list(sys.path), importlib.util.find_spec("mxnet")
        print("gluon_dist" in sys.modules, spec.origin)
        import mxnet, numpy
        {IS_PREPARED}
        print(numpy.bool is bool, places == sys.path[: len(places)])
        print(inspect.getsourcefile(mxnet) == spec.origin)
        before = mxnet.kvstore.KVStore.push
        importlib.reload(mxnet)
        print(mxnet.kvstore.KVStore.push is before)
        import gluon_dist, scipy.stats
        print(len([name for name in sys.modules if name == "gluon_dist"]))"""
    (asked, origin, *words), error = run(code)
    assert (asked, words) == ("False", ["True"] * 5 + ["1"])
    assert os.path.exists(origin) and error == ""


def test_without_a_job_nothing_happens():
    assert run(IMPORTS, in_job=False) == (["False"], "")


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.13"])
def test_every_python_reads_it(version):
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = sorted(pyenv.glob(f"{version}.*/bin/python"))
    if not found:
        pytest.skip(f"no Python {version} under pyenv")
    code = "import sys; print('%s.%s' % sys.version_info[:2], sys.modules['sitecustomize'] is None)"
    words, error = run(code, python=found[0])
    assert version in words[0] + words[1] and error == ""


def test_the_sitecustomize_of_the_user_is_imported_once_by_its_own_name(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; print('own', __name__)")
    code = f"import sitecustomize; print(sitecustomize.__file__); {IMPORTS}"
    words, error = run(code, before=[tmp_path])
    own = str(tmp_path / "sitecustomize.py")
    assert words == ["own", "sitecustomize", own, "True"] and error == ""


def test_a_sitecustomize_that_fails_is_told_by_python_and_the_rest_works(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('own')")
    words, error = run(IMPORTS, before=[tmp_path])
    assert words == ["True"] and error.splitlines()[-1] == "ValueError: own"


def test_one_that_imports_no_other_begins_it_by_its_entry_point(tmp_path):
    """As that of opentelemetry-instrument."""
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "for distribution in metadata.distributions():\n"
        "  for entry in distribution.entry_points:\n"
        "    if entry.group == 'opentelemetry_pre_instrument': entry.load()()"
    )
    places = os.pathsep.join([str(tmp_path), str(PACKAGE / "startup")])
    assert run(IMPORTS, PYTHONPATH=places)[0] == ["True"]


def test_a_finder_that_asks_all_others_prepares_it_once():
    """As that of ddtrace-run."""
    code = """if True:
        import importlib.util, sys
        class Asking:
            is_asking = False
            def find_spec(self, *args):
                if self.is_asking: return None
                self.is_asking = True
                try: return importlib.util.find_spec(args[0])
                finally: self.is_asking = False
        sys.meta_path.insert(1, Asking())
        import mxnet
        plain = mxnet.kvstore.KVStore.set_optimizer.__wrapped__
        print(hasattr(plain, "__wrapped__"))"""
    assert run(code) == (["False"], "")


def test_a_failure_to_prepare_ends_the_process_with_one_line(tmp_path):
    """Python would print what fails in sitecustomize, and go on."""
    words, error = run("import mxnet; print('on')", LAUNCH_LOCAL_WORKERS="many", status=1)
    assert words == [] and len(error.splitlines()) == 1
    assert "MXNet could not be made ready: ValueError" in error and "--no-prepare" in error
    broken = tmp_path / "gluon_dist"
    shutil.copytree(PACKAGE, broken, ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "contract.py").write_text("not Python")
    words, error = run("import mxnet; print('on')", package=broken, status=1)
    assert words == [] and len(error.splitlines()) == 1
    assert "gluon_dist could not be imported" in error and "--no-prepare" in error


@pytest.mark.long
def test_children_of_a_worker_are_no_workers_and_a_second_try_is_one(tmp_path):
    """A file has the number of the worker, as the launcher's processes are told."""
    (tmp_path / "child.py").write_text(f"def look():\n    {IMPORTS}")
    code = f"""if True:
        import multiprocessing, subprocess, sys
        multiprocessing.set_start_method("forkserver")
        early = multiprocessing.Process(target=print, args=("early",))
        early.start(); early.join()  # its server knows nothing of what this process becomes
        {IMPORTS}
        from child import look
        for method in "spawn", "forkserver":
            other = multiprocessing.get_context(method).Process(target=look)
            other.start(); other.join()
        subprocess.run([sys.executable, "-c", {IMPORTS!r}])"""
    claim = tmp_path / "worker-0"
    for _ in range(2):
        words, error = run(code, before=[tmp_path], LAUNCH_PREPARED=str(claim))
        assert words == ["early", "True", "False", "False", "False"] and error == ""
    assert claim.read_text().isdigit()


def test_another_mxnet_stays_as_it_is_and_a_line_says_so(tmp_path):
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").write_text("from .libinfo import __version__")
    (tmp_path / "mxnet" / "libinfo.py").write_text("__version__ = '1.8.0'")
    words, error = run(f"{IMPORTS}; print(mxnet.__version__)", before=[tmp_path])
    assert words == ["False", "1.8.0"] and len(error.splitlines()) == 1
    assert "gluon_dist: MXNet 1.8.0 stays as it is" in error


def test_a_host_without_the_package_gets_the_launchers():
    code = "import gluon_dist, sys; print(gluon_dist.__file__, 'mxnet' in sys.modules)"
    words, error = run(code, python=getattr(sys, "_base_executable", sys.executable))
    assert words == [str(PACKAGE / "__init__.py"), "False"] and error == ""


def test_without_cloudpickle_a_class_that_pickle_cannot_send_is_refused_in_a_line(monkeypatch):
    class Local(mx.optimizer.SGD):
        """Has no name by which a server could find it."""

    monkeypatch.setattr(patches, "cloudpickle", pickle)
    with pytest.raises(patches.Refused, match="pip install cloudpickle"):
        patches.ByValue.dumps(Local(), 0)

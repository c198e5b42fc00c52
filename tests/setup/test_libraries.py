"""What MXNet needs of the system, where it is not: the system's copies are hidden."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from gluon_dist.setup import libraries

import mxnet
import pytest

from launching import ROOT

TIME_BUDGET_S = 10
PACKAGES = Path(mxnet.__file__).parent.parent
FOLDER = ROOT / "cifar10_dist"
COPY = [sys.executable, str(FOLDER / "gluon_dist" / "setup" / "libraries.py")]
TRAIN = [
    sys.executable,
    "-c",
    "import gluon_dist, mxnet as mx; print(mx.nd.ones(2).sum().asscalar())",
]
HIDE = 'for path in $HIDDEN; do mount --bind /dev/null "$path"; done; exec "$@"'
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or os.geteuid() != 0,
    reason="needs Linux on x86-64, and root to hide libraries",
)


def paths_of(name):
    """Where the system's loader finds a library: nowhere on a bare machine."""
    found = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    return re.findall(rf"^\s*{re.escape(name)} .* => (\S+)$", found, re.M)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A folder of packages with a copy of MXNet, links to the others, and no library beside."""

    def link(source, target):
        try:
            os.link(source, target)
        except OSError:  # another disk
            shutil.copy(source, target)

    folder = tmp_path_factory.mktemp("packages")
    copied = dict.fromkeys(libraries.IN_PACKAGES)  # on a bare machine setup has put them there
    for package in PACKAGES.iterdir():
        if package.name == "mxnet":
            shutil.copytree(
                package,
                folder / "mxnet",
                copy_function=link,
                ignore=lambda _, names: copied.keys() & set(names),
            )
        else:
            (folder / package.name).symlink_to(package)
    return folder


def run(environment, command, *hidden):
    """Run a command where libraries of the system are not there."""
    env = {**os.environ, "PYTHONPATH": f"{environment}:{FOLDER}"}
    env["HIDDEN"] = " ".join(path for name in hidden for path in paths_of(name))
    words = ["unshare", "--mount", "sh", "-c", HIDE, "sh", *command]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=100)


@pytest.mark.skipif(not paths_of("libgomp.so.1"), reason="this system has no libgomp")
def test_what_the_system_has_is_left_alone(environment):
    assert run(environment, COPY).returncode == 0
    assert not (environment / "mxnet" / "libgomp.so.1").exists()


def test_what_is_missing_is_one_line_until_it_is_copied(environment):
    done = run(environment, TRAIN, *libraries.IN_PACKAGES)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "MXNet needs libgomp.so.1, libquadmath.so.0: not found on this" in done.stderr
    assert "apt-get install libgomp1 libquadmath0 (Debian, Ubuntu)" in done.stderr
    assert f"or, without root, {' '.join(COPY)}" in done.stderr

    done = run(environment, COPY, *libraries.IN_PACKAGES)
    assert (done.returncode, done.stdout.count("copied"), done.stderr) == (0, 2, "")
    done = run(environment, TRAIN, *libraries.IN_PACKAGES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0\n", "")


def test_a_package_that_has_a_library_is_named_where_it_is_not_installed(environment):
    """After `pip install`, without scikit-learn."""
    for name in libraries.IN_PACKAGES:
        (environment / "mxnet" / name).unlink(missing_ok=True)
    (environment / "scikit_learn.libs").unlink()
    try:
        done = run(environment, COPY, *libraries.IN_PACKAGES)
    finally:
        (environment / "scikit_learn.libs").symlink_to(PACKAGES / "scikit_learn.libs")
    assert (done.returncode, done.stdout.count("copied"), done.stderr) == (2, 1, "")
    line = f"or, without root, {sys.executable} -m pip install --no-deps scikit-learn && "
    assert "MXNet needs libgomp.so.1: not" in done.stdout and line + " ".join(COPY) in done.stdout


def test_what_no_package_has_is_told_before_anything_is_downloaded(tmp_path):
    """An MXNet that the Python has already is not the one that will be installed."""
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "libmxnet.so").touch()
    (tmp_path / "mxnet_cu112.dist-info").mkdir()
    (tmp_path / "mxnet_cu112.dist-info" / "METADATA").write_text("Name: mxnet-cu112\nVersion: 1\n")
    done = run(tmp_path, [*COPY, "--before-mxnet"], "libstdc++.so.6", *libraries.IN_PACKAGES)
    assert (done.returncode, done.stdout.count("\n")) == (2, 1)
    assert "MXNet needs libstdc++.so.6: not found on this machine; apt-get" in done.stdout


def test_on_arm_it_is_told_that_the_wheel_needs_arms_own_libraries(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert set(libraries.OF_ARM) <= set(libraries.missing())
    assert "install Arm Performance Libraries" in libraries.explain(libraries.missing())


def test_the_launchers_check_of_a_host_names_what_is_missing(environment):
    for path in [environment / "mxnet" / name for name in libraries.IN_PACKAGES]:
        path.unlink(missing_ok=True)
    check = [sys.executable, str(ROOT / "tools" / "launch.py"), "-n", "1", "--check"]
    done = run(environment, [*check, sys.executable, "x.py"], *libraries.IN_PACKAGES)
    assert done.returncode == 2
    assert "libgomp.so.1: cannot open shared object file" in done.stderr
    assert "hint: MXNet needs libraries of the system: apt-get install" in done.stderr

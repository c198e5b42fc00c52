"""The package: what a wheel of it holds, and how it works in an environment of its user's own.

The wheel is built once, of a source distribution, and installed beside the packages of this Python.
"""

import email
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

from gluon_dist import contract

import pytest
from packaging.requirements import Requirement

from gluon_launch.remote.container import agree
from launching import PROGRAMS, ROOT

TIME_BUDGET_S = 60
PACKAGES = {"gluon_dist": ROOT / "cifar10_dist", "gluon_launch": ROOT / "tools"}
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "-q")
OFFLINE = ("--no-deps", "--no-index", "--no-build-isolation")
# What a user may call the modules of a program.
THEIRS = ("networks", "run", "loader", "workers", "sampler", "training", "saving", "job", "options")


def run(*command, cwd=None, status=0):
    """What a command prints; nothing of ours is on its path."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHONPATH", "DMLC_"))}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of what is packed: setuptools would leave files in the project itself."""
    folder = tmp_path_factory.mktemp("project") / "a clone"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for room in ("cifar10_dist", "tools", "tests"):
        shutil.copytree(ROOT / room, folder / room, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def wheel(clone):
    """The path of a wheel."""
    build = "from setuptools import build_meta; print('made', build_meta.build_sdist('dist'))"
    (source,) = re.findall("^made (.*)", run(sys.executable, "-c", build, cwd=clone), re.M)
    with tarfile.open(clone / "dist" / source) as archive:
        archive.extractall(clone / "dist")
    unpacked = clone / "dist" / source.replace(".tar.gz", "")
    run(sys.executable, *PIP, "wheel", *OFFLINE, "-w", clone / "dist", unpacked)
    (path,) = (clone / "dist").glob("*.whl")
    return path


def environment(folder, *what):
    """A virtual environment with this Python's packages, but for ours, and with what is said."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(folder / "bin" / "python", *PIP, "install", *OFFLINE, *what)
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of programs of an environment with the wheel."""
    return environment(tmp_path_factory.mktemp("own") / "venv", wheel)


@pytest.fixture(scope="module")
def editable(clone, tmp_path_factory):
    """The same, installed as `make setup` does."""
    return environment(tmp_path_factory.mktemp("editable") / "venv", "-e", clone)


@pytest.fixture(scope="module")
def metadata(wheel):
    """What the wheel says about itself, and the names of the files in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = [name for name in names if re.fullmatch("[^/]+/METADATA", name)]
        return email.message_from_bytes(archive.read(about)), names


def asked_for(metadata, extra):
    """The requirements of an extra, or of all."""
    lines = metadata.get_all("Requires-Dist")
    of_extra = [line for line in lines if ("extra ==" in line) == bool(extra)]
    return [line for line in map(Requirement, of_extra) if not extra or extra in str(line.marker)]


def test_a_wheel_holds_all_files_of_the_two_packages_and_no_others(metadata):
    packed = {name for name in metadata[1] if not re.match("[^/]+\\.dist-info/", name)}
    files = {
        path.relative_to(folder).as_posix()
        for name, folder in PACKAGES.items()
        for path in (folder / name).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"gluon_dist/py.typed", "gluon_launch/remote/container.py"} <= files
    assert packed == files


def test_a_wheel_says_what_it_is(metadata):
    about, names = metadata
    assert (about["Name"], about["Version"]) == ("gluon-dist", contract.VERSION)
    assert set(about["Requires-Python"].split(",")) == {">=3.8", "<3.13"}
    assert set(about.get_all("Provides-Extra")) == {"cpu", "gpu"}
    assert about.get_payload().startswith("# Distributed training with Apache MXNet Gluon")
    assert [name for name in names if re.search(r"\.dist-info/(licenses/)?LICENSE$", name)]


@pytest.mark.parametrize("extra, file", [("cpu", "-cpu"), ("gpu", "")])
def test_an_extra_asks_for_what_make_setup_installs(metadata, extra, file):
    lines = (ROOT / f"requirements{file}.txt").read_text().splitlines()
    pinned = {line for line in lines if re.match(r"\w", line)}
    assert pinned
    assert {str(line).split(";")[0] for line in asked_for(metadata[0], extra)} == pinned


def test_what_make_setup_installs_is_what_the_package_asks_for(metadata):
    lines = (ROOT / "requirements-common.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if re.match(r"\w", line)]
    for wanted in asked_for(metadata[0], None):
        fitting = [pin for pin in pins if (pin.name, pin.marker) == (wanted.name, wanted.marker)]
        fitting = fitting or [pin for pin in pins if pin.name == wanted.name]
        (version,) = [spec.version for pin in fitting for spec in pin.specifier]
        assert version in wanted.specifier, wanted


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_nothing_else_of_the_project_is_on_the_path_of_a_program(request, tmp_path, way):
    python = request.getfixturevalue(way) / "python"
    names = {path.stem for folder in PACKAGES.values() for path in folder.iterdir()}
    names.discard("__pycache__")
    assert {"run", "training", "launch"} <= names
    code = f"from importlib import util; print([n for n in {sorted(names)} if util.find_spec(n)])\n"
    code += "import gluon_dist; print(gluon_dist.__file__)"
    found, place = run(python, "-c", code, cwd=tmp_path).splitlines()
    assert found == str(sorted(PACKAGES))
    assert ("site-packages" in place) == (way == "installed") and str(ROOT) not in place


@pytest.mark.parametrize("way", ["installed", "editable"])
def test_a_program_with_modules_of_its_own_trains_on_two_workers(request, tmp_path, way):
    for name in THEIRS:
        (tmp_path / f"{name}.py").write_text("WHOSE = 'mine'\n")
    shutil.copy(PROGRAMS / "with_own_modules.py", tmp_path / "program.py")
    launch = (request.getfixturevalue(way) / "gluon-launch", "-n", 2, "--timeout", 100)
    said = run(*launch, "python", "program.py", *THEIRS, cwd=tmp_path)
    assert sorted(line for line in said.splitlines() if "[launch]" not in line) == [
        f"[worker {rank}] rank {rank} of 2, sum 3.0 mine" for rank in (0, 1)
    ]


@pytest.mark.parametrize("name", ["gluon-launch", "python -m gluon_launch", "launch.py"])
def test_the_launcher_answers_by_the_name_that_was_called(installed, name):
    command = {
        "gluon-launch": [installed / "gluon-launch"],
        "launch.py": [installed / "python", ROOT / "tools" / "launch.py"],
    }.get(name, [installed / "python", *name.split()[1:]])
    assert run(*command, "--version") == f"{name} {contract.VERSION}\n"
    help_ = run(*command, "--help")
    assert help_.startswith(f"usage: {name} -n N") and f"    {name} -n 2 python train" in help_
    for words in (("-n", 2, "--no-such-option"), ("-n", 1, "--p3", "-s", 0, "true")):
        assert run(*command, *words, status=2).startswith(f"{name}: error: ")


@pytest.mark.parametrize("system", ["slurm", "sge"])
def test_a_batch_script_calls_the_launcher_that_is_installed(installed, tmp_path, system):
    """Also where modules in the folder of the job are called as Python's own."""
    for name in ("signal", "types", "random"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the library')\n")
    words = ("-n", 2, "--launcher", system, "--dry-run", "python", "x y.py")
    script = run(installed / "gluon-launch", *words, cwd=tmp_path)
    (line,) = re.findall(r"^(.*) -n 2 --launcher .* python 'x y.py' &$", script, re.M)
    assert str(installed) in line and str(ROOT) not in line
    said = run("bash", "-c", f"{line} --version", cwd=tmp_path)
    assert said == f"python -m gluon_launch {contract.VERSION}\n"


def test_the_other_end_of_a_container_works_where_it_is_installed(installed, tmp_path):
    find = "from gluon_launch.starting.yarn import RELAY; print(RELAY)"
    relay = run(installed / "python", "-c", find, cwd=tmp_path).strip()
    assert "site-packages" in relay
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        process = subprocess.Popen(
            [installed / "python", "-I", relay, str(listener.fileno())],
            pass_fds=[listener.fileno()],
            env={"LAUNCH_CONTAINER_KEY": "ab" * 32},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with socket.create_connection(listener.getsockname(), 20) as container:
            assert agree(container, bytes.fromhex("ab" * 32), b"container", b"launcher")
            container.sendall(b"a report\n")
        out, err = process.communicate(timeout=20)
    assert out == b"a report\n" and b"YARN ended the container" in err


def test_the_launcher_of_a_clone_needs_nothing_but_python(tmp_path):
    """With -I and -S no package is there, and no variable counts."""
    launcher = ROOT / "tools" / "launch.py"
    code = f"import runpy, sys; sys.argv = [{str(launcher)!r}, '--help']\n"
    code += "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
    code += "except SystemExit: print(*sys.modules, sep='\\n', file=sys.stderr)"
    words = [sys.executable, "-S", "-I", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    loaded = set(done.stderr.split())
    assert done.stdout.startswith("usage: launch.py -n N") and "gluon_launch.main" in loaded
    ours = {name for name in loaded if name.split(".")[0] == "gluon_dist"}
    finder = {"gluon_dist.setup", "gluon_dist.setup.finder"}  # registered, and of no effect here
    assert ours == {"gluon_dist", "gluon_dist.contract", *finder}
    assert not {"mxnet", "numpy", "ctypes", "pip", "setuptools"} & loaded

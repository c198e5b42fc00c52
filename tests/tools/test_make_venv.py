"""make_venv.py, run as `make setup` runs it, on a project that asks for no packages."""

import errno
import fcntl
import hashlib
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import make_horovod
import make_venv
from launching import ROOT

TIME_BUDGET_S = 130
DEVICES = ("gpu", "cpu")
# A package without a module, which is built without setuptools: nothing has to be downloaded.
NO_PACKAGE = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "empty-1-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for file, text in ABOUT.items():
            wheel.writestr(f"empty-1.dist-info/{file}", text.format("empty"))
    return name
"""
ABOUT = {
    "METADATA": "Metadata-Version: 2.1\nName: {}\nVersion: 1\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}
PYTHON = os.path.realpath(sys.executable)  # the interpreter that .venv links to


@pytest.fixture
def project(tmp_path):
    """A folder with make_venv.py and empty requirement files: building takes a few seconds."""
    programs = (make_venv.__file__, make_horovod.__file__, make_venv.LIBRARIES)
    for program in (ROOT / "Makefile", *programs):
        copy = tmp_path / Path(program).relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, copy)
    for name in make_venv.FILES:
        (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_text(NO_PACKAGE)
    (tmp_path / "backend.py").write_text(f"ABOUT = {ABOUT}\n{BACKEND}")
    return tmp_path


def command(project, *options):
    return [PYTHON, str(project / "tools" / "make_venv.py"), *options]


def make(project, *options, prefix=(), **env):
    """Run make_venv.py; return its exit status and all that it said."""
    done = subprocess.run(
        [*prefix, *command(project, *options)],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


@pytest.fixture
def choose_with_card(tmp_path, monkeypatch):
    """Returns the device that is chosen if nvidia-smi gives an answer, and the reason."""

    def choose(answer, status=0):
        smi = tmp_path / "nvidia-smi"
        smi.write_text(f"#!/bin/sh\necho '{answer}'\nexit {status}\n")
        smi.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return make_venv.choose_device()

    return choose


linux_x86_64 = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="needs Linux x86-64"
)


@linux_x86_64
@pytest.mark.parametrize("capability", ["5.0", "6.1", "7.5", "8.0", "8.6", "8.9"])
def test_a_card_that_the_wheel_has_code_for_gets_the_gpu_packages(choose_with_card, capability):
    assert choose_with_card(f"{capability}, Some Card") == ("gpu", None)


@linux_x86_64
@pytest.mark.parametrize("capability", ["3.7", "9.0", "12.0"])
def test_another_card_gets_the_cpu_packages_and_a_line_that_says_why(choose_with_card, capability):
    device, why = choose_with_card(f"{capability}, Some Card")
    assert device == "cpu"
    assert f"5.0 to 8.x, and Some Card has {capability}" in why


@linux_x86_64
def test_a_driver_that_does_not_answer_gets_the_cpu_packages_and_a_line_that_says_why(
    choose_with_card,
):
    device, why = choose_with_card("couldn t talk to the driver", 9)
    assert device == "cpu"
    assert "nvidia-smi names no card" in why


def test_no_driver_gets_the_cpu_packages_without_further_words(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert make_venv.choose_device() == ("cpu", None)


@linux_x86_64
@pytest.mark.parametrize("device", DEVICES)
def test_the_user_has_the_last_word_on_the_device(project, device):
    python = project / "python"  # that builds nothing
    python.write_text(f'#!/bin/sh\n[ "$2" != venv ] && exec {PYTHON} "$@"\n')
    python.chmod(0o755)
    status, said = make(project, "--python", str(python), "--device", device)
    assert status == 1 and f"and {device.upper()} packages" in said


@pytest.mark.parametrize("version", ["2.7.18", "3.7.16", "3.13.0"])
def test_a_python_that_mxnet_cannot_use_is_one_line_and_status_2(project, version):
    python = project / "python"
    python.write_text(f"#!/bin/sh\necho version {version.replace('.', ' ')}\n")
    python.chmod(0o755)
    status, said = make(project, "--python", str(python))
    assert (status, said.count("\n")) == (2, 1)
    assert f"needs Python 3.8 to 3.12 ({python} is {version})" in said


def test_a_python_without_a_module_is_one_line_that_names_its_package(project):
    """As Debian's, until its package python3-venv is there."""
    python, trouble = project / "python", "ModuleNotFoundError: No module named 'ensurepip'"
    python.write_text(f'#!/bin/sh\necho version 3 11 2\necho "{trouble}" >&2\nexit 1\n')
    python.chmod(0o755)
    status, said = make(project, "--python", str(python))
    assert (status, said.count("\n")) == (2, 1)
    assert f"{python}: {trouble}: apt-get install python3.11-venv (Debian, Ubuntu)" in said


def test_a_python_that_is_not_there_is_one_line_and_status_2(project):
    status, said = make(project, "--python", "python3.99")
    assert (status, said.count("\n")) == (2, 1)
    assert "python3.99 does not run" in said


def test_a_python_of_an_environment_stands_for_the_one_below_it(tmp_path):
    """Where .venv is activated, it is the first on PATH, and about to be put aside."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    assert make_venv.choose_python(tmp_path / "venv" / "bin" / "python")[0] == PYTHON


@pytest.mark.skipif(not shutil.which("setarch"), reason="setarch is a Linux command")
@linux_x86_64
def test_a_machine_without_wheels_is_one_line_and_status_2(project):
    status, said = make(project, prefix=["setarch", "i686"])
    assert (status, said.count("\n")) == (2, 1)
    assert "no package for Linux i686" in said


@pytest.mark.long
def test_what_is_built_is_not_built_again_until_the_requirements_change(project):
    (project / ".venv" / "lib").mkdir(parents=True)  # of an interrupted removal
    assert "Built .venv" in make(project, "--python", PYTHON)[1]
    assert make(project) == (0, "")
    assert (project / ".venv" / "bin" / "pip").exists()
    copy = shutil.copytree(project, project / "copy", symlinks=True)
    assert "Built .venv" in make(copy)[1] and make(copy) == (0, "")
    (project / "requirements-cpu.txt").write_text("# a new requirement\n")
    assert "Built .venv" in make(project)[1]
    (project / ".venv" / make_venv.STAMP).write_text("")  # the disk was full
    assert "Built .venv" in make(project)[1]


def test_an_environment_is_in_place_where_it_was_built_under_any_name(tmp_path):
    """Else it was moved or copied, or the system's Python is another one now."""
    venv, python = tmp_path / "venv", tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(PYTHON)
    built = {"place": str(venv), "runs": Path(PYTHON).name}
    (tmp_path / "link").symlink_to(venv)
    assert make_venv.is_in_place(venv, built) and make_venv.is_in_place(tmp_path / "link", built)
    copy = shutil.copytree(venv, tmp_path / "copy", symlinks=True)
    assert not make_venv.is_in_place(copy, built)
    assert not make_venv.is_in_place(venv, dict(built, runs="python3.99"))
    venv.rename(tmp_path / "moved")
    assert not make_venv.is_in_place(tmp_path / "moved", built)


@pytest.mark.long
def test_two_at_once_build_one_environment(project):
    both = [
        subprocess.Popen(command(project), stdout=subprocess.PIPE, universal_newlines=True)
        for _ in range(2)
    ]
    said = [process.communicate()[0] for process in both]
    assert sorted(text.count("Built .venv") for text in said) == [0, 1]


@pytest.mark.long
def test_an_interrupted_build_is_begun_again_by_the_next_run(project):
    first = subprocess.Popen(command(project, "--python", PYTHON))
    while not (project / ".venv" / "pyvenv.cfg").exists():
        time.sleep(0.01)
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 143
    assert not (project / ".venv" / "bin" / "pip").exists()
    assert "Built .venv" in make(project)[1]
    assert (project / ".venv" / "bin" / "pip").exists()


@pytest.mark.long
@pytest.mark.parametrize("told_by", ["variables", "pip.conf"])
def test_setup_obeys_its_surroundings_only_in_where_packages_come_from(project, told_by):
    """The package `tiny` is found, by the user's settings, and installed in spite of them."""
    with zipfile.ZipFile(project / "tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "")
        for name, text in ABOUT.items():
            wheel.writestr(f"tiny-1.dist-info/{name}", text.format("tiny"))
    (project / "requirements-cpu.txt").write_text("tiny\n")
    (project / "shadows").mkdir()
    (project / "shadows" / "json.py").write_text("raise SystemExit('another json')")
    elsewhere = project / "elsewhere"
    settings = {"no-index": "1", "find-links": str(project), "user": "1", "target": str(elsewhere)}
    settings.update({"require-virtualenv": "1", "prefix": str(elsewhere), "quiet": "1"})
    outer = ("PIP_", "MAKE", "MFLAGS", "HOROVOD", "DEVICE")  # the last four: of an outer make
    env = {k: v for k, v in os.environ.items() if not k.startswith(outer)}
    env.update(PYTHONHOME="/nowhere", PYTHONPATH=str(project / "shadows"), VIRTUAL_ENV="/nowhere")
    if told_by == "variables":
        env.update({f"PIP_{k.upper().replace('-', '_')}": v for k, v in settings.items()})
    else:
        lines = [f"{name} = {value}" for name, value in settings.items()]
        (project / "pip.conf").write_text("\n".join(["[global]", *lines]))
        env["PIP_CONFIG_FILE"] = str(project / "pip.conf")
    command = ["make", "-C", project, "setup", f"PYTHON={PYTHON}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert list((project / ".venv").glob("lib/*/site-packages/tiny.py"))
    assert not elsewhere.exists()


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or platform.system() != "Linux", reason="needs root on Linux")
def test_who_may_not_write_uses_what_is_built(project):
    read_only = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    here = ("unshare", "--mount", "sh", "-c", read_only, project)
    status, said = make(project, "--python", PYTHON, prefix=here)
    assert (status, said.count("\n")) == (2, 1)
    assert "Read-only file system" in said and ".venv.lock" in said
    assert make(project, "--python", PYTHON)[0] == 0
    assert make(project, prefix=here) == (0, "")


@pytest.mark.long
def test_pips_own_error_is_shown_and_the_next_run_tries_again(project):
    (project / "requirements-cpu.txt").write_text("./no-such-folder\n")
    status, said = make(project, "--python", PYTHON)
    assert status == 1
    assert "no-such-folder" in said
    (project / "requirements-cpu.txt").write_text("")
    assert make(project)[0] == 0
    assert make(project) == (0, "")


@pytest.mark.long
def test_an_environment_stays_until_its_successor_is_whole(project):
    venv, before = project / ".venv", project / f".venv{make_venv.BEFORE}"
    make(project, "--python", PYTHON)
    built = make_venv.read_stamp(venv)
    assert make(project, "--device", built["chosen"]) == (0, "")  # it is asked for, and is there
    (project / "requirements-cpu.txt").write_text("./no-such-folder\n")
    status, said = make(project, "--device", "cpu")
    assert status == 1 and ".venv is again what it was before" in said
    assert make_venv.read_stamp(venv) == built and (venv / "bin" / "pip").exists()
    (project / "requirements-cpu.txt").write_text("")
    venv.rename(before)  # a run was killed here
    (venv / "bin").mkdir(parents=True)
    assert make(project)[0] == 0 and make_venv.read_stamp(venv) == built
    venv.rename(project / "class")
    venv.symlink_to(project / "class")
    (project / "requirements-cpu.txt").write_text("# a new requirement\n")
    assert "Built .venv" in make(project)[1] and not venv.is_symlink()
    assert (project / "class" / "bin" / "pip").exists() and not os.path.lexists(before)


def test_a_folder_that_is_no_environment_is_left_alone(project):
    (project / "mine").mkdir()
    (project / "mine" / "thesis.txt").write_text("years of work")
    status, said = make(project, "--python", PYTHON, "--venv", str(project / "mine"))
    assert (status, said.count("\n")) == (2, 1)
    assert (project / "mine" / "thesis.txt").exists()


def test_horovods_setup_waits_for_one_in_another_clone(tmp_path):
    """One lock for all clones, as the wheel that they build is one."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho mxnet==0 cpython platform\n")
    python.chmod(0o755)
    cache = tmp_path / "cifar10_dist" / "horovod"
    cache.mkdir(parents=True)
    command = [sys.executable, make_horovod.__file__, "1", "--venv", tmp_path / "venv"]
    env = dict(os.environ, XDG_CACHE_HOME=str(tmp_path))
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert "waiting for it" in waiting.stdout.readline()
        wanted = hashlib.sha256(make_horovod.REQUIREMENTS.read_bytes()).hexdigest()[:12]
        (cache / f"mxnet==0-cpython-platform-{wanted}").mkdir()  # the other one has built it
    assert waiting.communicate(timeout=60)[0].startswith("Installed Horovod")
    assert waiting.returncode == 0


def test_a_disk_without_locks_stops_nobody(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(tmp_path / "lock", "w") as lock:
        make_venv.take(lock)


def test_who_may_not_write_uses_the_horovod_that_is_there(tmp_path):
    (tmp_path / "venv").mkdir()
    stamp = tmp_path / "venv" / make_venv.HOROVOD_STAMP
    stamp.write_text(make_horovod.compare(tmp_path / "venv")[0])
    (tmp_path / "venv.lock").mkdir()  # opened by nobody
    for wanted in ("", "1"):
        command = [sys.executable, make_horovod.__file__, wanted, "--venv", tmp_path / "venv"]
        subprocess.run(command, check=True)


def test_what_builds_horovod_is_installed_before_it():
    horovod, tools = make_horovod.parted("# a comment\nhorovod==1\ncmake==2\nwheel==3")
    assert (horovod, tools.splitlines()[1:]) == ("horovod==1", ["cmake==2", "wheel==3"])


@pytest.mark.parametrize("awk", filter(shutil.which, ("mawk", "gawk", "busybox")))
def test_make_alone_lists_every_target_that_has_a_text(tmp_path, awk):
    """Whichever awk a system has."""
    script = tmp_path / "awk"
    script.write_text(f'#!/bin/sh\nexec {awk} {"awk" * (awk == "busybox")} "$@"\n')
    script.chmod(0o755)
    env = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}")
    done = subprocess.run(["make", "-s"], cwd=ROOT, env=env, capture_output=True, text=True)
    targets = re.findall(r"(?m)^([a-z-]+):.* ## \[", (ROOT / "Makefile").read_text())
    lines = done.stdout.splitlines()
    assert lines[0] == "New here? make train" and not done.stderr
    assert {line.split()[1] for line in lines if line[:7] == "  make "} == {*targets}

"""Train a few batches with two workers on each Python given, or on all from 3.8 to 3.12 found here.

    python tests/smoke_pythons.py [3.8 3.12]        (make test-pythons PYTHONS="3.8 3.12")

Each gets an environment of its own in build/venvs, with the packages that training needs (no
notebooks, no test tools) in the versions of constraints.txt. Then the project is installed there,
and gluon-launch starts a program. Interpreters come from PATH and from pyenv's folder. Exit status:
0 if all trained; 1 if one did not; 2 if one is not here.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12")
PACKAGES = ("mxnet==1.9.1", "gluoncv", "opencv-python==4.11.0.86")  # the last is GluonCV's
PACKAGES += ("tqdm", "tensorboardX", "setuptools", "scikit-learn")  # that for its libgomp
# 640 examples by two workers, 16 each in a step: 20 steps.
PROGRAM = (
    "cifar10_dist/cifar10_dist.py --data synthetic --network cifar_resnet20_v1 "
    "--batch-size 16 --num-examples 640 --num-epochs 1"
)


def find_python(version):
    """The path of an interpreter of this version that runs, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [shutil.which(f"python{version}")]
    found += sorted((pyenv / "versions").glob(f"{version}.*/bin/python"))
    for python in filter(None, found):
        # pyenv's name on PATH may answer "command not found"
        done = subprocess.run([python, "-c", "import ensurepip"], stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return str(python)
    return None


def environment(version, python):
    """Build the environment if need be; return its interpreter."""
    venv = ROOT / "build" / "venvs" / version
    ready = venv / "ready"
    constraints = (ROOT / "constraints.txt").read_text()
    if not (ready.exists() and ready.read_text() == constraints):
        subprocess.run([python, "-m", "venv", "--clear", venv], check=True)
        pip = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        lock = ["-c", ROOT / "constraints.txt"]
        # Compiling what is not imported would take longer than the training.
        subprocess.run([*pip, "install", "-q", "--no-compile", *PACKAGES, *lock], check=True)
        libraries = ROOT / "cifar10_dist" / "gluon_dist" / "setup" / "libraries.py"
        subprocess.run([venv / "bin" / "python", libraries], check=True)
        ready.write_text(constraints)
    return venv / "bin" / "python"


def smoke(version, python, options="", workers=2):
    """Train on one Python; return what all workers printed. Raises CalledProcessError."""
    launch = [sys.executable, "tools/launch.py", "-n", str(workers), "-s", "2"]
    launch += ["--launcher", "local", "--timeout", "240"]
    done = subprocess.run(
        [*launch, f"{environment(version, python)} {PROGRAM} {options}"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def smoke_installed(version, python):
    """Install the project on one Python and start a job; return what all workers printed."""
    folder = environment(version, python).parent
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # modules that are gone, perhaps
    install = ["-m", "pip", "--disable-pip-version-check", "--no-input", "install", "-q"]
    subprocess.run(
        [folder / "python", *install, "--no-deps", "--no-build-isolation", ROOT], check=True
    )
    job = [folder / "gluon-launch", "-n", "2", "--timeout", "120", "python", "with_own_modules.py"]
    programs = ROOT / "tests" / "programs"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(job, cwd=programs, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def main(versions):
    status = 0
    for version in versions or VERSIONS:
        python, start = find_python(version), time.monotonic()
        if python is None:
            print(f"Python {version}: not found on PATH or in pyenv's folder")
            status = max(status, 2 if versions else 0)
            continue
        print(f"Python {version}: {python}", flush=True)
        try:
            print(smoke(version, python), end="")
            print(smoke_installed(version, python), end="")
            print(f"Python {version}: trained ({time.monotonic() - start:.0f} s)", flush=True)
        except subprocess.CalledProcessError as error:
            print(f"{error.stdout or ''}Python {version}: FAILED: {error}", flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The shared libraries that MXNet needs and does not bring: found, copied, or named.

    python libraries.py [--before-mxnet]

MXNet's library looks for others in its own folder first. What the system lacks is copied there out
of other packages of this Python, where they have it. ``tools/make_venv.py`` runs this program after
it installs MXNet, and also before, to look for what no package has. It can be run in any
environment. Exit status: 0 nothing is missing; 2 something is, and a line on standard output says
what, and how to install it.
"""

import ctypes
import os
import platform
import shlex
import shutil
import sys
from importlib import metadata, util
from pathlib import Path

# By library: its package on Debian and Ubuntu, its package on Fedora and Rocky.
OF_THE_SYSTEM = {
    "libstdc++.so.6": ("libstdc++6", "libstdc++"),
    "libgcc_s.so.1": ("libgcc-s1", "libgcc"),
    "libgomp.so.1": ("libgomp1", "libgomp"),
    "libquadmath.so.0": ("libquadmath0", "libquadmath"),
}
# The wheels of scikit-learn and NumPy contain these, under longer names.
IN_PACKAGES = ("libgomp.so.1", "libquadmath.so.0")
# The wheel for aarch64 was built with Arm's own mathematics, which no package index has.
OF_ARM = ("libarmpl_lp64_mp.so", "libamath.so", "libastring.so")
DRIVER = "libcuda.so.1"
# What pip installs for mxnet-cu112, each after the libraries that it needs itself.
CUDA = (
    "cuda_runtime/lib/libcudart.so.11.0",
    "cuda_nvrtc/lib/libnvrtc.so.11.2",
    "nvtx/lib/libnvToolsExt.so.1",
    "cublas/lib/libcublasLt.so.11",
    "cublas/lib/libcublas.so.11",
    "cufft/lib/libcufft.so.10",
    "curand/lib/libcurand.so.10",
    "cusolver/lib/libcusolver.so.11",
    "cudnn/lib/libcudnn.so.8",
    "nccl/lib/libnccl.so.2",
)


def load_cuda():
    """Load the CUDA 11 libraries that pip installed, for mxnet-cu112 alone."""
    if not is_for_gpus():
        return
    wheels = util.find_spec("nvidia")
    for folder in wheels.submodule_search_locations if wheels else ():
        for library in CUDA:
            path = Path(folder, library)
            # One that is not there is the system's: MXNet finds it, or says which is missing.
            if path.exists():
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    # cuDNN 8.9 stands in for the 8.1 that MXNet was built with, and is made to.
    os.environ.setdefault("MXNET_CUDNN_LIB_CHECKING", "0")


def require(program):
    """End this process with one line and status 2 if a library is missing that MXNet needs."""
    folder = mxnet_folder()
    lacking = missing(folder)
    if not lacking or not folder or loads(folder / "libmxnet.so"):  # another one may need fewer
        return
    refuse(program, explain(lacking) + without_root(lacking, folder))


def refuse(program, line):
    """End this process with a line and status 2."""
    print(f"{program}: {line}", file=sys.stderr, flush=True)
    sys.exit(2)


def missing(folder=None):
    """Return the names of the libraries that MXNet, in this folder or yet to come, lacks."""
    if sys.platform != "linux" or (folder and not (folder / "libmxnet.so").exists()):
        return []  # the Mac's wheel brings all; one built here is its builder's business
    names = list(OF_THE_SYSTEM)
    if platform.machine() == "aarch64":
        names.remove("libquadmath.so.0")  # nothing needs it there
        names += OF_ARM
    if folder and is_for_gpus():
        names.append(DRIVER)
    beside = [name for name in names if folder and (folder / name).exists()]
    return [name for name in names if not loads(folder / name if name in beside else name)]


def explain(names):
    """Return a line that says what is missing, and how to install it."""
    line = f"MXNet needs {', '.join(names)}: not found on this machine"
    packages = [OF_THE_SYSTEM[name] for name in names if name in OF_THE_SYSTEM]
    if packages:
        apt, dnf = (" ".join(column) for column in zip(*packages))
        line += f"; apt-get install {apt} (Debian, Ubuntu) or dnf install {dnf} (Fedora, Rocky)"
    if OF_ARM[0] in names:
        line += "; install Arm Performance Libraries, and name their folder in LD_LIBRARY_PATH"
    if DRIVER in names:
        line += f"; {DRIVER} comes with NVIDIA's driver (without a card, mxnet takes the place of "
        line += "mxnet-cu112: make setup DEVICE=cpu)"
    return line


def without_root(names, folder):
    """Return the end of that line: the commands that copy these, if packages may have them."""
    names = [name for name in names if name in IN_PACKAGES]
    python = shlex.quote(sys.executable)
    # Its own dependencies are not needed, and would bring NumPy 2.
    first = f"{python} -m pip install --no-deps scikit-learn && "
    first = "" if all(copies_of(name, folder) for name in names) else first
    return f"; or, without root, {first}{python} {shlex.quote(__file__)}" if names else ""


def copies_of(name, folder):
    """Return the paths of a library in the packages beside MXNet's folder."""
    return sorted(folder.parent.glob("*.libs/{}-*.so*".format(name.split(".")[0])))


def copy_from_packages(folder):
    """Copy missing libraries from other packages into MXNet's folder, and print which."""
    for name in set(missing(folder)) & set(IN_PACKAGES):
        copies = copies_of(name, folder)
        if copies:
            begun = folder / f"{name}.{os.getpid()}"
            try:
                shutil.copy(copies[0], begun)
                begun.rename(folder / name)
            finally:
                if begun.exists():  # the disk is full
                    begun.unlink()
            print(f"copied {copies[0]} to {folder / name}")


def mxnet_folder():
    """Return the folder of MXNet's package, without importing it, or None."""
    package = util.find_spec("mxnet")
    return package and Path(package.submodule_search_locations[0])


def is_for_gpus():
    """Return whether MXNet's package is the one for GPUs."""
    try:
        return bool(metadata.distribution("mxnet-cu112"))
    except metadata.PackageNotFoundError:
        return False


def loads(library):
    """Return whether the system's loader finds a library, and all that it needs."""
    try:
        return bool(ctypes.CDLL(str(library)))
    except OSError:
        return False


def main(words):
    """Copy what can be copied, and return the exit status."""
    if words not in ([], ["--before-mxnet"]):
        print(__doc__)
        return 2
    folder, may_be_missing = None, IN_PACKAGES
    if not words:
        folder, may_be_missing = mxnet_folder(), (DRIVER,)  # a login host has no driver
        if folder is None:
            print(f"{sys.executable} has no mxnet")
            return 0
        try:
            copy_from_packages(folder)
        except OSError as error:
            print(f"{error.filename2 or error.filename}: {error.strerror}")
            return 2
    lacking = [name for name in missing(folder) if name not in may_be_missing]
    if lacking:
        print(explain(lacking) + without_root(lacking, folder))
    return 2 if lacking else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

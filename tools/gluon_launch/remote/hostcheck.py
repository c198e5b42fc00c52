"""Check a host before a job starts on it. Runs there, as preflight asks: Python 3.6 or later.

    python3 -I - DIRECTORY create|- PROGRAM sh|- ROOT:PORT horovod|- < hostcheck.py

Prints one JSON object. A value under "wrong" says what is wrong.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

# MXNet is not imported: that takes seconds, and may need something the program does first. But two
# libraries of the system are looked for, which MXNet needs and small systems lack.
LOOK = """
import ctypes, importlib.util, os, platform, re, sys
print("python", platform.python_version(), sep="==")
package = importlib.util.find_spec("mxnet")
if package is None:
    raise SystemExit("No module named 'mxnet'")
folder = package.submodule_search_locations[0]
def loads(name):
    path = os.path.join(folder, name)
    try:
        return ctypes.CDLL(path if os.path.exists(path) else name)
    except OSError:
        return None
of_system = ["libgomp.so.1"] + ["libquadmath.so.0"] * (platform.machine() == "x86_64")
lacking = [name for name in of_system if not loads(name)] if platform.system() == "Linux" else []
if lacking and not loads("libmxnet.so"):  # one that was built here may need fewer
    raise SystemExit(lacking[0] + ": cannot open shared object file")
def has_cuda():
    library = loads("libmxnet.so")
    if not library:
        return None
    class Feature(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("enabled", ctypes.c_bool)]
    features, count = ctypes.POINTER(Feature)(), ctypes.c_size_t()
    library.MXLibInfoFeatures(ctypes.byref(features), ctypes.byref(count))
    return any(f.enabled for f in features[:count.value] if f.name == b"CUDA")
about = open(os.path.join(folder, "libinfo.py"), encoding="utf-8").read()
print("mxnet", re.search("__version__ *= *['\\"](.+)['\\"]", about).group(1), sep="==")
print("horovod", importlib.util.find_spec("horovod") is not None, sep="==", flush=True)
if int(sys.argv[1]):  # MXNet is loaded for this, and a broken one may crash: only with GPUs
    print("cuda", has_cuda(), sep="==")
"""


def check_directory(directory, create):
    """Return the free bytes of a folder that is or can be made; else None, and what is wrong."""
    existing = os.path.abspath(directory)
    while create and not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return None, f"{directory}: no such folder"
    if create:
        try:
            tempfile.TemporaryFile(dir=existing).close()
        except OSError as error:
            return None, f"{existing}: cannot write there: {error.strerror}"
    space = os.statvfs(existing)
    return space.f_bavail * space.f_frsize, None


def check_program(program, by_shell):
    """Return why the first word of the command cannot be run from here, or None."""
    if not program or shutil.which(program):
        return None
    if (
        by_shell
        and "/" not in program
        and not subprocess.call(["sh", "-c", 'command -v "$0"', program], stdout=subprocess.DEVNULL)
    ):
        return None  # a builtin of the shell
    return f"{program}: command not found"


def is_for_login(program):
    """Return whether only a login shell knows it, as functions (module) and what a profile adds."""
    try:
        return not subprocess.call(
            ["bash", "-lc", 'command -v "$0"', program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def count_gpus():
    """Return how many NVIDIA GPUs the host has: by its driver's files, else by nvidia-smi."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        pass
    if not shutil.which("nvidia-smi"):
        return 0
    try:
        said = subprocess.check_output(["nvidia-smi", "-L"], timeout=20)
    except (OSError, subprocess.SubprocessError):
        return 0  # no driver
    return len(re.findall(rb"^GPU \d+:", said, re.MULTILINE))


def check_mxnet(program, gpus):
    """Return what is known of the command's Python and its MXNet, and what is wrong."""
    if not re.match(r"python[\d.]*$", os.path.basename(program)):
        return {"horovod": "True"}, None  # a script may run anything
    try:
        done = subprocess.run(  # noqa: UP022  Python 3.6
            [program, "-c", LOOK, str(gpus)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
        )
        said, lines = done.stdout, done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else done.returncode
    except subprocess.TimeoutExpired as error:  # after all but CUDA, where MXNet loads for long
        said, why = error.stdout or b"", "no answer within 60 s"
    found = dict(re.findall(r"(\w+)==(\S+)", said.decode("utf-8", "replace")))
    if "mxnet" in found:
        return found, None
    found["horovod"] = "True"  # one thing at a time
    return found, f"{program}: {why}"


def check_reach(address):
    """Return why the scheduler's port cannot be reached from here, or None."""
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        return f"{address}: {error.strerror or error} (a firewall?)"
    return None


def main(directory, create, program, by_shell, address, horovod):
    """Answer what was asked of this host."""
    answer = {"wrong": {}, "gpus": count_gpus()}
    answer["free"], answer["wrong"]["folder"] = check_directory(directory, create == "create")
    folder = os.path.abspath(directory)
    inside = os.path.relpath(os.path.join(folder, program), folder)
    is_inside = not inside.startswith(os.pardir)
    is_readable = os.path.isdir(directory) and os.access(directory, os.R_OK)
    answer["empty"] = not os.path.isdir(directory) or (is_readable and not os.listdir(directory))
    if os.path.isdir(directory):
        os.chdir(directory)
    answer["wrong"]["network"] = check_reach(address)
    may_be_copied = create == "create" and "/" in program
    may_be_copied = may_be_copied and (is_inside or not shutil.which(program))
    answer["command"] = bool(program) and not may_be_copied  # else the copy may bring it
    answer["inside"] = inside if may_be_copied else None
    if answer["command"]:
        answer["wrong"]["command"] = check_program(program, by_shell == "sh")
        if answer["wrong"]["command"]:
            answer["login"] = is_for_login(program)
        else:
            found, answer["wrong"]["mxnet"] = check_mxnet(program, answer["gpus"])
            answer["python"], answer["mxnet"] = found.get("python"), found.get("mxnet")
            answer["cuda"] = {"True": True, "False": False}.get(found.get("cuda"))
            if horovod == "horovod" and found.get("horovod") != "True":
                answer["wrong"]["horovod"] = f"{program} has no Horovod, and -s 0 leaves no servers"
    print(json.dumps(answer))


main(*sys.argv[1:])

"""A kernel that stands in a copy of the project of its own: nbgrader starts it for each notebook.

So a notebook finds its modules as at the student's, and no file of one student's meets the next
one's. Programs handed in beside the notebook stand beside those of notebook 04. What a cell puts
out, and what a process takes, is limited.
"""

import os
import resource
import shutil
import sys
import threading
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "grading"  # of the copies: each has the name of its kernel's process
COPIED = ("benchmarks", "cifar10_dist", "notebooks", "tools")  # and not what else lies there
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "out")
MB = 10**6
OUTPUT = MB  # characters that a cell may put out
MEMORY = min(8000 * MB, psutil.virtual_memory().total // 2)  # of a kernel and its programs
LIMITS = {  # of each process; RLIMIT_DATA is a last resort: grading.py looks at what all take
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_DATA: 2 * MEMORY,
    resource.RLIMIT_FSIZE: 1000 * MB,
    resource.RLIMIT_NOFILE: 4096,
}


def main():
    """Copy the project, be its kernel, and remove what this and earlier kernels leave."""
    handed_in, own = Path.cwd(), PLACE / str(os.getpid())
    for folder in PLACE.glob("*"):
        if folder == own or not psutil.pid_exists(int(folder.name)):  # nbgrader kills slow ones
            shutil.rmtree(folder, ignore_errors=True)
    copy_project(own)
    for program in handed_in.glob("*.py"):
        shutil.copy(program, own / "notebooks" / "programs" / "own")
    os.chdir(own / "notebooks")
    sys.path[0] = ""  # as for any kernel, and not the folder of this file
    be_own(own / "build" / "user")
    limit_processes()
    be_kernel()
    shutil.rmtree(own, ignore_errors=True)


def copy_project(own):
    """Copy what notebooks use; a link to nothing is left out."""
    for name in COPIED:
        shutil.copytree(ROOT / name, own / name, ignore=NOT_COPIED, ignore_dangling_symlinks=True)
    shutil.copy(ROOT / "requirements.txt", own)


def be_own(folder):
    """Give the kernel its own settings and temporary files, not the teacher's."""
    folder.mkdir(parents=True)
    os.environ.update(dict.fromkeys(("IPYTHONDIR", "MPLCONFIGDIR", "TMPDIR"), str(folder)))


def limit_processes():
    """Set the limits of this process, which all that it starts have, too."""
    for what, most in LIMITS.items():
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def be_kernel():
    """Be a kernel until nbgrader ends it."""
    from ipykernel.iostream import OutStream
    from ipykernel.kernelapp import IPKernelApp
    from ipykernel.zmqshell import ZMQDisplayPublisher

    for stream in 1, 2:  # the kernel repeats there, without end, what programs put out
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    app = IPKernelApp.instance()
    app.initialize(sys.argv[1:])
    output = Output()
    app.shell.events.register("pre_run_cell", output.begin)
    OutStream.write = output.limited(OutStream.write)
    ZMQDisplayPublisher.publish = output.limited(ZMQDisplayPublisher.publish)
    app.start()


class Output:
    """What the cell that is being run has put out."""

    def begin(self, info):
        """Count from zero, for a new cell."""
        self.size = 0

    def limited(self, put_out):
        """Return a function that puts out what comes until it is too much, then raises an error."""
        self.size = 0

        def within_limit(stream, *args, **options):
            self.size += sum(len(str(value)) for value in (*args, *options.values()))
            if self.size <= OUTPUT:
                return put_out(stream, *args, **options)
            if threading.current_thread() is threading.main_thread():
                raise RuntimeError(f"this cell puts out more than {OUTPUT:,} characters")

        return within_limit


if __name__ == "__main__":
    main()

"""A kernel that stands in a copy of the project of its own: nbgrader starts it for each notebook.

So a notebook finds its modules as at the student's, and no file of one student's meets the next
one's. Programs handed in beside the notebook stand beside those of notebook 04.
"""

import os
import shutil
import sys
from pathlib import Path

import psutil
from ipykernel import kernelapp

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "grading"  # of the copies: each has the name of its kernel's process
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "course", "out")


def main():
    """Copy the project, be its kernel, and remove what this and earlier kernels leave."""
    handed_in, own = Path.cwd(), PLACE / str(os.getpid())
    for folder in PLACE.glob("*"):
        if folder == own or not psutil.pid_exists(int(folder.name)):  # nbgrader kills slow ones
            shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT, own, ignore=NOT_COPIED)
    for program in handed_in.glob("*.py"):
        shutil.copy(program, own / "notebooks" / "programs" / "own")
    os.chdir(own / "notebooks")
    sys.path[0] = ""  # as for any kernel, and not the folder of this file
    kernelapp.launch_new_instance()
    shutil.rmtree(own, ignore_errors=True)


if __name__ == "__main__":
    main()

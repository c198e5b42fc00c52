"""A kernel that stands in a copy of the project of its own: nbgrader starts it for each notebook.

So a notebook finds its modules as at the student's, and no file of one student's meets the next
one's. Programs handed in beside the notebook stand beside those of notebook 04.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from ipykernel import kernelapp

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "course", "out")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        project = Path(shutil.copytree(ROOT, Path(place, "lesson"), ignore=NOT_COPIED))
        for program in Path.cwd().glob("*.py"):
            shutil.copy(program, project / "notebooks" / "programs" / "own")
        os.chdir(project / "notebooks")
        sys.path[0] = ""  # as for any kernel, and not the folder of this file
        kernelapp.launch_new_instance()

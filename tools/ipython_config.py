"""What every IPython kernel of .venv begins with, however and wherever it is started.

``make_venv.py`` puts this file into .venv. The modules of the notebooks are found from any folder,
and what somebody has set for other Pythons does not come before what .venv has.
"""

import importlib.util
import os
import sys
from pathlib import Path

for entry in os.environ.pop("PYTHONPATH", "").split(os.pathsep):
    if entry and entry in sys.path:  # last, for a debugger may need it
        sys.path.remove(entry)
        sys.path.append(entry)
for name in "PYTHONSTARTUP", "PYTHONSAFEPATH", "MPLBACKEND":
    os.environ.pop(name, None)
# A notebook notes its kernel's Python. Noted so, it is the same for all, and git sees no change.
kernel = sys.modules.get("ipykernel.ipkernel")
if kernel:
    kernel.IPythonKernel.language_info["version"] = str(sys.version_info[0])
# Matplotlib's own settings: the user's may ask for LaTeX, or for a window.
matplotlib = importlib.util.find_spec("matplotlib")
if matplotlib:
    os.environ["MATPLOTLIBRC"] = str(Path(matplotlib.origin).parent / "mpl-data")
# Beside .venv, which may be a link to somebody else's.
sys.path.append(str(Path(sys.prefix).parent / "notebooks"))

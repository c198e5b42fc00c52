"""Import modules, and print as JSON what that changed of the process, by name."""

import json
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import warnings
from importlib import import_module
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageFile


def state():
    """Return what others in this process depend on, by name."""
    status = Path("/proc/self/status").read_text() if os.path.exists("/proc/self/status") else ""
    rc = {name: dict.__getitem__(matplotlib.rcParams, name) for name in matplotlib.rcParams}
    hidden = [f for f in warnings.filters if f[1] is None and issubclass(UserWarning, f[2])]
    return {
        **{f"${name}": value for name, value in os.environ.items()},
        "half pictures": ImageFile.LOAD_TRUNCATED_IMAGES,
        "largest picture": Image.MAX_IMAGE_PIXELS,
        "NumPy's errors": repr((np.geterr(), np.geterrcall())),
        "NumPy's printing": repr(np.get_printoptions()),
        "NumPy's generator": repr(np.random.get_state()[1].tolist()),
        "Python's generator": repr(random.getstate()),
        "smallest float32": float(np.float32(1e-45) * np.float32(1)),  # 0 if a library flushes it
        "warnings": repr((hidden, warnings.showwarning)),
        "logging": repr((logging.root.level, logging.root.handlers, logging.root.disabled)),
        "signal handlers": repr([signal.getsignal(s) for s in sorted(signal.valid_signals())]),
        "native signal handlers": [line for line in status.split("\n") if line[:6] == "SigCgt"],
        "hooks": repr((sys.excepthook, threading.excepthook, sys.stdout, sys.stderr)),
        "plots": repr(rc),  # not yet chosen, the backend is an object
        "locale": locale.setlocale(locale.LC_ALL),
        "limits": repr((sys.getrecursionlimit(), socket.getdefaulttimeout(), os.getcwd())),
    }


before = state()
for module in sys.argv[1:]:
    import_module(module)
after = state()
print(json.dumps(sorted(name for name in after if after[name] != before.get(name))))

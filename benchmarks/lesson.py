"""Puts the folder of the lesson's modules, which are not installed, on the path of imports."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "cifar10_dist"))

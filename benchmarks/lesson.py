"""Import this to import the lesson's modules: they stand in a folder that is not installed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "cifar10_dist"))

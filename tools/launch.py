#!/usr/bin/env python3
"""The command gluon-launch, from this folder and with any Python: nothing need be installed."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cifar10_dist")]  # gluon_launch, gluon_dist

from gluon_launch.main import main, parse_args, run  # noqa: E402, F401

if __name__ == "__main__":
    run()

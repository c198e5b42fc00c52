"""Fetch a small collection into the folder argv[1]; argv[2] describes it in JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cifar10_dist"))
from sources import download

download.fetch(sys.argv[1], download.Collection(*json.loads(sys.argv[2])))

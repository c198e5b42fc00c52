"""Fetch a small collection into the folder argv[1]; argv[2] describes it in JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cifar10_dist"))
from sources.addresses import Collection
from sources.download import fetch

fetch(sys.argv[1], Collection(*json.loads(sys.argv[2])))

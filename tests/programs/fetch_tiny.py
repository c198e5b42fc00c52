"""Fetch a small collection into the folder argv[1]; argv[2] describes it in JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "cifar10_dist"))
from sources import download

archive_sha1, files, url = json.loads(sys.argv[2])
download.fetch(sys.argv[1], download.Collection("Tiny", archive_sha1, files, (url,)))

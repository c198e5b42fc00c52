import json
import os
import re
import shlex

from command_line.parse import parse_args
from helpers import ROOT
from networks.by_name import get_network

for (read_ms, train_ms), (apart, ahead) in toy_steps.items():
    assert apart >= read_ms + train_ms and ahead >= max(read_ms, train_ms)
of_decoding = [found["decode"] / sum(found.values()) for found in (photo_ms, small_ms)]
assert of_decoding[0] > 0.5 > of_decoding[1]
assert len(in_file) == NUM_SMALL == len(list(FEED.glob("small/*/*.jpg")))
assert [sum(map(len, numbers)) - pad for numbers, pad in by_bytes] == [2, 18]
assert [sum(map(len, numbers)) - pad for numbers, pad in by_records] == [10, 10]
assert [epochs[0] for epochs in epochs_of_parts] == [(4, 334), (4, 334), (4, 332)]
assert [epochs[2][0] for epochs in epochs_of_parts] == [4, 4, 3]
assert changed.reshape(3, 4).tolist() == [[1, 2, 3, 4], [0, 5, 6, 7], [12, 11, 10, 9]]
again = [crop_and_flip.draw(NUM_SMALL, seed=0, epoch=epoch)[:1] for epoch in range(8)]
assert np.array_equal(seen, again) and [draw[0, 2] for draw in seen[:2]] in ([0, 1], [1, 0])
in_order = [[y.asnumpy() for _, y in loader] for loader in (plain, processes)]
assert all(map(np.array_equal, *in_order))  # worker processes keep the order
assert speeds["TrainLoader, decoded once"][0] > speeds["DataLoader"][0]
sizes = [(FEED / f"{name}_train.rec").stat().st_size for name in ("full", "short256")]
assert sizes[1] < sizes[0] / 2 and reading["short256"] > reading["full"]
older, by_gluoncv = (
    get_network(name, 1000, (3, 224, 224), num_layers=layers)
    for name, layers in (("resnet", 50), ("resnet50_v2", None))
)
shapes = [[p.shape for p in net.collect_params().values()] for net in (older, by_gluoncv)]
assert shapes[0] == shapes[1]
# the command for two hosts is one that launcher and program understand
cells = json.loads((ROOT / "notebooks" / "08-feed-the-devices.ipynb").read_text())["cells"]
text = "\n".join("".join(cell["source"]) for cell in cells)
command = re.search(r"^\$PY tools/launch.py(.*?)^```", text, re.S | re.M)[1]
import launch  # noqa: E402

job = launch.parse_args(shlex.split(command.replace("\\\n", " ")))
assert job.num_workers == 2 and job.command[1] == "cifar10_dist/cifar10_dist.py"
roots = {"DMLC_PS_ROOT_URI": "127.0.0.1", "DMLC_PS_ROOT_PORT": "9999"}
os.environ.update(DMLC_ROLE="worker", DMLC_NUM_WORKER="2", DMLC_NUM_SERVER="2", **roots)
assert parse_args(job.command[2:]).lr_scale == "linear"
for name in [name for name in os.environ if name.startswith("DMLC_")]:
    del os.environ[name]  # the answers start jobs of their own

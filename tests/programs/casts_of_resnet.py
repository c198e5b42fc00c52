"""Print what the first convolutions of ResNet-18 read under ``--dtype bfloat16``."""

import gluon_dist  # noqa: F401

import mxnet as mx

from networks.by_name import get_network
from run.precision import use_mixed_precision

use_mixed_precision("bfloat16")
scores = get_network("resnet18_v1", 10, (3, 32, 32), [mx.cpu()])(mx.sym.var("data"))
layers = [node for node in scores.get_internals() if node.name.endswith("_fwd")]
read = [node.get_children()[0].name for node in layers if "conv" in node.name]
assert len(read) > 2 and all("amp_cast" in name for name in read[1:3]), read
print(f"{read[0]}, then casts")

"""Compare the network that a trial measures with the one that is trained, and look at its casts."""

import mxnet_setup  # noqa: F401

import mxnet as mx
import numpy as np

from networks.by_name import network_by_name
from run.precision import copy_in, use_mixed_precision
from training import CrossEntropy, forward_backward

CPU = [mx.cpu()]
net = network_by_name("fast", 10, (3, 32, 32), CPU)
copy = copy_in("bfloat16", net, CPU)
use_mixed_precision("bfloat16")
data, labels = [mx.nd.array(np.random.RandomState(0).rand(8, 3, 32, 32))], [mx.nd.arange(8)]
results = []
for each in (net, copy):
    (output,) = forward_backward(each, CrossEntropy(), data, labels, 8)
    arrays = [p.grad() for _, p in sorted(each.collect_params().items()) if p.grad_req != "null"]
    results.append([array.asnumpy() for array in (output.astype("float32"), *arrays)])
assert len(results[0]) > 12
for ours, theirs in zip(*results):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=0.02 * np.abs(theirs).max())
scores = network_by_name("resnet18_v1", 10, (3, 32, 32), CPU)(mx.sym.var("data"))
layers = [node for node in scores.get_internals() if node.name.endswith("_fwd")]
read = [node.get_children()[0].name for node in layers if "conv" in node.name]
assert read[0] == "data" and all("amp_cast" in name for name in read[1:3]), read
print("the same outputs and gradients", flush=True)

"""Parameters saved by Gluon, by Module, in float16; and files that do not fit."""

from pathlib import Path

from gluon_dist.checkpoint import parameters
from gluon_dist.checkpoint.files import Broken

import mxnet as mx
import numpy as np
import pytest
from gluoncv.model_zoo import get_model

from networks.by_name import get_network

TIME_BUDGET_S = 10
NETWORK = "cifar_resnet20_v1"


def network(seed, name=NETWORK):
    mx.random.seed(seed)
    return get_network(name, 10, (3, 32, 32), [mx.cpu(1), mx.cpu(2)])


def values(net):
    return {name: param.data(mx.cpu(1)).asnumpy() for name, param in net.collect_params().items()}


def load(net, name):
    path = f"{name}.params"
    parameters.load(net, path, Path(path).read_bytes())


def cast(path, dtype):
    arrays = mx.nd.load(path)
    mx.nd.save(path, {name: array.astype(dtype) for name, array in arrays.items()})


SAVES = {
    "structural": lambda net, path: net.save_parameters(path),
    "full": lambda net, path: net.collect_params().save(path),
    "without prefix": lambda net, path: net.collect_params().save(path, strip_prefix=net.prefix),
    "arg and aux": lambda net, path: (net(mx.nd.zeros((1, 3, 32, 32))), net.export(path[:-12])),
}


@pytest.fixture(scope="module")
def theirs():
    """A network as GluonCV makes it, without a part in this program."""
    with mx.name.NameManager():
        net = get_model(NETWORK, classes=10)
    net.initialize()
    net.hybridize()
    net(mx.nd.zeros((1, 3, 32, 32)))
    return net


@pytest.mark.parametrize(
    "form, dtype", [*((form, "float32") for form in SAVES), ("structural", "float16")]
)
def test_what_gluon_and_module_save_is_read_with_all_names(tmp_path, theirs, form, dtype):
    path = str(tmp_path / "model-0000.params")
    SAVES[form](theirs, path)
    cast(path, dtype)
    net = network(1)
    load(net, tmp_path / "model-0000")
    for name, param in theirs.collect_params().items():
        wanted = param.data().asnumpy().astype(dtype)
        np.testing.assert_array_equal(values(net)[name], wanted)
    assert net.collect_params().keys() == theirs.collect_params().keys()


# What is taken out of the file, what is added, and what is said.
WRONG = [
    ("structural", "output.weight", None, "missing: output.weight"),
    ("structural", None, "more.bias", "left over: more.bias"),
    ("structural", "output.bias", "out.bias", "missing: output.bias; left over: out.bias"),
    (
        "full",
        "cifarresnetv10_dense0_bias",
        "x",
        "missing: cifarresnetv10_dense0_bias; left over: x",
    ),
    ("without prefix", "dense0_bias", "x", "missing: dense0_bias; left over: x"),
]


@pytest.mark.parametrize(("form", "gone", "added", "said"), WRONG)
def test_the_first_name_that_is_missing_and_left_over_is_said(
    tmp_path, theirs, form, gone, added, said
):
    path = str(tmp_path / "model-0003.params")
    SAVES[form](theirs, path)
    arrays = mx.nd.load(path)
    arrays.update({added: mx.nd.ones(3)} if added else {})
    mx.nd.save(path, {name: array for name, array in arrays.items() if name != gone})
    with pytest.raises(Broken, match=f"0003.params: not the parameters of this network: {said}$"):
        load(network(1), tmp_path / "model-0003")


def test_parameters_of_a_deeper_network_are_left_over(tmp_path):
    deeper = network(1, "cifar_resnet56_v1")
    deeper.save_parameters(str(tmp_path / "model-0003.params"))
    with pytest.raises(
        Broken, match=r"network: left over: features.2.3.body.0.weight and \d+ more"
    ):
        load(network(1), tmp_path / "model-0003")


def test_a_file_that_is_cut_short_is_refused_with_what_mxnet_says(tmp_path, theirs):
    path = tmp_path / "model-0003.params"
    theirs.save_parameters(str(path))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(Broken, match="network: MXNetError: Check failed: "):
        load(network(1), tmp_path / "model-0003")


def test_parameters_without_names_are_refused(tmp_path):
    mx.nd.save(str(tmp_path / "model-0003.params"), [mx.nd.ones(3)])
    with pytest.raises(Broken, match="not the parameters of this network: arrays without names"):
        load(network(1), tmp_path / "model-0003")


def test_parameters_of_other_shapes_are_refused(tmp_path):
    wider = get_network(NETWORK, 11, (3, 32, 32), [mx.cpu()])
    wider.save_parameters(str(tmp_path / "model-0003.params"))
    with pytest.raises(Broken, match=r"expected \(10, 64\) vs saved \(11, 64\)"):
        load(network(1), tmp_path / "model-0003")

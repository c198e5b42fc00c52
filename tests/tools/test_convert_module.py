"""Checkpoints of what `mx.mod.Module` and Gluon saved; Module is the oracle of what follows."""

import json
import shlex
import shutil

from gluon_dist.checkpoint import files as checkpoint
from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np
import pytest
from gluoncv.model_zoo import get_model

from convert_module import main
from launching import ROOT, TRAIN, accuracies, launch, train
from networks.by_name import get_network, network_json
from old_example import SCALING, accuracy_of, batches, old_resnet, plain, train_with_module
from restarting import params
from run.candidates import read_first
from sources import synthetic

TIME_BUDGET_S = 60
LABELED = 100  # training images of the old checkpoints
SMALL = ("--data", "synthetic", "--num-examples", LABELED, "--batch-size", LABELED, *SCALING)
IMAGES = mx.nd.array(np.random.RandomState(0).randint(256, size=(4, 3, 32, 32)) - 120)


@pytest.fixture(scope="module")
def training_set():
    return synthetic.make_images(synthetic.NUM_TRAIN, seed=0, first=LABELED)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, training_set):
    """A folder with checkpoints of two epochs, made by plain Module."""
    folder = tmp_path_factory.mktemp("old")
    for name, symbol, lr in (("resnet", old_resnet(), 0.05), ("plain", plain(), 1e-5)):
        mx.random.seed(1)
        train_with_module(symbol, folder / name, batches(*training_set, 10), lr=lr)
    return folder


@pytest.fixture
def old(trained, tmp_path, monkeypatch):
    """A copy of it: old / "resnet" is a prefix. Module does not fuse layers, which rounds."""
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "NONE")
    return shutil.copytree(trained, tmp_path / "old")


def convert(prefix, name="new"):
    """Convert; return the new prefix."""
    new = prefix.parent.parent / name / prefix.name
    assert main([f"{prefix}-0002.params", "--model-prefix", str(new)]) == 0
    return new


def go_on(folder, prefix, *options, workers=0):
    words = (*SMALL, "--optimizer", "sgd", "--lr", "0.01", "--num-epochs", 3, *options)
    words += ("--network", f"{prefix}-symbol.json", "--model-prefix", prefix)
    job = launch(folder, "-n", workers, *TRAIN, *words) if workers else train(folder, *words)
    assert job.status == 0, job.text()
    return job.text()


def read(network, prefix):
    """The network of a checkpoint, as the program reads it."""
    net = get_network(str(network), 10, (3, 32, 32), [mx.cpu()])
    read_first(checkpoint.find(str(prefix)), net, {})
    return net


def module_scores(prefix):
    module = mx.mod.Module.load(str(prefix), 2, context=mx.cpu())
    module.bind([("data", IMAGES.shape)], for_training=False)
    return module.predict(mx.io.NDArrayIter(IMAGES, batch_size=len(IMAGES))).asnumpy()


@pytest.mark.parametrize("name", ["resnet", "plain"])
def test_a_converted_network_gives_what_module_gives_here_and_in_plain_gluon(old, name, capsys):
    new = convert(old / name)
    assert "gives the scores of" in capsys.readouterr().out
    files = f"{new}-symbol.json", ["data"], f"{new}-0002.params"
    for net in read(files[0], new), mx.gluon.SymbolBlock.imports(*files):
        found = net(IMAGES).softmax().asnumpy()
        np.testing.assert_allclose(found, module_scores(old / name), rtol=1e-3, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (0, ()),
        (0, ("--cpus", "2")),
        (2, ("--kv-store", "dist_device_sync", "--allreduce", "servers", "--batch-size", "50")),
    ],
)
def test_a_training_goes_on_from_there_and_module_reads_what_it_saves(
    tmp_path, old, workers, options
):
    new = convert(old / "resnet")
    said = go_on(tmp_path, new, "--load-epoch", "2", *options, workers=workers)
    assert said.count("has parameters alone: the optimizer begins anew, without momentum") == 1
    shutil.copy(f"{new}-0003.params", f"{old}/resnet-0003.params")  # beside the old symbol
    test_set = batches(*synthetic.make_images(synthetic.NUM_TEST, seed=1))
    expected = accuracy_of(old / "resnet", 3, test_set)
    assert accuracies(said) == [pytest.approx([expected] * max(workers, 1), abs=1e-6)]
    assert expected > 0.15  # better than a guess


@pytest.mark.long
@pytest.mark.parametrize(("name", "devices"), [("resnet", 1), ("plain", 1), ("plain", 2)])
def test_a_step_is_the_one_that_module_takes(tmp_path, old, training_set, name, devices):
    """All images are one batch: their order does not count."""
    few = ("--mom", "0", "--lr", "0.001", "--cpus", devices)
    new = convert(old / name)
    go_on(tmp_path, new, "--load-epoch", "2", *few)
    module = mx.mod.Module.load(str(old / name), 2, context=mx.cpu())
    whole = batches(*training_set, batch_size=LABELED)
    module.bind(whole.provide_data, whole.provide_label)
    module.init_optimizer("local", "sgd", {"learning_rate": 0.001, "momentum": 0, "wd": 0})
    module.forward_backward(next(whole))
    module.update()
    mx.nd.waitall()  # else Module may read BatchNorm's statistics before they have moved
    weights, statistics = module.get_params()
    before, ours = params(new, "0002"), params(new, "0003")
    assert len(ours) == len(weights) + len(statistics)
    for key, found in ours.items():
        kind, _, name = key.partition(":")
        expected = {"arg": weights, "aux": statistics}[kind][name].asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5, err_msg=key)
    assert any(np.abs(ours[key] - before[key]).max() > 1e-4 for key in before)


def test_the_program_says_how_to_convert_what_has_no_manifest(old):
    with pytest.raises(UsageError) as caught:
        read(f"{old}/plain-symbol.json", old / "plain")
    said, command = str(caught.value).split("convert it: python tools/convert_module.py ")
    assert said.startswith(f"{old}/plain-0002.params has no manifest") and "\n" not in command
    assert main(shlex.split(command)) == 0
    read(f"{old}/plain-converted-symbol.json", old / "plain-converted")


def test_what_gluon_saved_is_converted_for_a_network_with_a_name(tmp_path, capsys):
    with mx.name.NameManager():  # as the first one of a program
        theirs = get_model("cifar_resnet20_v1", classes=10)
    theirs.initialize()
    theirs.hybridize()
    expected = theirs(IMAGES).asnumpy()
    theirs.export(str(tmp_path / "theirs"))
    name, new = "cifar_resnet20_v1", tmp_path / "new"
    words = ["--network", name, "--epoch", "2", "--model-prefix", str(new)]
    assert main([f"{tmp_path}/theirs-0000.params", *words]) == 0
    assert "gives the scores" in capsys.readouterr().out
    np.testing.assert_allclose(read(name, new)(IMAGES).asnumpy(), expected, rtol=1e-4, atol=1e-4)


def test_casts_to_float16_and_the_form_of_early_versions_change_nothing(old):
    symbol = old / "plain-symbol.json"
    text = symbol.read_text()
    cast = mx.sym.Cast(mx.sym.load_json(text).get_children()[0], dtype="float16")
    in_float16 = mx.sym.SoftmaxOutput(mx.sym.Cast(cast, dtype="float32"), name="softmax").tojson()
    early = json.loads(text)
    for node in early["nodes"]:
        node["attr"] = node.pop("attrs", {})
        node["op"] = node["op"].replace("SoftmaxOutput", "Softmax")
    early["attrs"]["mxnet_version"] = ["int", 904]  # 0.9.4
    path = f"{old}/plain-0002.params"
    rounded = {key: value.astype("float16") for key, value in mx.nd.load(path).items()}
    mx.nd.save(path, {key: value.astype("float32") for key, value in rounded.items()})
    expected = module_scores(old / "plain")
    mx.nd.save(path, rounded)
    for name, other in {"cast": in_float16, "early": json.dumps(early)}.items():
        symbol.write_text(other)
        new = convert(old / "plain", name)
        found = read(f"{new}-symbol.json", new)(IMAGES).softmax().asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_a_network_is_written_as_it_is_read_and_a_new_one_begins_as_any(old):
    first = get_network(f"{old}/resnet-symbol.json", 10, (3, 32, 32), [mx.cpu()])
    new = convert(old / "resnet")
    assert new.with_name("resnet-symbol.json").read_text() == network_json(first)
    for name, param in first.collect_params().items():
        array = param.data().asnumpy()
        is_one, is_zero = name.endswith(("gamma", "var")), name.endswith(("beta", "mean", "bias"))
        assert (array.min(), array.max()) == (1, 1) if is_one else is_zero != array.any()


def cut(folder):
    path = folder / "plain-0002.params"
    path.write_bytes(path.read_bytes()[:200])


def infinite(folder):
    path = str(folder / "plain-0002.params")
    arrays = mx.nd.load(path)
    arrays["arg:end_bias"][0] = float("inf")
    mx.nd.save(path, arrays)


def other(folder):
    """The same parameters for another network."""
    return (folder / "plain-symbol.json").read_text().replace("relu", "tanh")


SVM = mx.sym.SVMOutput(mx.sym.var("data"), name="svm")
# What is done to the folder (it may return another symbol), what is asked for, what is said.
WRONG = [
    (None, "none-0002.params", "none-0002.params: No such file"),
    (None, "plain-0007.params", "plain-0007.params: No such file"),
    (None, "plain-symbol.json", "plain-symbol.json: no number of epochs in its name"),
    (None, "plain-0002.params --num-classes 9", "--num-classes 9: {}/plain-symbol.json has 10"),
    (None, "plain-0002.params --image-shape 3,2,2", "does not take images of --image-shape 3,2,2"),
    (None, "plain-0002.params --network fast", "plain-0002.params: not the parameters of this"),
    (None, "plain-0002.params --model-prefix /proc/nowhere/x", "/proc/nowhere/x: cannot write to"),
    (None, "plain-0002.params --model-prefix {}/plain", "{}/plain-0002.params exists: name"),
    (None, "plain-0002.params --epoch 9 --model-prefix {}/resnet", "/resnet-symbol.json exists"),
    (None, "plain-0002.params --model-prefix {}/", "{}/: a folder; add how its files begin"),
    (None, "was.params --epoch 2", "was.params-symbol.json is not there: give the network's"),
    (None, "plain-0002.params --ne x", "unrecognized arguments: --ne x"),
    (lambda folder: "{", "plain-0002.params", "plain-symbol.json: not a network in MXNet's JSON"),
    (lambda folder: SVM.tojson(), "plain-0002.params", "symbol.json: ends in SVMOutput"),
    (cut, "plain-0002.params", "plain-0002.params: not the parameters of this network: MXNetErr"),
    (infinite, "plain-0002.params", "of this network: arg:end_bias is not finite"),
    (other, "plain-0002.params --network {}/was.json", "plain-symbol.json: another network than"),
]


@pytest.mark.parametrize(("act", "words", "said"), WRONG)
def test_what_cannot_be_converted_is_refused_in_one_line_and_nothing_is_written(
    old, act, words, said
):
    shutil.copy(old / "plain-symbol.json", old / "was.json")
    shutil.copy(old / "plain-0002.params", old / "was.params")
    changed = act and act(old)
    if changed:
        (old / "plain-symbol.json").write_text(changed)
    before = {path: path.read_bytes() for path in old.iterdir()}
    path, *options = words.format(*[old] * 9).split()
    with pytest.raises(UsageError) as caught:
        main(["--model-prefix", f"{old}/new", f"{old}/{path}", *options])
    assert said.format(old) in str(caught.value) and "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in old.iterdir()} == before


def test_a_mistake_ends_the_command_with_one_line_and_status_2(tmp_path):
    job = launch(tmp_path, "none.params", program=ROOT / "tools" / "convert_module.py")
    assert job.status == 2 and job.stdout == ""
    (line,) = job.stderr.splitlines()
    assert line == "convert_module.py: error: the following arguments are required: --model-prefix"

"""Going on from what `mx.mod.Module` saved, as MXNet's older examples do; Module is the oracle."""

import json
import shutil

import mxnet as mx
import numpy as np
import pytest

from command_line.parse import parse_args
from ground.failure import UsageError
from launching import TRAIN, accuracies, launch, train
from networks.by_symbol import SymbolNetwork, ends_in_softmax
from old_example import (
    MEAN,
    SCALING,
    accuracy_of,
    batches,
    old_resnet,
    plain,
    train_with_module,
)
from restarting import assert_same, params
from saving.module_files import network_of_module, warn_of_replacing
from sources import synthetic
from workers import Workers

TIME_BUDGET_S = 60
LABELED = 100  # training images of the old checkpoints
RESNET_8 = ("--network", "resnet", "--num-layers", "8")
SMALL = ("--data", "synthetic", "--num-examples", LABELED, "--batch-size", LABELED)
SGD = ("--optimizer", "sgd", "--lr", "0.01")
TOLD = "cifar10-0002.params came alone: the optimizer begins anew, without momentum"


@pytest.fixture(scope="module")
def test_set():
    return batches(*synthetic.make_images(synthetic.NUM_TEST, seed=1))


@pytest.fixture(scope="module")
def training_set():
    return synthetic.make_images(synthetic.NUM_TRAIN, seed=0, first=LABELED)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, training_set):
    """Folders with checkpoints of two epochs, made by plain Module."""
    folder = tmp_path_factory.mktemp("old")
    for name, symbol in {"resnet": old_resnet(), "plain": plain()}.items():
        (folder / name).mkdir()
        mx.random.seed(1)
        lr = 0.05 if name == "resnet" else 1e-5
        train_with_module(symbol, folder / name / "cifar10", batches(*training_set, 10), lr=lr)
    return folder


@pytest.fixture
def old(trained, tmp_path, monkeypatch):
    """Copies of them: old("resnet") is a prefix. Module does not fuse layers, which rounds."""
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "NONE")

    def prefix(name):
        return shutil.copytree(trained / name, tmp_path / name) / "cifar10"

    return prefix


def go_on(folder, prefix, *options, workers=0, num_epochs=3):
    """Train; of several workers, only the first has the files."""
    words = [*SMALL, *SGD, *SCALING, "--num-epochs", num_epochs, *options, "--model-prefix"]
    if workers:
        (folder / "0").symlink_to(prefix.parent)
        (folder / "1").mkdir()
        words = [*TRAIN, *words, f"{folder}/$LAUNCH_WORKER_ID/{prefix.name}"]
        job = launch(folder, "-n", workers, " ".join(map(str, words)))
    else:
        job = train(folder, *words, prefix)
    assert job.status == 0, job.text()
    return job.text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (0, ()),
        (0, ("--cpus", "2")),
        (2, ("--kv-store", "dist_device_sync", "--allreduce", "servers", "--batch-size", "50")),
    ],
)
def test_before_the_first_step_and_after_it_the_accuracy_is_that_which_module_reports(
    tmp_path, old, test_set, workers, options
):
    prefix = old("resnet")
    before = prefix.with_name("cifar10-symbol.json").read_text()
    said = go_on(tmp_path, prefix, *RESNET_8, "--load-epoch", "2", *options, workers=workers)
    expected = [accuracy_of(prefix, epoch, test_set) for epoch in (2, 3)]
    assert expected[0] > 0.15  # better than a guess
    for epoch, found in zip(expected, accuracies(said)):
        assert found == pytest.approx([epoch] * max(workers, 1), abs=1e-6)
    assert said.count(TOLD) == 1 and "would be another" not in said
    assert prefix.with_name("cifar10-symbol.json").read_text() == before  # Module may train on


@pytest.mark.long
def test_what_is_saved_is_read_by_plain_gluon(tmp_path, old, test_set):
    prefix = old("resnet")
    said = go_on(tmp_path, prefix, *RESNET_8, "--load-epoch", "2")
    files = f"{prefix}-symbol.json", ["data", "softmax_label"], f"{prefix}-0003.params"
    net = mx.gluon.SymbolBlock.imports(*files)
    images, labels = synthetic.make_images(synthetic.NUM_TEST, seed=1)
    scaled = mx.nd.array(images - np.array(MEAN)[:, None, None])
    right = net(scaled, mx.nd.array(labels)).asnumpy().argmax(axis=1) == labels
    assert np.mean(right) == pytest.approx(accuracies(said)[-1][0], abs=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("name", "devices"), [("resnet", 1), ("plain", 1), ("plain", 2)])
def test_a_step_is_the_one_that_module_takes(tmp_path, old, training_set, name, devices):
    """All images are one batch: their order does not count."""
    prefix = old(name)
    prefix.with_name("cifar10-0002.states").write_bytes(b"a pickle")
    few = ("--mom", "0", "--lr", "0.001", "--cpus", devices)
    said = go_on(tmp_path, prefix, "--load-epoch", "2", *few)
    assert f"{TOLD}; its .states, a pickle that could run any program, is not read" in said
    module = mx.mod.Module.load(str(prefix), 2, context=mx.cpu())
    whole = batches(*training_set, batch_size=LABELED)
    module.bind(whole.provide_data, whole.provide_label)
    module.init_optimizer("local", "sgd", {"learning_rate": 0.001, "momentum": 0, "wd": 0})
    module.forward_backward(next(whole))
    module.update()
    mx.nd.waitall()  # else Module may read BatchNorm's statistics before they have moved
    weights, statistics = module.get_params()
    before, ours = params(prefix, "0002"), params(prefix, "0003")
    assert len(ours) == len(weights) + len(statistics)
    for key, found in ours.items():
        kind, _, name = key.partition(":")
        expected = {"arg": weights, "aux": statistics}[kind][name].asnumpy()
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5, err_msg=key)
    assert any(np.abs(ours[key] - before[key]).max() > 1e-4 for key in before)


@pytest.mark.long
def test_a_training_that_went_on_goes_on_again_as_if_it_had_not_stopped(tmp_path, old):
    straight, stopped = old("resnet"), old("plain").parent.with_name("again") / "cifar10"
    shutil.copytree(straight.parent, stopped.parent)
    go_on(tmp_path, straight, *RESNET_8, "--load-epoch", "2", num_epochs=4)
    go_on(tmp_path, stopped, *RESNET_8, "--load-epoch", "2")
    said = go_on(tmp_path, stopped, "--network", "lenet", "--resume", "auto", num_epochs=4)
    assert "cifar10-symbol.json; --network lenet would be another" in said
    assert_same(straight, stopped)


def read(prefix, *options):
    words = ["--model-prefix", str(prefix), "--load-epoch", "2", *RESNET_8, *options]
    return network_of_module(parse_args(words), [mx.cpu()], Workers(mx.kv.create("local")))


def test_a_network_that_contradicts_the_symbol_is_told(old, capsys):
    prefix = old("resnet")
    read(prefix, *SCALING)
    assert capsys.readouterr().err == ""
    read(prefix, *SCALING, "--num-layers", "14")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "the network is read from " + str(prefix) + "-symbol.json; --network "
        "resnet would be another"
    )


def test_images_that_would_be_divided_by_255_are_warned_of(old, capsys):
    read(old("resnet"))
    (line,) = capsys.readouterr().err.splitlines()
    assert "divided by 255, which MXNet's older examples did not do: add the --rgb-mean" in line


def test_what_does_not_go_with_the_symbol_is_refused_in_one_line(old):
    prefix = old("resnet")
    with pytest.raises(UsageError, match=r"--dtype bfloat16: .*is read as it is, without casts"):
        read(prefix, "--dtype", "bfloat16")
    with pytest.raises(UsageError, match=r"--num-classes 100: .*-symbol.json has 10 classes"):
        read(prefix, "--num-classes", "100")
    with pytest.raises(UsageError, match="does not take images of --image-shape 3,2,2 "):
        read(old("plain"), "--image-shape", "3,2,2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (mx.sym.SVMOutput(mx.sym.var("data"), name="svm").tojson(), "ends in SVMOutput; only one"),
        ("{", "not a network in MXNet's JSON"),
        (
            mx.sym.SoftmaxOutput(
                mx.sym.concat(mx.sym.var("data"), mx.sym.var("more")), name="softmax"
            ).tojson(),
            "needs more inputs than images",
        ),
    ],
)
def test_a_symbol_that_cannot_be_trained_is_refused_with_the_reason(old, text, said):
    prefix = old("plain")
    prefix.with_name("cifar10-symbol.json").write_text(text)
    with pytest.raises(UsageError, match=f"cifar10-symbol.json: {said}"):
        read(prefix)


def test_a_new_training_says_that_it_replaces_the_symbol(old, capsys):
    warn_of_replacing(str(old("plain")))
    assert "cifar10-symbol.json on " in capsys.readouterr().err


def scores(text, values):
    """What a network gives for an image, its parameters being these."""
    net = SymbolNetwork("symbol", text, (3, 32, 32), 10)
    net.collect_params().load_dict(values, ctx=mx.cpu(), cast_dtype=True)
    return net(mx.nd.ones((1, 3, 32, 32))).asnumpy()


def test_casts_to_float16_and_the_form_of_early_versions_change_nothing(old):
    prefix = old("plain")
    text = prefix.with_name("cifar10-symbol.json").read_text()
    found = mx.nd.load(f"{prefix}-0002.params").items()
    values = {name.partition(":")[2]: value.astype("float16") for name, value in found}
    cast = mx.sym.Cast(mx.sym.load_json(text).get_children()[0], dtype="float16")
    in_float16 = mx.sym.SoftmaxOutput(mx.sym.Cast(cast, dtype="float32"), name="softmax")
    early = json.loads(text)
    for node in early["nodes"]:
        node["attr"] = node.pop("attrs", {})
        node["op"] = node["op"].replace("SoftmaxOutput", "Softmax")
    early["attrs"]["mxnet_version"] = ["int", 904]  # 0.9.4
    for other in (in_float16.tojson(), json.dumps(early)):
        assert ends_in_softmax(other)
        np.testing.assert_array_equal(scores(other, values), scores(text, values))

"""The fast network: its whitening, its first steps, and every way to train it."""

import json

from gluon_dist.exchange import optimizers

import mxnet as mx
import numpy as np
import pytest

from launching import TRAIN, accuracies, launch, train
from networks import fast as fast_network
from networks.by_name import get_network
from networks.fast import num_to_whiten
from sources import synthetic
from sources.transform import Transform

TIME_BUDGET_S = 110
SHORT = ("--data", "synthetic", "--network", "fast", "--num-examples", "1024")
SHORT += ("--batch-size", "32", "--num-epochs", "1")
IMAGES = synthetic.make_images(1000, 0)[0]


def test_what_the_whitening_puts_out_is_uncorrelated_and_of_equal_size():
    """Its positive half: the other is its negative."""
    net = get_network("fast", 10, (3, 32, 32), [mx.cpu()])
    images = Transform(mean=(120.0,) * 3, std=(60.0,) * 3).scale(IMAGES)
    net.whiten(images)
    out = net.whitening(mx.nd.array(images)).asnumpy()[:, : fast_network.PATTERNS]
    flat = out.transpose(1, 0, 2, 3).reshape(fast_network.PATTERNS, -1)
    moments = flat @ flat.T / flat.shape[1]
    np.testing.assert_allclose(moments, np.eye(fast_network.PATTERNS), atol=0.2)


@pytest.mark.parametrize(
    "shape, number", [((3, 32, 32), 5000), ((1, 28, 28), 5000), ((3, 224, 224), 102)]
)
def test_fewer_large_images_do_for_the_whitening(shape, number):
    assert num_to_whiten(shape) == number


def test_convolutions_begin_by_handing_their_inputs_on():
    weight = mx.nd.empty((5, 3, 3, 3))
    fast_network.Identity()(mx.init.InitDesc("weight"), weight)
    data = mx.nd.random.uniform(shape=(2, 3, 6, 6))
    out = mx.nd.Convolution(data, weight, kernel=(3, 3), pad=(1, 1), num_filter=5, no_bias=True)
    np.testing.assert_array_equal(out[:, :3].asnumpy(), data.asnumpy())
    assert abs(out[:, 3:].asnumpy()).max() > 0


def test_the_whitening_is_not_learned_and_gray_images_will_do():
    net = get_network("fast", 4, (1, 28, 28), [mx.cpu()])
    assert [param.grad_req for param in net.whitening.collect_params().values()] == ["null"]
    assert net(mx.nd.zeros((2, 1, 28, 28))).shape == (2, 4)


@pytest.mark.long
def test_mirror_images_are_tested_after_the_last_epoch(tmp_path):
    few = "--data synthetic --network resnet --num-layers 8 --num-examples 128 --batch-size 64"
    losses = {}
    for when in ("0", "last"):
        folder = tmp_path / when
        options = ("--num-epochs", "2", "--flip-test", when, "--log-dir", str(folder))
        job = train(tmp_path, *few.split(), *options)
        assert job.status == 0, job.stderr
        rows = (folder / "metrics.jsonl").read_text().splitlines()
        losses[when] = [json.loads(row)["test_loss"] for row in rows]
    assert losses["last"][0] == losses["0"][0] and losses["last"][1] != losses["0"][1]


@pytest.mark.parametrize("clip", [None, 0.3])
def test_nesterov_momentum_decays_the_weight_of_before_the_step(clip):
    optimizer = optimizers.NAG(momentum=0.9, learning_rate=0.1, wd=0.2, clip_gradient=clip)
    optimizer.rescale_grad = 0.5
    rng = np.random.RandomState(0)
    weight, grads = rng.randn(7).astype("float32"), rng.randn(4, 7).astype("float32")
    ours, momentum = mx.nd.array(weight), np.zeros(7)
    state = optimizer.create_state_multi_precision(0, ours)
    for grad in grads:
        optimizer.update_multi_precision(0, ours, mx.nd.array(grad), state)
        step = 0.1 * (np.clip(0.5 * grad, -(clip or 9), clip or 9) + 0.2 * weight)
        momentum = 0.9 * momentum - step
        weight = weight + 0.9 * momentum - step
    np.testing.assert_allclose(ours.asnumpy(), weight, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.asnumpy(), momentum, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_the_same_training_ends_at_the_same_bits(tmp_path):
    """Also after a test, which puts weights into other layouts."""
    few = "--data synthetic --network fast --num-examples 1000 --batch-size 25 --num-epochs 2"
    ends = set()
    for number in range(2):
        job = train(
            tmp_path, *few.split(), "--seed", "1", "--model-prefix", str(tmp_path / str(number))
        )
        assert job.status == 0, job.stderr
        ends.add((tmp_path / f"{number}-0002.params").read_bytes())
    assert len(ends) == 1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["local", "dist_sync", "dist_async"])
def test_the_fast_network_learns_with_every_kind_of_store(kind, tmp_path):
    many = kind.startswith("dist")
    job = (
        launch(tmp_path, "-n", 2, *TRAIN, *SHORT, "--kv-store", kind, "--flip-test", "0")
        if many
        else train(tmp_path, *SHORT, "--cpus", "2")
    )
    assert job.status == 0, job.stdout + job.stderr
    assert "--network fast trains with --optimizer nag" in job.stdout
    (last,) = set(accuracies(job.stdout)[-1])
    assert last > 0.3

"""What notebook 02 claims, run in its kernel after its last cell."""

assert f"not initialized on context {there}" in mixing_error and moved.context == here
assert "multiple contexts" in hybrid_error and "cannot be evenly split" in uneven_error
assert "inferring shapes failed" in too_few_error
assert layer.weight.list_ctx() == ctx
assert (layer.weight.data(here).asnumpy() == layer.weight.data(there).asnumpy()).all()
parts_of_seven = gluon.utils.split_data(mx.nd.arange(7), 2, even_split=False)
assert [len(part) for part in parts_of_seven] == [4, 3]
assert (first, second) == (3, 6) and (first + second) / 3 == 3  # the sum, divided once
assert to_trainer <= 1e-6 and to_one <= 1e-6 < np.abs(hand - begin).max() / 100
assert abs(too_long - 2) < 1e-3  # the size of one part: twice as far
assert all(np.allclose(sum(before), total, atol=1e-6) for total in after)
assert drift > 1e-4 and (weights(by_trainer, here) == weights(by_trainer, there)).all()
assert uneven_difference <= 1e-6  # also with a short batch and an idle device

# What an idle device holds before zero_idle_gradients: the sum of the last step, on both devices.
net = create_net(ctx)
trainer = gluon.Trainer(net.collect_params(), "sgd", {}, update_on_kvstore=False)
take_step(batches[0], net, trainer, ctx)
stale = [grad.asnumpy() for grad in net[1].bias.list_grad()]
assert (stale[0] == stale[1]).all() and stale[0].any()
forward_backward(net, loss, *split_batch(batches[2], ctx), 1)
try:
    trainer.step(1)
    raise AssertionError("a stale gradient was taken")
except UserWarning:
    pass

# The rounding of the losses is wide, to leave room for GPUs, whose sums come in another order.
assert len(curve_two) == num_epochs * len(train_loader) and len(some[0]) % batch_size
assert difference[0] < 1e-5 and difference.max() < 1e-2
assert accuracies[0] > 0.8 and abs(accuracies[0] - accuracies[1]) < 0.01

num_bytes = 4 * len(weights(on_two, here))  # G
assert kept == {"weights": num_bytes, "gradients": num_bytes, "state": num_bytes}
assert output_bytes(on_two, (3, 1, 28, 28)) == 3 * outputs

# A store that updates, the default, keeps momentum once.
net = create_net(ctx)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
backward(net, images, labels, ctx)
trainer.step(batch_size)
num_bytes = 4 * len(weights(net, here))
assert sum(count_bytes(net, trainer)["state"].values()) == num_bytes

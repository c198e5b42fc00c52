assert "scale" in late_error  # the call returned, waiting raised
assert before == (2, 0) and layer.weight.shape == (2, 3)
assert sum(sizes.values()) == 61_706 and max(sizes, key=sizes.get) == net[4].name
np.testing.assert_allclose(loss_by_project, loss_by_hand, rtol=1e-4)
assert w.grad.asscalar() == each.sum() == -14
first = 1 - 0.1 * each[:2].sum() / 2
last = 0.1 * (first * 3 - 6) * 3  # of the one example x = 3
np.testing.assert_allclose(whole, 1 - 0.1 * each.sum() / 3, rtol=1e-6)
np.testing.assert_allclose([own, fixed], [first - last, first - last / 2], rtol=1e-6)
for epoch in range(2):
    assert sorted(epoch_permutation(10, SEED, epoch)) == list(range(10))
assert list(epoch_permutation(10, SEED, 0)) != list(epoch_permutation(10, SEED, 1))
assert sum(lengths) == len(images) and set(lengths[:-1]) == {BATCH_SIZE}
assert abs(unseen[0] - 0.1) < 0.15 and unseen[-1] > 0.8
assert python_ran == ["mxnet.ndarray", "mxnet.ndarray", "mxnet.symbol"]
np.testing.assert_allclose(as_graph, as_python, rtol=1e-4, atol=1e-4)
frozen = [outcome.startswith("no error") for outcome in outcomes.values()]
assert frozen == [False] * 5 + [True] * 4
assert list(ways) == list(cases) and all(min(ms.values()) >= 0 for ms in ways.values())
early, late, one = nn.Dense(2), nn.Dense(2), mx.nd.ones((1, 3))
early.infer_shape(one)
early.initialize()
assert early.weight.data().shape == (2, 3)
late.initialize()
late.infer_shape(one)  # after initialize: shapes only
assert late.weight.shape == (2, 3)
try:
    late.weight.data()
    raise AssertionError("it had values")
except gluon.parameter.DeferredInitializationError:
    pass

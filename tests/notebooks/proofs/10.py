import json

assert abs(one_device - theirs["weight"]).max() < 1e-5
assert np.allclose(losses, theirs["losses"], atol=1e-5)
assert np.allclose(path["Gluon"][:10], path["PyTorch"][:10], atol=1e-5)
assert path["Gluon"][-1] < path["PyTorch"][-1] - 1  # it goes on for longer
assert abs(ours_norm["mean"] - theirs_norm["mean"]) < 1e-6
assert theirs_norm["var"] > ours_norm["var"] + 0.04
assert ours_first["dense"]["bias"] == 0 < theirs_first["dense"]["bias"]
gap = {
    name: abs(steps - alone).max(axis=(1, 2))
    for name, steps in (("PyTorch", theirs_steps), ("Gluon", ours_steps))
}
assert gap["PyTorch"][:2].max() < 1e-5 < 1e-3 < gap["PyTorch"][2]
assert gap["Gluon"].max() < 1e-5
for name, param in pairs.items():
    assert param.shape == tuple(theirs_fast["shapes"][name]), name
assert len(pairs) == len(list(fast.collect_params())) == len(theirs_fast["shapes"])
assert way_in < 1e-4 * np.abs(theirs_fast["scores"]).max()
gammas = [array for name, array in state.items() if name.endswith("weight") and array.ndim == 1]
assert gammas and all((gamma == 1).all() for gamma in gammas)
assert abs(witness - scores).max() < 1e-4 * abs(scores).max() and same == NUM_SCORED
saved = json.loads(pytorch_side.SAVED.read_text())["split"]["result"]
assert [len(part) for part in saved] == [11, 11] and saved[0][0] == saved[1][-1] == 0
assert l2 == 2 and adam[0] < adam[1]  # Gluon's epsilon comes before the correction

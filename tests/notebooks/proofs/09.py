for dtype in ("float32", "float16"):
    info = np.finfo(dtype)
    assert limits(*BITS[dtype])[0] == info.max and limits(*BITS[dtype])[2] == info.eps
assert kept["float16"].tolist()[:2] == [1, 257] and kept["bfloat16"].tolist()[:2] == [1, 256]
assert np.isinf(kept["float16"][2]) and kept["float16"][3] == 0  # too narrow
assert by_scale[1] == 0 and np.isinf(by_scale[2**30])
np.testing.assert_allclose([by_scale[2**10], by_scale[2**16]], 1e-8, rtol=1e-2)
vanish = [((sizes * scale).astype("float16") == 0).mean() for scale in (1, 2**16)]
assert vanish[0] > vanish[1]
assert skipped[0] and scales[-1] < scales[0] and 3 * min(scales) < 65504
assert set(paths["float16"]) == {1}
assert abs(paths["float32"][-1] - 1.9) < 1e-3 and abs(paths[copied][-1] - 1.9) < 1e-3
treated = {o: sixteen_bits.treatment(o, "bfloat16") for o in ("Convolution", "softmax", "dot")}
assert list(treated.values()) == ["cast to 16 bits", "float32", "widest input"]
assert in_graph["log_softmax_output"] == "float32"
assert {kind for name, kind in in_graph.items() if name.endswith("fwd_output")} == {"float16"}
assert {kind for name, kind in in_graph.items() if name.endswith("weight")} == {"float32"}
for line in runs["bfloat16"]:
    assert line["types"]["between layers"] == "bfloat16"
    assert line["types"]["weights"] == line["types"]["gradients"] == "float32"
    assert line["accuracy"][-1] > 0.2
for key in ("weight", "scale"):
    first, second = ([line[key] for line in rank] for rank in ways["together"])
    assert first == second
    assert ways["alone"][0][-1][key] != ways["alone"][1][-1][key]
assert {line["sent as"] for rank in ways["together"] for line in rank} == {"float32"}
assert sixteen_bits.refusal(mx.nd.FullyConnected, *shapes, num_hidden=4, **no_bias)
assert np.isnan(ones.mean().asscalar()) and ones.astype("float32").mean().asscalar() == 1

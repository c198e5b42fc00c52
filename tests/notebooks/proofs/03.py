"""What notebook 03 claims, run in its kernel after its last cell."""

import re

assert all((copy.asnumpy() == 2).all() for copy in copies)  # added up in a push, then replaced
assert np.allclose(updated.asnumpy(), 1 - 2 * 2 * LEARNING_RATE)  # two updates
assert apart <= 1e-6  # the step by hand is the Trainer's
assert np.abs(weights(by_gluon, ctx[0]) - weights(create_lenet(ctx, SEED), ctx[0])).max() > 1e-4
assert sum_output.count("pulls [[6. 6. 6.] [6. 6. 6.]]") == 2

others = {key: [update["others"] for update in updates] for key, updates in times.items()}
assert not any(others["dist_sync", 0] + others["dist_sync", 1])  # never stale
for fast, slow_one in zip(times["dist_sync", 0], times["dist_sync", 1]):
    assert fast["answered"] >= slow_one["pushed"]  # one update needs the pushes of both
assert max(others["dist_async", 0] + others["dist_async", 1]) >= 1  # some were stale
assert np.abs(late - same).max() < 0.02  # stale gradients are, on average, a momentum

assert set(re.findall(r"rank (\d) pushed twice, and pulls (\d+)", traps_output)) == {
    ("0", "2"),  # no rank got three
    ("1", "4"),
}
waited = dict(re.findall(r"rank (\d) pulls \[3, 102, 3, 1\] after .*, ([\d.]+)\]", traps_output))
assert len(waited) == 2 and float(waited["0"]) >= 1.5  # rank 0 waited

counted = [line for line in bytes_output.replace(",", "").splitlines() if "bytes" in line]
assert len(counted) == 7 and len(parts) == 62 and messages == 62 + (parts > 0).all(axis=1).sum()
for line in counted if "does not count" not in bytes_output else []:
    what, found = line.split("] ")[1].split(":")
    numbers = list(map(int, re.findall(r"\d+", what)))
    rows = [server_parts(*numbers, NUM_SERVERS)] if "key" in what else parts
    computed = 4 * np.sum(rows, axis=0)
    more = np.array(list(map(int, re.findall(r"\d+", found)))) - [*computed, sum(computed)]
    assert min(more) >= 0 and max(more) <= 500 * len(rows)  # what comes on top is small
for kind in "nccl", "dist_sync":
    try:
        mx.kv.create(kind)
        assert mx.context.num_gpus() and kind == "nccl"
    except mx.MXNetError as error:
        assert "NCCL" in str(error) or "DMLC" in str(error)

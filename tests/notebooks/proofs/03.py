"""What notebook 03 claims, run in its kernel after its last cell."""


def facts(output):
    """The lines of JSON in a job's output."""
    return [json.loads(line.split("] ", 1)[1]) for line in output.splitlines() if "] {" in line]


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

first, second = (
    [fact for fact in facts(traps_output) if name in fact] for name in ("twice", "sums")
)
assert {fact["rank"]: fact["twice"] for fact in first} == {0: 2, 1: 4}  # nobody got three
assert [fact["sums"] for fact in second] == [[3, 102, 3, 1]] * 2
assert {fact["rank"]: fact["seconds"][-1] for fact in second}[0] >= 1.5  # rank 0 waited

counted = facts(bytes_output)
assert len(counted) == 7 and len(parts) == 62
for fact in counted if counted[0]["sent"] is not None else []:
    rows = [server_parts(fact["key"], fact["numbers"], NUM_SERVERS)] if "key" in fact else parts
    computed = 4 * np.sum(rows, axis=0)
    more = [*(np.array(fact["sent"]) - computed), fact["received"] - sum(computed)]
    assert min(more) >= 0 and max(more) <= 500 * len(rows)  # what comes on top is small
for kind in "nccl", "dist_sync":
    try:
        mx.kv.create(kind)
        assert mx.context.num_gpus() and kind == "nccl"
    except mx.MXNetError as error:
        assert "NCCL" in str(error) or "DMLC" in str(error)

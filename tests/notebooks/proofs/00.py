from run.schedule import REFERENCE_BATCH

assert status == 75 and again.lines("Resumed from")
assert calm[0] == both[0] == list(range(1, NUM_EPOCHS + 1))
assert max(abs(one - other) for one, other in zip(calm[1], both[1])) < 0.1
for told in (log, on_hosts):
    tested = [s.split("] ")[1] for s in told.splitlines() if "Epoch 0: Test_acc" in s]
    assert len(tested) == 2 and len(set(tested)) == 1
steps = -(-NUM_EXAMPLES // (2 * BATCH_SIZE))
assert f"{BATCH_SIZE} a worker, {2 * BATCH_SIZE} in all, {steps} steps an epoch" in log
assert [plain[name] for name in ("network", "optimizer", "lookahead")] == ["resnet18_v1", "adam", 0]
assert fast["lookahead"] == 5 and fast["lr_schedule"] == "onecycle" and REFERENCE_BATCH == 256
assert 0.2 < fast["warmup_epochs"] / fast["num_epochs"] < 0.25  # "the first quarter"

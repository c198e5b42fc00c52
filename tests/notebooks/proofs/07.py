# Part 1: every worker timed every part; traces tell who does what.
assert [len(facts) for facts in jobs.values()] == [1, 2, 2]
parts_of_a_step = ["data", "forward", "backward", "waiting", "exchange", "update"]
assert all(list(fact["parts_s"]) == parts_of_a_step for facts in jobs.values() for fact in facts)
kinds = {who: {span.kind for span in spans} for who, spans in found.items()}
for rank in range(2):
    assert {"forward", "backward", "update", "exchange"} <= kinds[f"worker {rank}"]
    assert {"server copies", "server adds"} <= kinds[f"server {rank}"]
    assert not {"forward", "backward", "update"} & kinds[f"server {rank}"]

# Part 2: by counting, for servers on some of the hosts; and the limits hold.
for workers in range(1, 9):
    for servers in range(1, workers + 1):
        own = (servers - 1 + workers - 1) / servers
        assert np.isclose(growth_model.bytes_of_host(workers, 1, servers), own)
    assert growth_model.bytes_of_host(workers, 1) < 2
if "-H" in hosts:  # real hosts: nothing but 256 kB after a pause is faster than the link
    for w, (seconds, _) in measured.items():
        assert seconds > COMPUTING + (growth_model.bytes_of_host(w, MB * 1e6) - 0.5e6) / RATE
assert len(saved) == 2
for row in saved:  # the longer of computing and sending, the step, their sum
    longer, step, whole = map(float, row[3:])
    assert longer < step < whole < 1.5 * longer

# Part 3: what is proved does not depend on speed.
assert all(needed["linear", 1] == needed[rule, 1] for rule in RULES)  # one worker: the same rate
assert mean["linear"][2] < 0.7 * mean["linear"][0]
assert mean["linear"][2] < mean["same rate"][2]
for rows in runs.values():
    assert len(rows) == NUM_EPOCHS and rows[-1]["train_accuracy"] > TARGET
    assert 0 < lab.seconds_to(rows, TARGET) < float("inf")
assert scaled_learning_rate(0.2, "linear", 64) * 2 == scaled_learning_rate(0.2, "linear", 128)

# Part 4: what arrives, on the stores that take it; what was sent and the rest are the sum.
said_by = {kind: lab.two_bits(kind) for kind in ("local", "device", "dist_sync")}
assert "not supported" in said_by["local"]
assert said_by["device"].split(": ")[1] == said_by["dist_sync"].split(": ")[1]
assert "[0.0, 0.5, 0.0, 0.5, 0.5]" in said_by["device"]
too_small = [digits.steps_to(EASY_TARGET, 1, "linear", seed, 0.05) for seed in SEEDS]
assert np.mean(too_small) > 1.5 * mean["linear"][0]

# Part 5: one worker computes, the other waits; the program says so.
last = slow[-1]
assert last["seconds_computing_worker_1"] > 1.3 * last["seconds_computing_worker_0"]
assert last["seconds_waiting_worker_0"] > last["seconds_waiting_worker_1"]
told = [line for line in said if "times as long as the others" in line]
assert len(told) == 1 and "worker 1 takes" in told[0]

# Part 6: sixteen bytes a weight.
assert roofline.training_bytes(1e9) == 16e9

by_ssh = "[worker 1 d2]" in log  # as root on Linux; elsewhere all ran on this machine
accuracies = [line.split()[-1] for line in log.splitlines() if " Epoch 1: Test_acc " in line]
assert len(accuracies) == 2 and len(set(accuracies)) == 1
assert {process["status"] for process in job["attempts"][-1]["processes"]} == {0}
logs = [path.stem for path in Path(ROOT, JOB_DIR).glob("*.log")]
assert sorted(logs) == ["scheduler", "server-0", "server-1", "worker-0", "worker-1"]
assert placement("-n", "4", "-s", "1", "-H", "gpu1,gpu2") == {
    "gpu1": ["scheduler", "server 0", "worker 1", "worker 3"],
    "gpu2": ["worker 0", "worker 2"],
}
assert [len(names) for names in placed.values()] == [6, 3]  # scheduler and two servers among them
assert shares["worker 1"] == (2, 3) and shares["worker 5"] == (4, 5, 6, 7)
assert status != 2 and stalled == 124
last_seen = {name: [line for line in hang if name in line] for name in ("worker 0", "worker 1")}
assert any("in read_batch" in line for line in last_seen["worker 1"])
assert any("in asnumpy" in line for line in last_seen["worker 0"])
assert not any("in asnumpy" in line for line in last_seen["worker 1"])
assert not any("step 3" in line for line in hang) and any("step 2" in line for line in hang)
waits = [line.split("] ")[1] for line in listening if "listens on" in line]
on = {line.split(" listens on: ")[0]: line.split(" listens on: ")[1] for line in waits}
assert set(on) == {"scheduler", "server", "supervisor", "worker 0", "worker 1"}
assert on["supervisor"] == "nothing" and all(
    " port " in on[name] for name in on if name != "supervisor"
)
assert by_ssh or all(on[name].startswith("127.0.0.1") for name in on if name != "supervisor")

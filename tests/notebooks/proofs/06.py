import launch
import mxnet as mx
from gluon_launch.watching.restarts import Counters, Ended, decide
from mxnet.contrib import amp
from gluon_dist.exchange import optimizer_state

assert alone_sync.count("alive") == 3 and alone_sync.count("ended by SIGKILL") == 1
assert alone_sync.count("step 2") == 2 and "step 3" not in alone_sync  # the other waits
assert alone_async.count("my epoch is done") == 1 and "all are done" not in alone_async
assert status_of_death == 137
wanted = {"exit 0": 0, "exit 2": 2, "exit 75": 75, "no-such-program": 127, "sleep 60": 124}
wanted.update({"kill -KILL $$": 128 + 9, "kill -TERM $$": 128 + 15})
assert {worker: status for worker, (status, _) in statuses.items()} == wanted
assert failing_jobs.status_of("kill -SEGV $$")[0] == 128 + 11
assert failing_jobs.status_of("exit 0", "-H", "nowhere.invalid,")[0] == 255
assert status_of_calm == status_of_resume == status_of_kill == status_of_cut == 0
assert status_of_fewer == 0 and status_of_stop == 75
assert len(set(manifest["worker_steps"])) == 1  # all stopped after the same step
assert manifest["epoch"] * STEPS + manifest["step"] < len(whole)
assert set(kinds) == {"optimizer", "lookahead", "statistics"}
assert kinds["optimizer"] == 2 * kinds["lookahead"]  # Adam's moments
files = sorted(path.name for path in (failing_jobs.ROOT / OUT).glob("undisturbed-*[lse]"))
assert len([name for name in files if "-0003" in name]) == 2  # .params, .state; and .json
for name in ("stopped", "killed", "cut"):
    assert difference("undisturbed", name) == 0, name
assert difference("bits", "again") == 0 and difference("bits", "late") > 0
assert difference("undisturbed", "fewer") > 0
again = dict(second)
assert all(again[step] == accuracy for step, accuracy in first if step >= second[0][0])
# the loss scale is in a checkpoint
net = mx.gluon.nn.Dense(1, in_units=1)
net.initialize()
trainer = gluon_dist.Trainer(net.collect_params(), "sgd")
trainer._amp_loss_scaler = amp.loss_scaler.LossScaler()
assert "loss_scale" in str(optimizer_state.collect(trainer)[0]["loss_scaler"])
# when the launcher gives up
options = launch.parse_args(["-n", "2", "--max-restarts", "3", "train"])
for kind, status, ran_s, asked, counters, goes_on in (
    ("failed", 137, 3600, False, Counters(), True),
    ("failed", 137, 5, False, Counters(), False),
    ("failed", 137, 3600, False, Counters(number=4, restarts=3), False),
    ("failed", 2, 3600, False, Counters(), False),
    ("asked", 75, 3600, True, Counters(), False),
    ("failed", 75, 5, False, Counters(), True),
):
    ended = Ended(kind=kind, status=status, asked=asked, ran_s=ran_s, now_s=0)
    assert decide(ended, counters, options).again == goes_on, (kind, status)
costs = [C / T + T / 2 / M for T in ((2 * C * M) ** 0.5 * factor for factor in (0.5, 1, 2))]
assert abs(costs[2] / costs[1] - 1.25) < 1e-9 and costs[0] > costs[1]

"""The checks of the notebook on failures."""

import failing_jobs

from checks import exercise, fault_of_parts, fault_of_type

# Of a training with 500 steps an epoch, 5 s a step, on four hosts, and with --save-period 2.
STRANGERS_LOG = """\
02:31:40 [worker 0 gpu-a] Epoch[7] Batch [300]	Speed: 812.40 samples/sec	accuracy=0.741250
02:31:47 [launch] worker 3 on gpu-d: was killed by SIGKILL: restarting (try 2, 1 of 3 restarts)
02:32:20 [worker 0 gpu-a] Resumed from out/model-0006: 6 epochs done
04:05:10 [worker 2 gpu-c] cifar10_dist.py: SIGUSR1: will save and stop within two steps
04:05:11 [worker 0 gpu-a] Stopped and saved out/model-0008-00121: --resume auto goes on from it
04:05:12 [launch] worker 2 on gpu-c: ended with status 75: restarting (try 3, 2 of 3 restarts)
04:05:41 [worker 0 gpu-a] Resumed from out/model-0008-00121: 8 epochs and 121 steps done
05:59:59 [worker 0 gpu-a] cifar10_dist.py: SIGTERM: will save and stop within two steps
05:59:59 [worker 1 gpu-b] cifar10_dist.py: SIGTERM: will save and stop within two steps
05:59:59 [worker 2 gpu-c] cifar10_dist.py: SIGTERM: will save and stop within two steps
05:59:59 [worker 3 gpu-d] cifar10_dist.py: SIGTERM: will save and stop within two steps
06:00:01 [worker 0 gpu-a] Stopped and saved out/model-0010-00471: --resume auto goes on from it
06:00:02 [launch] stopped by SIGTERM after 8 h 45 min: all workers saved on request
"""
# Seconds: the plan's training. 16 hosts, each of which fails once in 30 days.
EPOCH_S, SAVE_S, RESTART_S, BETWEEN_S = 360, 45, 240, 30 * 86_400 / 16


@exercise("06", 1)
def check_survivor(job):
    """Check that a job was killed, was started again, and ended as if nothing had happened."""
    text = "\n".join(job.lines())
    if "was killed by SIGKILL" not in text:
        return "no worker was killed: call job.signal before the end"
    if "Resumed from" not in text:
        return "it was killed, but no second try went on from a checkpoint"
    if job.finish() != 0:
        return f"it ended with status {job.finish()}"
    if not list((failing_jobs.ROOT / failing_jobs.OUT).glob(f"{job.name}-[0-9]*.json")):
        return f"give it the prefix {failing_jobs.OUT}/{job.name}, as its name says"
    same = failing_jobs.difference("undisturbed", job.name) == 0
    fault = "its parameters are not those of the undisturbed job: are the options the same?"
    return "" if same else fault


@exercise("06", 2)
def check_night(answer):
    """Check what a reader finds in the stranger's log."""
    done, resumed = 7 * 500 + 300, 6 * 500
    wanted = {"computed twice": done - resumed, "asked at 04:05": "worker 2"}
    wanted.update({"asked at 05:59": "launcher", "status": 75})
    hints = {
        "computed twice": "the log shows how far it was, and where it went on",
        "asked at 04:05": "who printed that a signal had come?",
        "asked at 05:59": "who says last that it was stopped, and by what?",
        "status": "the launcher was asked to stop, and all had saved",
    }
    return fault_of_parts(answer, wanted, hints)


@exercise("06", 3)
def check_plan(answer):
    """Check ``{"save_period": epochs, "extra_percent": predicted}`` against the simulation."""

    def cost(epochs):
        return 100 * failing_jobs.extra_time(epochs * EPOCH_S, SAVE_S, BETWEEN_S, RESTART_S)

    parts = answer if isinstance(answer, dict) else {}
    period, predicted = parts.get("save_period"), parts.get("extra_percent")
    fault = fault_of_type(period, 1) or fault_of_type(predicted, 1.0)
    if fault:
        return fault
    if not isinstance(period, int) or period < 1:
        return "save_period is a whole number of epochs, 1 or more"
    own, best = cost(period), min(cost(epochs) for epochs in range(1, 40))
    if own > 1.05 * best:
        return f"that period costs {own:.1f} %; another one costs less"
    is_near = abs(predicted - own) <= 0.1 * own
    return "" if is_near else f"the simulation says {own:.2f} %, you {predicted} %"

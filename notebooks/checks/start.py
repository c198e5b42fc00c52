"""The checks of the first notebook."""

import re
import shlex

from background import Job

from checks import exercise, fault_of_parts, fault_of_type
from helpers import run_quietly

# A stranger's job of four workers on two hosts. Each worker kept a file of its own.
STRANGERS_LOG = """\
worker-0.log (host n1)
    09:14:02 Epoch[2] Batch [40] Speed: 412.70 samples/sec accuracy=0.803125
    09:14:09 ended by SIGTERM: status 143
worker-1.log (host n1)
    09:14:09 ended by SIGTERM: status 143
worker-2.log (host n2)
    09:13:58 warning: the disk is nearly full
    09:14:09 ended by SIGTERM: status 143
worker-3.log (host n2)
    09:14:06 cannot write out/trace.json
    09:14:06 OSError: [Errno 28] No space left on device
    09:14:06 ended with status 1
"""


@exercise("00", 1)
def check_three_workers(command, steps):
    """Run a command: three workers, 96 examples a step, 1,000 in all, one epoch."""
    if steps is None:
        return "how many steps has the epoch? Work it out before you start the job"
    fault = fault_of_type(command, "") or fault_of_type(steps, 11)
    if fault:
        return fault
    status, lines = run_quietly(*shlex.split(command))
    wanted = {"workers?": 3, "in all": 96, "steps? an epoch": 11}
    first = next((line for line in lines if " in all, " in line), "")
    for words, number in wanted.items():
        found = re.search(rf"(\d+) {words}\b", first)
        if status or not found:
            return f"status {status}: {(lines or ['it printed nothing'])[-1]}"
        if int(found[1]) != number:
            return f"the log says {found[0]!r}"
    if sum("Test_acc" in line for line in lines) != 3:
        return "it should train one epoch: --num-epochs 1"
    return "" if steps == 11 else f"the log says 11 steps an epoch, you said {steps}"


@exercise("00", 2)
def check_culprit(answer):
    """Check ``{"rank": …, "status": …, "cause": …}`` against the stranger's log."""
    hints = {
        "rank": "who ended first, by the clock?",
        "status": "what did that worker end with, by itself?",
        "cause": "read its line before the last: memory, disk or network?",
    }
    return fault_of_parts(answer, {"rank": 3, "status": 1, "cause": "disk"}, hints)


@exercise("00", 3)
def check_smaller_job(first, second):
    """Stop the first command after an epoch; the second must go on, with one worker."""
    fault = fault_of_type(first, "") or fault_of_type(second, "")
    if fault:
        return fault
    job = Job(*shlex.split(first))
    job.wait_for("Epoch 0:")
    status = job.stop()
    if status != 75:
        return f"the first job ended with {status}, not 75: what makes it save?"
    status, lines = run_quietly(*shlex.split(second))
    for words in "1 worker", "96 in all", "Resumed from":
        if not any(words in line for line in lines):
            return f"the second job ended with {status} and did not say {words!r}"
    return f"the second job ended with {status}" if status else ""

"""The checks of the first notebook."""

import re
import shlex

from background import Job

from checks import say
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


def check_three_workers(command, steps):
    """Run a command: three workers, 96 examples a step, 1,000 in all, one epoch."""
    if not isinstance(steps, int):
        return say(False, "how many steps has the epoch? Work it out before you start the job")
    status, lines = run_quietly(*shlex.split(command))
    wanted = {"worker(s)": 3, "in all": 96, "steps an epoch": 11}
    first = next((line for line in lines if "worker(s)" in line), "")
    for words, number in wanted.items():
        found = re.search(rf"(\d+) {re.escape(words)}", first)
        if status or not found:
            return say(False, f"status {status}: {(lines or ['it printed nothing'])[-1]}")
        if int(found[1]) != number:
            return say(False, f"the log says {found[0]!r}")
    if sum("Test_acc" in line for line in lines) != 3:
        return say(False, "it should train one epoch: --num-epochs 1")
    say(steps == 11, f"the log says 11 steps an epoch, you said {steps}")


def check_culprit(answer):
    """Check ``{"rank": …, "status": …, "cause": …}`` against the stranger's log."""
    hints = {
        "rank": "who ended first, by the clock?",
        "status": "what did that worker end with, by itself?",
        "cause": "read its line before the last: memory, disk or network?",
    }
    wanted = {"rank": 3, "status": 1, "cause": "disk"}
    for name, value in wanted.items():
        if not isinstance(answer, dict) or answer.get(name) != value:
            return say(False, f"{name}: {hints[name]}")
    say(True, "")


def check_smaller_job(first, second):
    """Stop the first command after an epoch; the second must go on, with one worker."""
    job = Job(*shlex.split(first))
    job.wait_for("Epoch 0:")
    status = job.stop()
    if status != 75:
        return say(False, f"the first job ended with {status}, not 75: what makes it save?")
    status, lines = run_quietly(*shlex.split(second))
    for words in "1 worker(s)", "96 in all", "Resumed from":
        if not any(words in line for line in lines):
            return say(False, f"the second job ended with {status} and did not say {words!r}")
    say(status == 0, f"the second job ended with {status}")

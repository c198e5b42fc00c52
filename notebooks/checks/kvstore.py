"""The checks of notebook 03: unequal workers, a stranger's log, a rate for stale gradients."""

import inspect
import json
import re

from checks import exercise, fault_of_type, function
from experiments.stale_toy import largest_rate
from helpers import ROOT, own_folder, run_quietly

# Printed by three workers that push 1, 10 and 100, one of which pushed once more.
STRANGERS_LOG = """\
step 0: rank 0 pulls 111
step 0: rank 1 pulls 111
step 0: rank 2 pulls 111
step 1: rank 1 pulls 111
step 1: rank 0 pulls 111
step 1: rank 2 pulls 111
step 2: rank 0 pulls 21
step 2: rank 1 pulls 21
step 3: rank 0 pulls 111
step 3: rank 1 pulls 111
step 2: rank 2 pulls 111
step 4: rank 0 pulls 111
step 4: rank 1 pulls 111
step 3: rank 2 pulls 111
(nothing more)"""
STALENESS = 4  # of exercise 2


@exercise("03", 1, like=function)
def check_sums(sums_of_all):
    """Run it on three real workers with two gradients, one and none."""
    file = ROOT / own_folder("answer") / "answer.py"
    file.write_text(inspect.getsource(sums_of_all), encoding="utf-8")
    launch = ["python", "tools/launch.py", "-n", 3, "-s", 1, "--launcher", "local"]
    job = [*launch, "python", "notebooks/programs/sum_batches.py", file]
    status, lines = run_quietly(*job)
    waits = re.findall(r"rank (\d) still waits", "\n".join(lines))
    if waits:
        return f"rank {min(waits)} waits for ever: who pushes less than it does?"
    if status:
        errors = [line for line in lines if re.search(r"Error|Warning", line)] or lines[-1:]
        return f"the job failed: {errors[-1]}"
    facts = [json.loads(line.split("] ", 1)[1]) for line in lines if "] {" in line]
    for fact in sorted(facts, key=lambda fact: fact["rank"]):
        if fact["sums"] != [[11] * 3, [2] * 3]:
            wanted = "[[11, 11, 11], [2, 2, 2]]"
            return f"rank {fact['rank']} must return {wanted}, not {fact['sums']}"
    return "" if len(facts) == 3 else "not all ranks came back"


@exercise("03", 2)
def check_rate(rate):
    """Compare with the rate at which the toy begins to diverge, within 5 %."""
    fault = fault_of_type(rate, 0.5)
    if fault:
        return fault
    found = largest_rate(STALENESS)
    ways = "above" if rate > found else "below"
    return "" if abs(rate / found - 1) < 0.05 else f"{rate} is {ways} it by more than 5 %"


@exercise("03", 3)
def check_log(answer):
    """Take the rank that pushed once more, the step, and the rank that waits at the end."""
    try:
        rank, step, waits = answer
    except (TypeError, ValueError):
        return "give three numbers"
    fault = fault_of_type(rank, 1) or fault_of_type(step, 2) or fault_of_type(waits, 2)
    if fault:
        return fault
    if step != 2:
        return "in which step is a sum not 1 + 10 + 100?"
    if rank != 1:
        return "a sum is three pushes: which three make the wrong one?"
    return "" if waits == 2 else "which rank has not had all of its answers?"

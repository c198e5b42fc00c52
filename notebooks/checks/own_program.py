"""The checks of notebook 04's exercises."""

from checks import exercise, fault_of_parts, fault_of_type
from programs.own.jobs import distance, job

LOGS = {
    "A": """\
[worker 0] Epoch 4: 334 examples, accuracy 0.9142, weights 512.118
[worker 1] Epoch 4: 333 examples, accuracy 0.9087, weights 512.118
[worker 2] Epoch 4: 333 examples, accuracy 0.9142, weights 512.118""",
    "B": """\
[worker 0] Epoch 4: 334 examples, accuracy 0.9142, weights 519.870
[worker 1] Epoch 4: 333 examples, accuracy 0.9142, weights 519.870
[worker 2] Epoch 4: 333 examples, accuracy 0.9142, weights 498.402""",
    "C": """\
[worker 0] Epoch 4: 333 examples, accuracy 0.9142, weights 512.118
[worker 1] Epoch 4: 333 examples, accuracy 0.9142, weights 512.118
[worker 2] Epoch 4: 333 examples, accuracy 0.9142, weights 512.118""",
    "D": """\
[launch] --stall-timeout: no output from any process for 300 s
[worker 0]   File "train.py", line 96 in evaluate
[worker 1]   File "train.py", line 96 in evaluate
[worker 2]   File "train.py", line 68 in sum_over_workers""",
}
CAUSES = {
    "A": "BatchNorm's statistics were not averaged",
    "B": "an empty part was skipped",
    "C": "the rest of the division is never seen",
    "D": "one worker has fewer batches",
}
CASES = "200/30", "61/30", "7/3"  # examples and batch size; the last leaves parts empty


def logs():
    """Print four logs of a stranger's trainings on 1,000 examples, and the causes by name."""
    for name, text in LOGS.items():
        print(f"{name}:\n{text}\n")
    print("causes:", *sorted(CAUSES.values()), sep="\n- ")


@exercise("04", 2)
def check_causes(answer):
    """Compare the causes that the reader gives for the logs."""

    def hint(name):
        wrong = [name for name, cause in CAUSES.items() if answer.get(name) != cause]
        return f"look again at {', '.join(wrong)}: what differs between the workers?"

    return fault_of_parts(answer, CAUSES, hint)


@exercise("04", 1)
def check_distributed(program):
    """Run a program on 1, 2 and 3 workers, and compare what they saw and learned."""
    fault = fault_of_type(program, "")
    if fault:
        return fault
    for case in CASES:
        num_examples, batch_size = case.split("/")
        words = "--num-examples", num_examples, "--batch-size", batch_size, "--save"
        for workers in (3, 1, 2) if case == CASES[0] else (3,):
            ran = job(program, *words, f"scratch/sines{workers}", workers=workers, quiet=True)
            fault = _fault(ran, workers, int(num_examples))
            if fault:
                return f"{workers} workers, batches of {batch_size}: {fault}"
        if case != CASES[0]:
            job(program, *words, "scratch/sines1", quiet=True)
        if (
            max(
                distance("sines3", "sines1"),
                distance("sines2", "sines1") if case == CASES[0] else 0,
            )
            > 1e-3
        ):
            return f"{case}: the parameters are not those of one worker"
    return ""


def _fault(ran, workers, num_examples):
    """Say what is wrong with a job, or nothing."""
    if ran.status or not ran.epochs:
        return f"exit status {ran.status}; the last line is {ran.text.splitlines()[-1:]}"
    for epoch in ran.epochs.values():
        if len(epoch) != workers:
            return "not every worker printed its line"
        seen = sum(examples for examples, _, _ in epoch.values())
        if seen != num_examples:
            return f"they saw {seen} examples an epoch, not {num_examples}"
        for place, what in (1, "results of the test"), (2, "sums of weights"):
            if len({numbers[place] for numbers in epoch.values()}) > 1:
                return f"the {what} differ: {[numbers[place] for numbers in epoch.values()]}"
    return ""


@exercise("04", 3)
def check_plan(num_examples, batch_size, shares):
    """Check a test's size, and run it on three workers to compare the predicted numbers."""
    fault = fault_of_type(num_examples, 0) or fault_of_type(batch_size, 0)
    fault = fault or fault_of_type(shares, [])
    if fault:
        return fault
    last = num_examples % batch_size if batch_size > 0 else 0
    if not 0 < num_examples <= 20 or last not in (1, 2) or not batch_size % 3:
        hint = "three workers need a full batch that they cannot cut evenly, and a last batch"
        return f"{hint} that leaves a worker without an example, in 20 examples or less"
    words = "--num-examples", num_examples, "--batch-size", batch_size, "--num-epochs", 1
    (epoch,) = job("step4_right", *words, workers=3, quiet=True).epochs.values()
    seen = [epoch[rank][0] for rank in range(3)]
    fault = f"the workers saw other numbers of examples than {shares}"
    return "" if list(shares) == seen else fault

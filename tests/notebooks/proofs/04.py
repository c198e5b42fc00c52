"""What notebook 04 claims, seen in the numbers that its cells have kept."""


def last(job, place):
    """What each worker printed after the last epoch: accuracies (1) or sums of weights (2)."""
    return [numbers[place] for numbers in job.epochs[max(job.epochs)].values()]


def seen(job):
    return sum(numbers[0] for numbers in job.epochs[0].values())


assert seen(one) == seen(two) == 1202 and distance("step1", "step2") < 1e-4
assert seen(published) == 1080
assert len(set(last(published, 2))) == 1
assert any(len({row[1] for row in epoch.values()}) > 1 for epoch in published.epochs.values())
assert refused.status == 1 and "Possible change in the `batch_size`" in refused.text
assert len({row[2] for epoch in changed_rate.epochs.values() for row in epoch.values()}) == 1
assert uneven.status == 124 and uneven.text.count("in evaluate") == 3
assert uneven.text.count("in sum_over_workers") == 1
for job_with_a_mistake in (overtaken, stale):
    a, b, c = last(job_with_a_mistake, 2)
    assert a == b != c and len(set(last(job_with_a_mistake, 1))) == 1
assert raises.status == 1 and "ended with status 1" in raises.text
for job_of_some in (usual, means, batch_norm, killed, *right.values()):
    assert len(set(last(job_of_some, 1))) == len(set(last(job_of_some, 2))) == 1
assert max(distance(str(count), "alone") for count in right) < 1e-4
assert {seen(job_of_some) for job_of_some in right.values()} == {1202}
assert min(far["usual size"], far["mean of means"]) > 1e-2 > TOLERANCE
assert distance("rate1", "rate2") > 1e-3  # of a rate with which no test can tell
assert [len(epoch) for epoch in right.values() for epoch in epoch.epochs.values()] == [
    *[1] * 3,
    *[2] * 3,
    *[3] * 3,
]
assert "was killed by SIGKILL: restarting" in killed.text and len(killed.epochs) == 3
assert distance("killed", "3") < 1e-4
assert sorted(door) == [1, 2, 3]
for count in door:
    assert set(last(door[count], 2)) == set(last(right[1], 2))
    assert distance(str(count), f"door{count}.params") < 1e-5
assert "was killed by SIGKILL: restarting" in again.text and "Resumed from" in again.text
assert distance("again.params", "3") < 1e-5
by_hand, by_the_door = (inspect.getsource(step).count("\n") for step in (step5, step6))
assert by_the_door < by_hand / 2

"""The checks of the notebook on reading images."""

import re
import threading

import feeding

from checks import exercise, fault_of_parts, function

# Of one host with 16 processors and 4 GPUs, as a stranger kept it.
STRANGERS_LOG = """\
$ … --network resnet50_v1 --test-io 1
Epoch[0] Batch [40]	Speed: 2104.13 samples/sec
$ … --network resnet50_v1 --benchmark 1
Epoch[0] Batch [40]	Speed: 3051.77 samples/sec	accuracy=0.994141
$ … --network resnet50_v1 --model-prefix out/model --log-dir runs
Epoch[0] Batch [40]	Speed: 2066.52 samples/sec	accuracy=0.010742
$ tail -1 runs/metrics.jsonl
{"epoch": 3, "seconds": 655.1, "seconds_training": 620.0, "seconds_reading": 198.4}
"""


@exercise("08", 1)
def check_own_file(status, lines):
    """Check files ``mine_…`` of photos of 96 pixels, and a job of two workers that used them."""
    from sources.records import RecordImages

    for name in ("mine_train", "mine_val"):
        for ending in ("rec", "idx"):
            if not (feeding.FEED / f"{name}.{ending}").exists():
                return f"{feeding.FEED.name}/{name}.{ending} is not there"
    first = RecordImages(str(feeding.FEED / "mine_train.rec"), (3, 64, 64))[[0]][0]
    if min(first.shape[1:]) != 96:
        return f"the shorter side of a photo is {min(first.shape[1:])}, not 96"
    text = "\n".join(lines)
    if status or not re.search("on mine_train.rec, mine_val.rec: 2 worker", text):
        return f"no job of two workers on these files ended with 0 (status {status})"
    return "" if "Epoch 0: Test_acc" in text else "it has not trained an epoch"


@exercise("08", 2)
def check_starved(answer):
    """Check what a reader finds in the stranger's numbers."""
    hints = {
        "slower": "compare --test-io with --benchmark",
        "waits": "the share of the training in which worker 0 waited for a batch",
        "cure": "which of them makes reading itself faster?",
    }
    wanted = {"slower": "reading", "waits": 198.4 / 620, "cure": "b"}
    return fault_of_parts(answer, wanted, hints, close=0.01)


@exercise("08", 3, like=function)
def check_ahead(train_ahead):
    """Check that batch n + 1 is being read while batch n is trained, in order, no further."""
    count, begun, seen, early = 6, [threading.Event() for _ in range(7)], [], []

    def read(number):
        begun[number].set()
        return f"batch {number}"

    def train(batch):
        number = len(seen)
        seen.append(batch)
        if number + 1 < count:
            early.append(begun[number + 1].wait(0.5))

    try:
        train_ahead(read, train, count)
    except Exception as error:
        return f"your code raised {type(error).__name__}: {error}"
    if seen != [f"batch {number}" for number in range(count)]:
        return f"{count} batches must be trained once each, in order"
    if begun[count].is_set():
        return f"there is no batch {count}: do not read it"
    is_early = all(early)
    return "" if is_early else "while a batch was trained, nobody had begun to read the next one"

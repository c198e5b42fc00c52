"""Load batches as one of several workers, and write what came to FOLDER/RANK.json.

load_batches.py FOLDER
"""

import json
import random
import sys
from pathlib import Path

import gluon_dist as gd

import mxnet as mx
import numpy as np

CASES = {  # length, batch_size, num_workers, thread_pool
    "uneven": (23, 6, 0, False),
    "processes": (23, 6, 2, False),
    "threads": (23, 6, 2, True),
    "fewer examples than workers": (5, 2, 2, False),
}
DIFFERING = {"dataset": [10, 11], "batch_size": [4, 5], "shuffle": [True, False], "seed": [0, 1]}


class Drawn(mx.gluon.data.Dataset):
    """What Python and NumPy draw for an example, and its number."""

    def __init__(self, length):
        self.length = length

    def __getitem__(self, index):
        return np.array([random.random(), np.random.rand()]), index

    def __len__(self):
        return self.length


def load(length, batch_size, num_workers=0, thread_pool=False, epochs=2):
    """Give each step of some epochs: what was drawn, the numbers, and the examples of all."""
    loader = gd.DataLoader(
        Drawn(length), batch_size, seed=3, num_workers=num_workers, thread_pool=thread_pool
    )
    batches = [batch for _ in range(epochs) for batch in loader]
    arrays = [[array.asnumpy().tolist() for array in batch] or [[], []] for batch in batches]
    return [[*two, batch.global_size] for two, batch in zip(arrays, batches)]


if __name__ == "__main__":
    loaded = {name: load(*case) for name, case in CASES.items()}
    Path(sys.argv[1], f"{gd.rank()}.json").write_text(json.dumps(loaded))
    for name, values in DIFFERING.items():
        given = dict({"dataset": 10, "batch_size": 4}, **{name: values[gd.rank() == 1]})
        try:
            gd.DataLoader(Drawn(given.pop("dataset")), **given)
        except ValueError as error:
            print(error)
    loader = gd.DataLoader(Drawn(9), 4, num_workers=2)  # still there at the end, as the store is
    store = gd.store()
    next(iter(loader))

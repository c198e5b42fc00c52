"""What notebook 08 says of MXNet's own way to give each worker a part of a file."""

from record_parts import count_epochs, open_part

import record_files

TIME_BUDGET_S = 5


def test_the_last_batch_takes_what_the_next_epoch_then_lacks(tmp_path):
    """Ten images are 4, 4 and 2: the last batches of 3 are filled up with 2, 2 and 1."""
    record_files.write(tmp_path / "ten.rec", range(10), index=True)
    parts = [open_part(tmp_path / "ten", 3, num_workers=3, rank=rank) for rank in range(3)]
    long, _, short = counts = [count_epochs(part, 3) for part in parts]
    assert counts[1] == long == [(2, 4), (1, 3), (1, 3)]
    assert short == [(1, 2), (1, 2), (0, 0)]


def test_a_part_of_whole_batches_is_the_same_in_every_epoch(tmp_path):
    record_files.write(tmp_path / "eight.rec", range(8), index=True)
    for rank in range(2):
        part = open_part(tmp_path / "eight", 2, num_workers=2, rank=rank)
        assert count_epochs(part, 3) == [(2, 4)] * 3

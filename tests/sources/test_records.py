"""RecordIO files: read whole, streamed, and refused when something is wrong with them."""

import os
from pathlib import Path

import numpy as np
import pytest
from mxnet import recordio

from process.failure import UsageError
from record_files import png, write
from sources import records
from sources.augmentation import Augmentation

TIME_BUDGET_S = 15
SHAPE = (3, 32, 32)


class Part:
    """What the readers need to know of a worker."""

    def __init__(self, count, rank):
        self.count, self.rank = count, rank


def test_a_file_that_fits_is_decoded_in_order(tmp_path):
    path = write(tmp_path / "x.rec", [n % 10 for n in range(57)])
    images, labels = records.decode(path, SHAPE, 10)
    assert images.shape == (57, 3, 32, 32) and labels.tolist() == [n % 10 for n in range(57)]
    assert images[:, 0, 0, 0].tolist() == list(range(57))


def test_larger_images_are_cut_to_the_shape(tmp_path):
    path = write(tmp_path / "x.rec", [0, 1], size=40)
    assert records.decode(path, (3, 28, 28), 10)[0].shape == (2, 3, 28, 28)


@pytest.mark.parametrize("index", [False, True])
def test_records_are_counted_with_and_without_an_index(tmp_path, index):
    assert records.count(write(tmp_path / "x.rec", range(9), index)) == 9


@pytest.mark.parametrize("content", [b"", b"0\tx\n", b"0\n8\n", b"\xff\xfe", b"0\t-4\n"])
def test_records_are_counted_without_an_index_that_is_damaged(tmp_path, content):
    path = write(tmp_path / "x.rec", range(9), index=True)
    Path(path).with_suffix(".idx").write_bytes(content)
    assert records.count(path) == 9


@pytest.mark.parametrize("kept", [slice(0, 5), slice(2, 9)])
def test_an_index_of_only_some_records_is_not_believed(tmp_path, kept):
    path = write(tmp_path / "x.rec", range(9), index=True)
    index = Path(path).with_suffix(".idx")
    index.write_text("".join(index.read_text().splitlines(keepends=True)[kept]))
    assert records.count(path) == 9


def test_a_stream_takes_any_seed_and_no_more_examples_than_there_are(tmp_path):
    path = write(tmp_path / "x.rec", range(9))
    options = (path, SHAPE, 9, 4, Part(1, 0), 2**31 - 1, Augmentation())
    assert len(list(records.StreamLoader(*options, num_examples=8).epoch(999))) == 2
    with pytest.raises(UsageError, match=r"--num-examples 10: .*x.rec has 9"):
        records.StreamLoader(*options, num_examples=10)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_streams_have_equal_batches_for_every_worker(tmp_path, workers):
    path = write(tmp_path / "x.rec", range(70))
    loaders = [
        records.StreamLoader(path, SHAPE, 70, 8, Part(workers, rank), 0, Augmentation())
        for rank in range(workers)
    ]
    for epoch in range(2):  # labels are read at once: MXNet writes later batches into old ones
        epochs = [[(b.data, b.label.asnumpy()) for b in each.epoch(epoch)] for each in loaders]
        assert [len(e) for e in epochs] == [70 // (8 * workers)] * workers
        assert {data.shape for e in epochs for data, _ in e} == {(8, 3, 32, 32)}
        labels = np.concatenate([label for e in epochs for _, label in e])
        assert len(labels) == len(set(labels)) == 70 // (8 * workers) * 8 * workers


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_streamed_test_set_is_seen_once_by_all_workers_together(tmp_path, workers):
    path = write(tmp_path / "x.rec", range(70))
    loaders = [
        records.StreamEvalLoader(path, SHAPE, 70, 8, Part(workers, rank), Augmentation())
        for rank in range(workers)
    ]
    labels = [int(x) for loader in loaders for b in loader for x in b.label.asnumpy()]
    assert sorted(labels) == list(range(70))
    data = next(iter(loaders[0])).data.asnumpy()[:, 0, 0, 0] * 255
    np.testing.assert_allclose(data, labels[:8], atol=1e-4)


@pytest.mark.parametrize("batch_size", [4, 6, 7, 30])
def test_a_streamed_test_set_may_be_much_smaller_than_a_batch(tmp_path, batch_size):
    path = write(tmp_path / "x.rec", range(3))
    loader = records.StreamEvalLoader(path, SHAPE, 3, batch_size, Part(1, 0), Augmentation())
    assert [label for b in loader for label in b.label.asnumpy().tolist()] == [0, 1, 2]


def test_a_stream_pads_images_with_zeros_as_the_memory_does(tmp_path):
    record = recordio.pack(recordio.IRHeader(0, 0, 0, 0), png(100))
    path = write(tmp_path / "x.rec", [0] * 64, body=record)
    change = Augmentation(pad=4, random_crop=True)
    loader = records.StreamLoader(path, SHAPE, 10, 32, Part(1, 0), 1, change)
    pixels = np.concatenate([batch.data.asnumpy() for batch in loader.epoch(0)]) * 255
    assert np.unique(pixels.round()).tolist() == [0, 100]


def cut(path):
    Path(path).write_bytes(Path(path).read_bytes()[:-30])


def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path):
    good = write(tmp_path / "good.rec", range(5))
    vector = recordio.pack(recordio.IRHeader(0, [1, 2], 0, 0), png(0))
    cases = {
        "No such file": str(tmp_path / "missing.rec"),
        "holds no records": write(tmp_path / "empty.rec", []),
        "cut short in record 4": write(tmp_path / "cut.rec", range(5)),
        "not a RecordIO file": str(tmp_path / "text.rec"),
        "record 0 is too short to be an image": write(tmp_path / "short.rec", [0], body=b"x"),
        "record 0 holds a vector of labels": write(tmp_path / "vector.rec", [0], body=vector),
        "broken where record 5 should begin": write(tmp_path / "tail.rec", range(5)),
        "record 3 has label 3, outside --num-classes 3": good,
        "Is a directory": str(tmp_path),
    }
    cut(tmp_path / "cut.rec")
    with open(tmp_path / "tail.rec", "ab") as file:
        file.write(bytes(64))
    (tmp_path / "text.rec").write_text("this is a text, not a record at all")
    for wanted, path in cases.items():
        with pytest.raises(UsageError) as caught:
            records.decode(path, SHAPE, 3)
        message = str(caught.value)
        assert wanted in message and path in message and "\n" not in message


def test_a_record_that_is_no_image_is_found(tmp_path):
    file = recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    for number in range(40):
        header = recordio.IRHeader(0, 1, number, 0)
        file.write(recordio.pack(header, b"no image" * 9 if number == 23 else png(0)))
    file.close()
    with pytest.raises(UsageError, match="record 23 is not an image"):
        records.decode(str(tmp_path / "x.rec"), SHAPE, 10)


def test_what_is_wrong_in_a_streamed_file_is_said_when_it_is_met(tmp_path):
    labels = write(tmp_path / "labels.rec", [0, 1, 2, 3])
    body = recordio.pack(recordio.IRHeader(0, 0, 0, 0), b"no image" * 9)
    broken = write(tmp_path / "broken.rec", [0] * 4, body=body)
    for path, wanted in ((labels, "has label 3"), (broken, "a record that is not an image")):
        with pytest.raises(UsageError, match=wanted):
            list(records.StreamEvalLoader(path, SHAPE, 3, 4, Part(1, 0), Augmentation()))
        with pytest.raises(UsageError, match=wanted):
            list(records.StreamLoader(path, SHAPE, 3, 4, Part(1, 0), 0, Augmentation()).epoch(0))


def test_a_cut_file_with_an_index_is_noticed_before_streaming(tmp_path):
    path = write(tmp_path / "x.rec", range(5), index=True)
    cut(path)
    with pytest.raises(UsageError, match="cut short in record 4"):
        records.count(path)


def test_images_that_contain_the_magic_number_are_counted_once(tmp_path):
    file = recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    magic = np.array([0xCED7230A], "<u4").tobytes()
    header = recordio.IRHeader(0, 1, 0, 0)
    for _ in range(3):
        file.write(recordio.pack(header, b"abcd" + magic + b"efgh" + magic))
    file.close()
    assert records.count(str(tmp_path / "x.rec")) == 3


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_streaming_needs_no_more_memory_after_many_epochs(tmp_path):
    path = write(tmp_path / "x.rec", [0] * 48, size=128)
    shape, batch_size = (3, 128, 128), 16  # 3 MB a batch
    options = (path, shape, 1, batch_size, Part(1, 0))
    train = records.StreamLoader(*options, 0, Augmentation())
    test = records.StreamEvalLoader(*options, Augmentation())
    after = []
    for epoch in range(40):
        for batches in train.epoch(epoch), test:
            assert sum(len(batch.data.asnumpy()) for batch in batches) == 48
        after.append(resident_bytes())
    assert after[39] - after[9] < 60e6  # one batch left behind by each opening is 188e6


def test_an_epoch_of_a_stream_depends_on_its_seed_and_number_alone(tmp_path):
    path = write(tmp_path / "x.rec", [n % 10 for n in range(90)])

    def batches(epoch, first_step=0, before=()):
        augmentation = Augmentation(pad=4, random_crop=True, random_mirror=True)
        options = (path, (3, 32, 32), 10, 16, Part(1, 0), 5, augmentation)
        loader = records.StreamLoader(*options)
        for other in before:
            list(loader.epoch(other))
        return [batch.data.asnumpy() for batch in loader.epoch(epoch, first_step)]

    whole = batches(2, before=(0, 1))
    assert len(whole) == 5
    np.testing.assert_array_equal(batches(2), whole)
    np.testing.assert_array_equal(batches(2, 3), whole[3:])
    assert not np.array_equal(batches(3), whole)

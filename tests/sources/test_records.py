"""RecordIO files: read whole, streamed, and refused when something is wrong with them."""

import io
import os
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

from gluon_dist.common.errors import UsageError

import mxnet as mx
import numpy as np
import pytest
from mxnet import recordio
from PIL import Image, ImageFile

from command_line.parse import parse_args
from loader import EvalLoader, create_loaders
from record_files import png, write, write_pictures
from sources import records
from sources.images import ImageSource
from sources.transform import Transform

TIME_BUDGET_S = 18
SHAPE = (3, 32, 32)


def opened(path, shape=SHAPE, num_classes=10, num_examples=None):
    images = records.RecordImages(path, shape, num_examples)
    return images, records.RecordLabels(images, num_classes)


def test_a_file_that_fits_is_decoded_in_order(tmp_path):
    path = write(tmp_path / "x.rec", [n % 10 for n in range(157)])
    images, labels = records.decode(*opened(path))
    assert images.shape == (157, 3, 32, 32) and labels.tolist() == [n % 10 for n in range(157)]
    assert images[:, 0, 0, 0].tolist() == list(range(157))


def assert_decoded_as_by_mxnet(path, number):
    (theirs,) = mx.io.ImageRecordUInt8Iter(path_imgrec=path, data_shape=SHAPE, batch_size=number)
    images, _ = records.decode(*opened(path))
    np.testing.assert_array_equal(images, theirs.data[0].asnumpy())


def test_images_are_decoded_as_mxnet_decodes_them(tmp_path):
    assert_decoded_as_by_mxnet(write_pictures(tmp_path / "x.rec", [(40, 36)] * 9, "JPEG"), 9)


@pytest.mark.parametrize("way", [(), ("--max-data-gb", "0.000001")])
@pytest.mark.parametrize("names", ["{0}/b.rec;{0}/a.rec", "{0}/b.rec;;{0}/other", "{0}/other"])
def test_several_files_are_read_in_the_order_given_a_folder_by_name(tmp_path, names, way):
    (tmp_path / "other").mkdir()
    for name, labels in {"b": [7, 8], "a": [3, 4, 5], "other/2": [4, 5], "other/1": [3]}.items():
        write(tmp_path / f"{name}.rec", labels, index=name == "a")
    _, test = loaders_of(names.format(tmp_path), "--batch-size", "2", *way)
    wanted = [7, 8, 3, 4, 5] if names.startswith("{0}/b") else [3, 4, 5]
    assert images_and_labels(test)[1].tolist() == wanted


def test_a_bad_record_of_several_files_is_named_as_in_its_own(tmp_path):
    paths = write(tmp_path / "a.rec", [0, 1]), write(tmp_path / "b.rec", [0, 300])
    for way in (), STREAMED:
        with pytest.raises(UsageError, match=r"b\.rec: record 1 has label 300, outside"):
            list(loaders_of(";".join(paths), "--batch-size", "2", *way)[0].epoch(0))


def test_larger_images_are_cut_to_the_shape(tmp_path):
    path = write(tmp_path / "x.rec", [0, 1], size=40)
    assert records.decode(*opened(path, (3, 28, 28)))[0].shape == (2, 3, 28, 28)


@pytest.mark.parametrize("index", [False, True])
def test_records_are_counted_with_and_without_an_index(tmp_path, index):
    assert len(records.find_records(write(tmp_path / "x.rec", range(9), index))) == 9


@pytest.mark.parametrize("content", [b"", b"0\tx\n", b"0\n8\n", b"\xff\xfe", b"0\t-4\n"])
def test_records_are_counted_without_an_index_that_is_damaged(tmp_path, content):
    path = write(tmp_path / "x.rec", range(9), index=True)
    Path(path).with_suffix(".idx").write_bytes(content)
    assert len(records.find_records(path)) == 9


@pytest.mark.parametrize("left_out", [slice(5, 9), slice(0, 2), slice(4, 5), slice(1, 8)])
def test_an_index_of_only_some_records_is_not_believed(tmp_path, left_out):
    path = write(tmp_path / "x.rec", range(9), index=True)
    index = Path(path).with_suffix(".idx")
    lines = index.read_text().splitlines(keepends=True)
    del lines[left_out]
    index.write_text("".join(lines))
    assert len(records.find_records(path)) == 9


def test_no_more_examples_are_taken_than_there_are(tmp_path):
    path = write(tmp_path / "x.rec", range(9))
    assert len(opened(path, num_examples=8)[0]) == len(opened(path, num_examples=8)[1]) == 8
    with pytest.raises(UsageError, match=r"--num-examples 10: .*x.rec has 9"):
        opened(path, num_examples=10)


def test_a_record_is_found_by_its_number_in_any_order(tmp_path):
    images, labels = opened(write(tmp_path / "x.rec", range(70), index=True), num_classes=70)
    numbers = np.random.RandomState(0).permutation(70)[:50]
    assert [image[0, 0, 0] for image in images[numbers]] == labels[numbers].tolist() == [*numbers]


def loaders_of(path, *flags, num_workers=1, rank=0):
    """Return what a worker trains on and what it tests on."""
    files = ("--data-train", path, "--data-val", path, "--num-classes", "300")
    args = parse_args([*files, "--batch-size", "16", *flags])
    source = ImageSource(args)
    return create_loaders(args, source, SimpleNamespace(count=num_workers, rank=rank))


def images_and_labels(batches):
    batches = [batch for batch in batches if batch.size]
    return [np.concatenate([getattr(b, n).asnumpy() for b in batches]) for n in ("data", "label")]


STREAMED = ("--max-data-gb", "0.000001")
AUGMENTED = ("--random-crop", "1", "--random-mirror", "1", "--pad-size", "3")


@pytest.mark.parametrize("sizes", [[(40, 36)], [(32, 32)], [(40, 36), (32, 32), (33, 50)]])
@pytest.mark.parametrize("flags", [(), ("--pad-size", "2"), AUGMENTED, ("--random-crop", "1")])
def test_streamed_images_are_those_in_memory(tmp_path, sizes, flags):
    path = write_pictures(tmp_path / "x.rec", sizes * (70 // len(sizes)))
    memory, stream = loaders_of(path, *flags), loaders_of(path, *flags, *STREAMED)
    for epoch in range(2):
        wanted = images_and_labels(memory[0].epoch(epoch))
        np.testing.assert_equal(images_and_labels(stream[0].epoch(epoch)), wanted)
    np.testing.assert_equal(images_and_labels(stream[1]), images_and_labels(memory[1]))


@pytest.mark.parametrize("way", [(), STREAMED])
@pytest.mark.parametrize("pad", [0, 4])
def test_every_crop_of_the_whole_padded_image_is_used(tmp_path, pad, way):
    path = write_pictures(tmp_path / "x.rec", [(9, 8)] * 400)
    shape = ("--image-shape", "3,6,6", "--random-crop", "1", "--pad-size", str(pad))
    seen, _ = images_and_labels(loaders_of(path, *shape, *way)[0].epoch(0))
    (whole,), _ = opened(path, (3, 6, 6), num_examples=1)[0][[0]], None
    whole = np.pad(whole, [(0, 0), (pad, pad), (pad, pad)])
    crops = [whole[:, y : y + 6, x : x + 6] for y in range(2 * pad + 4) for x in range(2 * pad + 3)]
    used = {crop.round().astype(np.uint8).tobytes() for crop in seen * 255}
    assert used <= {crop.tobytes() for crop in crops}
    assert len(used) > 0.8 * len(crops)


@pytest.mark.parametrize("num_workers", [2, 3])
def test_workers_that_stream_see_together_what_one_sees(tmp_path, num_workers):
    path = write(tmp_path / "x.rec", range(70))
    batch_size = ("--batch-size", str(12 // num_workers), *AUGMENTED, *STREAMED)
    shares = [
        list(loaders_of(path, *batch_size, num_workers=num_workers, rank=rank)[0].epoch(1))
        for rank in range(num_workers)
    ]
    whole = loaders_of(path, "--batch-size", "12", *AUGMENTED)[0].epoch(1)
    for batch, *parts in zip(whole, *shares):
        np.testing.assert_equal(images_and_labels(parts), images_and_labels([batch]))


@pytest.mark.parametrize("num_workers", [1, 2, 3, 5])
@pytest.mark.parametrize("number", [3, 70])
def test_a_streamed_test_set_is_seen_once_by_all_workers_together(tmp_path, num_workers, number):
    path = write(tmp_path / "x.rec", range(number))
    loaders = [
        EvalLoader(*opened(path, num_classes=70), 8, num_workers, rank, Transform(shape=SHAPE))
        for rank in range(num_workers)
    ]
    seen = [images_and_labels([batch]) for loader in loaders for batch in loader]
    images, labels = map(np.concatenate, zip(*seen))
    assert labels.tolist() == list(range(number))
    np.testing.assert_allclose(images[:, 0, 0, 0] * 255, labels, atol=1e-4)


def cut(path):
    Path(path).write_bytes(Path(path).read_bytes()[:-30])


def add_zeros(path):
    with open(path, "ab") as file:
        file.write(bytes(64))


VECTOR = recordio.pack(recordio.IRHeader(0, [1, 2], 0, 0), png(0))
# What is said, and what makes the file.
WRONG = {
    "No such file": lambda path: None,
    "a folder without .rec files": lambda path: path.mkdir(),
    "holds no records": lambda path: write(path, []),
    "not a RecordIO file": lambda path: path.write_text("this is a text, not a record at all"),
    "cut short in record 4": lambda path: cut(write(path, range(5))),
    "broken where record 5 should begin": lambda path: add_zeros(write(path, range(5))),
    "record 0 is too short to be an image": lambda path: write(path, [0], body=b"x"),
    "record 0 holds a vector of labels": lambda path: write(path, [0], body=VECTOR),
    "record 0 is 31x31, smaller than --image-shape": lambda path: write(path, [0], size=31),
    "record 3 has label 3, outside --num-classes 3": lambda path: write(path, range(5)),
}


@pytest.mark.parametrize("wanted", WRONG)
def test_what_is_wrong_with_a_file_is_said_in_one_line(tmp_path, wanted):
    path = tmp_path / "x.rec"
    WRONG[wanted](path)
    with pytest.raises(UsageError) as caught:
        records.decode(*opened(str(path), num_classes=3))
    message = str(caught.value)
    assert wanted in message and str(path) in message and "\n" not in message


def encoded(image, kind, **more):
    buffer = io.BytesIO()
    image.save(buffer, kind, **more)
    return buffer.getvalue()


def of_size(content, width, height):
    """A PNG that says that it has this size."""
    header = b"IHDR" + struct.pack(">II", width, height) + content[24:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


def write_one(path, number, content):
    """Write 40 images, one of which has this content."""
    file = recordio.MXRecordIO(str(path), "w")
    for n in range(40):
        file.write(recordio.pack(recordio.IRHeader(0, 1, n, 0), content if n == number else png(0)))
    file.close()
    return str(path)


NOISE = Image.fromarray(np.random.RandomState(0).randint(0, 256, (40, 36, 3)).astype(np.uint8))
BAD = {
    "no image": (b"no image" * 9, "is not an image"),
    "JPEG": (encoded(NOISE, "JPEG")[:-400], "is cut short"),
    "JPEG without its end": (encoded(NOISE, "JPEG")[:-2], "is cut short"),
    "JPEG cut in its header": (encoded(NOISE, "JPEG")[:100], "is cut short"),
    "PNG": (encoded(NOISE, "PNG")[:-400], "is cut short"),
    "too large": (of_size(png(0), 20000, 20000), "has too many pixels"),
    "16 bits": (encoded(Image.fromarray(np.zeros((40, 40), np.uint16)), "PNG"), "more than 8 bits"),
}


@pytest.mark.parametrize("half_pictures_pass", [False, True])  # import gluoncv lets them
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_record_is_found_decoded_or_streamed(tmp_path, monkeypatch, kind, half_pictures_pass):
    content, wanted = BAD[kind]
    path = write_one(tmp_path / "x.rec", 23, content)
    for way in (), STREAMED:
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", half_pictures_pass)
        with pytest.raises(UsageError, match=f"record 23 .*{wanted}"):
            list(loaders_of(path, *way)[0].epoch(0))


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_images_are_turned_by_exif_as_mxnet_turns_them(tmp_path, kind):
    file = recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    for number in range(10):  # 1 to 8 mean something
        exif = Image.Exif()
        exif[0x0112] = number
        body = encoded(NOISE, kind, exif=exif)
        file.write(recordio.pack(recordio.IRHeader(0, 0, number, 0), body))
    file.close()
    assert_decoded_as_by_mxnet(str(tmp_path / "x.rec"), 10)


def test_a_wrong_label_is_found_streamed(tmp_path):
    path = write(tmp_path / "x.rec", [0] * 39 + [300])
    with pytest.raises(UsageError, match="record 39 has label 300, outside --num-classes 300"):
        list(loaders_of(path, *STREAMED)[0].epoch(0))


def test_a_file_that_is_cut_while_it_is_streamed_is_noticed(tmp_path):
    path = write(tmp_path / "x.rec", range(20), size=100)
    train, _ = loaders_of(path, *STREAMED)
    cut(path)
    with pytest.raises(UsageError, match="record 19 cannot be read"):
        list(train.epoch(0))


def test_a_cut_file_with_an_index_is_noticed_before_streaming(tmp_path):
    path = write(tmp_path / "x.rec", range(5), index=True)
    cut(path)
    with pytest.raises(UsageError, match="cut short in record 4"):
        records.find_records(path)


def test_images_that_contain_the_magic_number_are_counted_once(tmp_path):
    file = recordio.MXRecordIO(str(tmp_path / "x.rec"), "w")
    magic = np.array([0xCED7230A], "<u4").tobytes()
    header = recordio.IRHeader(0, 1, 0, 0)
    for _ in range(3):
        file.write(recordio.pack(header, b"abcd" + magic + b"efgh" + magic))
    file.close()
    assert len(records.find_records(str(tmp_path / "x.rec"))) == 3


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.long
@pytest.mark.parametrize("num_workers, num_examples", [(1, 40), (2, 48)])
def test_streaming_needs_no_more_memory_after_many_epochs(tmp_path, num_workers, num_examples):
    path = write(tmp_path / "x.rec", [0] * 48, size=128)
    flags = ("--image-shape", "3,128,128", "--num-examples", str(num_examples), *STREAMED)
    train, test = loaders_of(path, *flags, num_workers=num_workers)  # 3 MB a batch
    after = []
    for epoch in range(30):
        for batches in train.epoch(epoch), test:
            assert all(batch.data.asnumpy().size for batch in batches)
        after.append(resident_bytes())
    assert after[29] - after[9] < 40e6  # one batch left behind in each epoch is 63e6


def test_a_part_of_an_epoch_of_a_stream_is_that_of_the_whole(tmp_path):
    path = write(tmp_path / "x.rec", range(90))
    whole = list(loaders_of(path, *AUGMENTED, *STREAMED)[0].epoch(2))
    train, _ = loaders_of(path, *AUGMENTED, *STREAMED)
    list(train.epoch(0))
    rest = images_and_labels(train.epoch(2, first_step=3))
    np.testing.assert_equal(rest, images_and_labels(whole[3:]))

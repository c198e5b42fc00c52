"""The drawn pictures of the notebooks: as their program draws them, readable, and true."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import draw
import pytest

from colours import LAUNCHER, PARTS, SCHEDULER, SERVER, WORKERS
from launching import ROOT
from sampler import GlobalBatchSampler, epoch_permutation

TIME_BUDGET_S = 10
FOLDER = ROOT / "notebooks" / "images"
WIDE = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.svg"))}
NARROW = {f"{name}-narrow": text for name, text in draw.drawn(draw.NARROW)}
PHONE_WIDTH = 360
SVG = "{http://www.w3.org/2000/svg}"
FOR_LINES = {*WORKERS, SERVER, LAUNCHER}  # after Okabe, Ito
PALETTE = FOR_LINES | {*PARTS.values(), SCHEDULER, "#222222", "#FFFFFF", "none"}

PICTURES = {**WIDE, **NARROW}
each_picture = pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)


def texts(picture):
    """Yield each text's words and, by a rough guess of its width, left, top, right and bottom."""
    for text in ET.fromstring(picture).iter(f"{SVG}text"):
        x, y, size = (float(text.get(key)) for key in ("x", "y", "font-size"))
        width = 0.65 * size * len(text.text)
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        yield text.text, (left, y - 0.8 * size, left + width, y + 0.2 * size)


def sizes(picture):
    """Return the width of a picture, its height, and the size of its smallest letters."""
    root = ET.fromstring(picture)
    _, _, width, height = map(float, root.get("viewBox").split())
    return width, height, min(float(text.get("font-size")) for text in root.iter(f"{SVG}text"))


def test_there_are_fourteen_pictures_and_each_is_narrow_too():
    assert len(WIDE) == 14 and {f"{name}-narrow" for name in WIDE} == {*NARROW}


def test_drawing_again_gives_the_same_bytes(tmp_path):
    subprocess.run([sys.executable, FOLDER / "draw.py", tmp_path], check=True)
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert again == {path.name: path.read_bytes() for path in FOLDER.glob("*.svg")}


@each_picture
def test_a_screen_reader_finds_title_and_description(picture):
    root = ET.fromstring(picture)
    parts = [root.find(f"{SVG}title"), root.find(f"{SVG}desc")]
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [part.get("id") for part in parts]
    assert all(part.text.strip() for part in parts)


@each_picture
def test_all_colours_are_of_the_palette_and_nothing_comes_from_elsewhere(picture):
    elements = list(ET.fromstring(picture).iter())
    used = {e.get(key) for e in elements for key in ("fill", "stroke")} - {None}
    assert used and used <= PALETTE
    assert not re.search(r"style|href|url\(|@import", picture)


@each_picture
def test_text_is_large_enough_and_inside_and_apart_from_other_text(picture):
    width, height, smallest = sizes(picture)
    assert smallest >= 14
    for words, (left, top, right, bottom) in texts(picture):
        assert min(left, top) >= 0 and right <= width and bottom <= height, words
    for (one, a), (other, b) in combinations(texts(picture), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (one, other)


@pytest.mark.parametrize("name", NARROW)
def test_on_a_phone_the_smallest_letters_of_a_narrow_picture_can_be_read(name):
    width, _, smallest = sizes(NARROW[name])
    assert smallest * PHONE_WIDTH / width >= 11
    assert len(NARROW[name].encode()) <= 60_000


def test_the_split_epoch_is_what_the_sampler_gives():
    order = epoch_permutation(21, seed=0, epoch=0)
    words = sorted((box[0], word, box[1]) for word, box in texts(WIDE["split-data"]))
    for rank in range(2):
        (top,) = [y for _, word, y in words if word == f"worker {rank}"]
        _, *squares = [word for _, word, y in words if abs(y - top) < 3]
        assert [int(word) for word in squares] == list(GlobalBatchSampler(order, 8, 2, rank))

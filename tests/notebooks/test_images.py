"""The drawn pictures of the notebooks: as their program draws them, readable, and true."""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from colours import LAUNCHER, PARTS, SCHEDULER, SERVER, WORKERS
from launching import ROOT
from sampler import GlobalBatchSampler, epoch_permutation

TIME_BUDGET_S = 10
FOLDER = ROOT / "notebooks" / "images"
PICTURES = sorted(FOLDER.glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
FOR_LINES = {*WORKERS, SERVER, LAUNCHER}  # after Okabe, Ito
PALETTE = FOR_LINES | {*PARTS.values(), SCHEDULER, "#222222", "#FFFFFF", "none"}

each_picture = pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)


def texts(path):
    """Yield each text's words and, by a rough guess of its width, left, top, right and bottom."""
    for text in ET.parse(path).iter(f"{SVG}text"):
        x, y, size = (float(text.get(key)) for key in ("x", "y", "font-size"))
        width = 0.65 * size * len(text.text)
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        yield text.text, (left, y - 0.8 * size, left + width, y + 0.2 * size)


def test_there_are_thirteen_pictures():
    assert len(PICTURES) == 13


def test_drawing_again_gives_the_same_bytes(tmp_path):
    subprocess.run([sys.executable, FOLDER / "draw.py", tmp_path], check=True)
    again = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert again == {path.name: path.read_bytes() for path in PICTURES}


@each_picture
def test_a_screen_reader_finds_title_and_description(path):
    root = ET.parse(path).getroot()
    parts = [root.find(f"{SVG}title"), root.find(f"{SVG}desc")]
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == [part.get("id") for part in parts]
    assert all(part.text.strip() for part in parts)


@each_picture
def test_all_colours_are_of_the_palette_and_nothing_comes_from_elsewhere(path):
    elements = list(ET.parse(path).iter())
    used = {e.get(key) for e in elements for key in ("fill", "stroke")} - {None}
    assert used and used <= PALETTE
    assert not re.search(r"style|href|url\(|@import", path.read_text(encoding="utf-8"))


@each_picture
def test_text_is_large_enough_and_inside_and_apart_from_other_text(path):
    _, _, width, height = map(float, ET.parse(path).getroot().get("viewBox").split())
    sizes = [float(text.get("font-size")) for text in ET.parse(path).iter(f"{SVG}text")]
    assert sizes and min(sizes) >= 14
    for words, (left, top, right, bottom) in texts(path):
        assert min(left, top) >= 0 and right <= width and bottom <= height, words
    for (one, a), (other, b) in combinations(texts(path), 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (one, other)


def test_the_split_epoch_is_what_the_sampler_gives():
    order = epoch_permutation(21, seed=0, epoch=0)
    words = sorted((box[0], word, box[1]) for word, box in texts(FOLDER / "split-data.svg"))
    for rank in range(2):
        (top,) = [y for _, word, y in words if word == f"worker {rank}"]
        _, *squares = [word for _, word, y in words if abs(y - top) < 3]
        assert [int(word) for word in squares] == list(GlobalBatchSampler(order, 8, 2, rank))

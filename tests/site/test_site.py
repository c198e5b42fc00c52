"""The web pages: each as a browser shows it from the disk, and where its links lead."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from launching import ROOT
from make_site import relink

TIME_BUDGET_S = 330
SITE = ROOT / "build" / "site"
PYTHON = ROOT / ".venv-site" / "bin" / "python"
HERE = Path(__file__).parent
PHONE_WIDTH = 390
long = pytest.mark.long
pytestmark = pytest.mark.timeout(1200)  # the first test makes the site, and opens all pages


def run(*words, timeout_s=1100):
    """Return what a command of the project prints."""
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def pages():
    """Make the site; return its pages, parsed, by their paths."""
    run("make", "site")
    found = {
        path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        for path in SITE.rglob("*.html")
    }
    assert SITE / "index.html" in found
    return found


@pytest.fixture(scope="module")
def browsed(pages):
    """Return what a browser found on each page, and by the search."""
    if not shutil.which("chromium"):
        pytest.skip("no Chromium: apt-get install chromium")
    run(PYTHON, "-m", "pip", "install", "--quiet", "-r", HERE / "requirements.txt")
    return json.loads(run(PYTHON, HERE / "browse.py"))


def seen(browsed, what):
    """Return what was found of one kind, page by page, where there was something."""
    assert len(browsed["pages"]) > 20
    return {name: page[what] for name, page in browsed["pages"].items() if page[what]}


def test_links_to_files_lead_to_their_pages_and_others_stay():
    wanted = set()
    text = "[a](experiments/lab.py) [b](programs/own) [c](https://d.e/f.py) [g](gone.py) [h](#i)"
    changed = relink(text, ROOT / "notebooks" / "README.md", wanted, set())
    expected = text.replace("lab.py", "lab.py.md").replace("own", "own/index.md")
    assert changed == expected
    assert wanted == {ROOT / "notebooks/experiments/lab.py", ROOT / "notebooks/programs/own"}


def test_without_the_environment_of_the_programs_one_line_says_so(tmp_path):
    (tmp_path / "tools").mkdir()
    copy = shutil.copy(ROOT / "tools" / "make_site.py", tmp_path / "tools")
    ran = subprocess.run([sys.executable, copy], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and "make setup" in ran.stderr


@long
def test_every_notebook_and_manual_page_is_there(pages):
    sources = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs").glob("*.md")]
    assert sources
    made = {path.relative_to(SITE).with_suffix("") for path in pages}
    assert {path.relative_to(ROOT).with_suffix("") for path in sources} <= made


@long
def test_every_link_leads_to_a_page_and_to_a_place_on_it(pages):
    broken, links = [], 0
    for path, page in pages.items():
        for tag in page.find_all(href=True):
            address = urlsplit(tag["href"])
            if address.scheme or tag["href"] == "#":
                continue
            links += 1
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            place = unquote(address.fragment)
            if not target.is_file() or (place and not pages[target].find(id=place)):
                broken.append((path.relative_to(SITE).as_posix(), tag["href"]))
    assert links > 1000 and not broken


@long
def test_every_page_says_its_commit_and_its_licence(pages):
    commit = run("git", "log", "-1", "--format=%h").strip()
    for page in pages.values():
        said = page.find(class_="edition")
        assert commit in said.text and "Apache License" in said.text


@long
def test_every_picture_has_an_alternative_text(pages):
    pictures = [image for page in pages.values() for image in page.find_all("img")]
    assert len(pictures) > 40 and not [image for image in pictures if not image.get("alt")]


@long
def test_answers_are_folded(pages):
    page = pages[SITE / "notebooks" / "00-start-here.html"]
    assert len(page.find_all("details", open=False)) == 3


@long
def test_the_help_is_that_of_the_programs(pages):
    page = pages[SITE / "help" / "launch.html"]
    assert "--max-restarts N" in page.text and "exit status" in page.text


@long
@pytest.mark.parametrize("what", ("console", "elsewhere", "broken_images", "axe", "axe_dark"))
def test_a_browser_finds_nothing_wrong(browsed, what):
    assert not seen(browsed, what)


@long
def test_no_page_is_wider_than_a_phone(browsed):
    widths = seen(browsed, "width")
    assert {name: width for name, width in widths.items() if width > PHONE_WIDTH} == {}


@long
def test_pages_are_light(browsed):
    sizes = seen(browsed, "bytes")
    front = sizes["index.html"]
    assert sum(front.values()) - front[".svg"] < 300e3
    assert max(sum(size.values()) for size in sizes.values()) < 2e6


@long
def test_the_search_finds_a_word_from_the_disk(browsed):
    assert "Share state with the key-value store" in browsed["search"]

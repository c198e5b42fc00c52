"""The web pages: each as a browser shows it from the disk, and where its links lead."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup
from chromium import CHROMIUM, Page

import plots
from colours import DARK_PAGE, PARTS
from launching import ROOT
from make_site import commit, join_setups, join_streams, label_files, relink

TIME_BUDGET_S = 330
SITE = ROOT / "build" / "site"
PYTHON = ROOT / ".venv-site" / "bin" / "python"
HERE = Path(__file__).parent
PHONE_WIDTH = 390
ON_DARK = sorted({*PARTS.values()} - {PARTS["waiting"]})  # on white they have a dark edge
PLAYED = "step", "pushpull"
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
    if not CHROMIUM:
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
    page = ROOT / "docs" / "growth.md"
    assert relink("[a step](site/step.md)", page, wanted, set()) == "[a step](../step.md)"


def test_the_file_that_shown_code_is_of_becomes_its_label_in_its_place():
    def shown(name):
        return [
            {"output_type": "stream", "text": [f"{name}.py, from line 3:\n"]},
            {"output_type": "display_data", "data": {"text/html": ["<pre>", name, "</pre>"]}},
        ]

    other = {"output_type": "stream", "text": "from line 3:\n"}
    outputs = [*shown("a"), *shown("b"), other]
    label_files(outputs)
    pages = [output["data"]["text/html"] for output in outputs[:-1]]
    assert outputs[-1] == other
    assert pages == [f'<div class="file">{n}.py, from line 3</div><pre>{n}</pre>' for n in "ab"]


def test_what_was_printed_is_one_output_until_something_is_shown():
    def printed(*lines):
        return {"output_type": "stream", "name": "stdout", "text": [*lines]}

    command = {"output_type": "display_data", "data": {}}
    outputs = [command, printed("a\n"), printed("b\n"), command, printed("a\n")]
    join_streams(outputs)
    texts = ["".join(output["text"]) if "text" in output else "$" for output in outputs]
    assert texts == ["$", "a\nb\n", "$", "a\n"]


def test_folded_cells_that_follow_each_other_are_one_cell():
    cells = [
        {"metadata": {"tags": tags}, "source": [name], "outputs": [name]}
        for name, tags in (("a", []), ("b", ["hide-input"]), ("c", ["hide-input"]), ("d", []))
    ]
    joined = join_setups(cells)
    assert ["".join(cell["source"]) for cell in joined] == ["a", "b\n\nc", "d"]
    assert joined[1]["outputs"] == ["b", "c"]


def test_without_the_environment_of_the_programs_one_line_says_so(tmp_path):
    (tmp_path / "tools").mkdir()
    copy = shutil.copy(ROOT / "tools" / "make_site.py", tmp_path / "tools")
    ran = subprocess.run([sys.executable, copy], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1 and "make setup" in ran.stderr


def test_a_machine_without_git_names_no_commit(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert commit() == ""


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
    answers = page.find_all("details", class_=None)  # a set-up cell has a class
    assert len(answers) == 3 and not any(answer.has_attr("open") for answer in answers)


@long
def test_commands_stand_above_what_they_print(pages):
    page = pages[SITE / "notebooks" / "04-make-your-own-program-distributed.html"]
    cell = next(c for c in page.select("div.cell") if "largest difference of a param" in c.text)
    begin = [output.text.split()[0] for output in cell.select("div.output")]
    assert begin == 2 * [".venv/bin/python", "Epoch"]


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
def test_a_phone_shows_each_column_of_the_results(browser):
    browser.resize(390, 844)
    browser.prefer(color_scheme="light")
    browser.open((SITE / "RESULTS.html").as_uri())
    seen, right = browser.run("""{
        const cells = [...document.querySelectorAll("#results tbody td")];
        [cells.map((td) => td.checkVisibility()),
         Math.max(...cells.map((td) => td.getBoundingClientRect().right))] }""")
    assert len(seen) >= 50 and all(seen) and right <= 390


@long
@pytest.mark.parametrize("name", ("notebooks/03-share-state-with-the-kvstore", "RESULTS"))
def test_no_letters_are_smaller_than_12_pixels(browser, name):
    for width in 390, 1280, 1440:
        browser.resize(width, 900)
        browser.open((SITE / f"{name}.html").as_uri())
        least = browser.run("""{
            document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
            const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            let least = 99;
            while (texts.nextNode()) {
                const own = texts.currentNode.parentElement;
                if (!texts.currentNode.data.trim() || !own.checkVisibility()) continue;
                least = Math.min(least, parseFloat(getComputedStyle(own).fontSize));
            }
            least }""")
        assert 12 <= least < 99, width


@long
def test_plots_lie_on_the_page_itself_in_the_dark(browser):
    browser.prefer(color_scheme="dark")
    browser.open((SITE / "RESULTS.html").as_uri())
    page = browser.run("getComputedStyle(document.body).backgroundColor")
    assert page == "rgb(19, 20, 22)" and DARK_PAGE == "#131416"
    for name in "ratios-dark", "headlines-dark", "growth-dark", "ratios-narrow-dark":
        drawn = (SITE / "_images" / f"{name}.svg").read_text(encoding="utf-8")
        assert f"fill: {DARK_PAGE}" in drawn and "fill: #1B1D21" not in drawn, name


@long
def test_the_search_finds_a_word_from_the_disk(browsed):
    assert "03 Share state with the key-value store" in browsed["search"]


@pytest.fixture(scope="module")
def browser(pages, tmp_path_factory):
    """Return a page of Chromium's, 1280 by 900."""
    if not CHROMIUM:
        pytest.skip("no Chromium: apt-get install chromium")
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


def dark_and_light(browser, path, height):
    """Open a file once; yield the name of each scheme when it is shown so."""
    browser.resize(1280, height)
    browser.prefer(color_scheme="light", reduced_motion="reduce")
    browser.open(path.as_uri())
    browser.run((HERE / "contrast.js").read_text(encoding="utf-8") + "; 0")
    for scheme in "light", "dark":
        browser.prefer(color_scheme=scheme, reduced_motion="reduce")
        yield scheme


@long
def test_words_and_shapes_of_pages_can_be_seen_in_light_and_dark(browser):
    for name in ("index", "notebooks/07-measure-scaling", "RESULTS", "docs/launching", *PLAYED):
        for scheme in dark_and_light(browser, SITE / f"{name}.html", 16_000):
            words, shapes = browser.run("[faintWords(), faintShapes()]")
            assert words["count"] > 70 and not words["found"], (name, scheme)
            assert not shapes["found"], (name, scheme)
            if name in PLAYED:
                continue
            shown = browser.run(
                "[...document.querySelectorAll('article p img')].filter(i => i.checkVisibility())"
                ".map(i => i.src.endsWith('-dark.svg'))"
            )
            assert {*shown} <= {scheme == "dark"} and (shown or name == "docs/launching")
            if "07" in name:
                colours = [*plots.COLOURS, *(ON_DARK if scheme == "dark" else ())]
                drawn = browser.run(f"plotColours({json.dumps(colours)})")
                assert (drawn["paper"] < 0.02) == (scheme == "dark")
                assert drawn["least"] >= 3, scheme


@long
def test_drawn_pictures_and_plots_can_be_seen_in_light_and_dark(browser):
    pictures = sorted((SITE / "_images").glob("*.svg"))
    assert len(pictures) >= 30 and len([p for p in pictures if p.stem.endswith("-dark")]) >= 15
    for path in pictures:
        next(dark_and_light(browser, path, 1300))
        words, shapes, crowded = browser.run("[faintWords(), faintShapes(), crowded()]")
        assert not crowded, path.name
        assert words["count"] and not words["found"], path.name
        assert shapes["count"] and not shapes["found"], path.name


@long
def test_the_first_page_begins_with_a_step_that_moves_and_three_doors(browser):
    browser.resize(1280, 900)
    browser.prefer(reduced_motion="no-preference")
    browser.open((SITE / "index.html").as_uri())
    moving = "document.getAnimations().filter(a => a.playState === 'running').length"
    assert browser.run(moving) > 20
    assert browser.run("document.querySelector('.hold input').click()") is None
    assert browser.run(moving) == 0
    doors = browser.run(
        "[...document.querySelectorAll('.doors a')].map(a => [a.getAttribute('href'),"
        " a.getBoundingClientRect().bottom])"
    )
    assert [Path(address).stem for address, _ in doors] == [
        "#two-commands",
        "00-start-here",
        "launching",
    ]
    assert max(bottom for _, bottom in doors) < 900
    assert browser.run("document.querySelectorAll('.cards a svg').length") == 3
    browser.prefer(reduced_motion="reduce")
    assert browser.run("document.getAnimations().length") == 0


@long
def test_the_first_page_shows_two_commands_and_how_they_end(pages):
    page = pages[SITE / "index.html"]
    section = page.find(id="two-commands")
    commands, printed, _ = (block.text for block in section.find_all("pre"))
    assert commands.splitlines() == ["tar xzf lesson.tar.gz && cd lesson", "make train"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in printed.splitlines():  # of one run; README leaves the end of a long line out
        assert line[:110] in readme
    assert "2 workers ended well" in printed and "never run on a GPU" in page.text
    assert section.find("a", href="lesson.tar.gz") and section.find("details")
    assert page.select_one('.sidebar-tree a[href="docs/launching.html"]')
    assert not page.select_one('.sidebar-tree a[href="README.html"]')


@long
def test_pages_with_and_without_contents_have_the_list_of_pages_in_one_place(browser):
    browser.resize(1280, 900)
    places = set()
    for name in "docs/launching", "help/launch", "search":
        browser.open((SITE / f"{name}.html").as_uri())
        right = "document.querySelector('.sidebar-drawer').getBoundingClientRect().right"
        places.add(browser.run(right))
    assert len(places) == 1


@long
def test_at_1280_pixels_contents_are_seen_and_code_is_not_cut(browser):
    browser.resize(1280, 900)
    cut = total = 0
    for path in sorted((SITE / "notebooks").glob("[01]?-*.html")):
        browser.open(path.as_uri())
        box = browser.run("document.querySelector('.toc-tree').getBoundingClientRect().toJSON()")
        assert box["left"] > 1000 and box["right"] <= 1280, path.name
        codes = "[...document.querySelectorAll('.cell_input pre')]"
        cuts = browser.run(
            f"{codes}.map(c => [c.scrollWidth > c.clientWidth, c.matches('.goes-on')])"
        )
        assert all(is_cut == fades for is_cut, fades in cuts)
        cut, total = cut + sum(is_cut for is_cut, _ in cuts), total + len(cuts)
    assert total > 200 and cut <= total / 50


@long
def test_what_tells_the_outcome_is_seen_when_the_output_is_opened(browser):
    browser.open((SITE / "notebooks" / "07-measure-scaling.html").as_uri())
    look = """[...document.querySelectorAll("details.below-input")].map((fold) => {
        const below = fold.parentNode.nextElementSibling;
        return [below.matches(".outcome"), below.checkVisibility()] })"""
    closed = browser.run(look)
    browser.run("document.querySelectorAll('details.below-input').forEach(d => { d.open = true })")
    opened = browser.run(look)
    assert len(closed) == 6 and all(pair == [True, False] for pair in closed)
    assert all(pair == [True, True] for pair in opened)


@long
def test_logs_are_not_cut_and_a_set_up_has_one_bar(browser):
    for width in 1280, 390:
        browser.resize(width, 900)
        browser.open((SITE / "notebooks" / "00-start-here.html").as_uri())
        logs, bars = browser.run("""[
            [...document.querySelectorAll(".log pre")].map((p) => p.scrollWidth - p.clientWidth),
            document.querySelectorAll("details.above-input").length]""")
        assert len(logs) > 3 and max(logs) <= 0 and bars == 1


@long
def test_on_a_phone_drawn_pictures_are_narrow_and_plots_and_code_scroll_in_frames(browser):
    browser.resize(390, 844)
    browser.prefer(color_scheme="light")
    for name in "notebooks/07-measure-scaling", "docs/launching":
        browser.open((SITE / f"{name}.html").as_uri())
        drawn, frames, covered, copied = browser.run("""{
            const seen = (all) =>
                [...document.querySelectorAll(all)].filter((e) => e.checkVisibility());
            const drawn = seen("picture > img").map((image) =>
                [image.currentSrc.endsWith("-narrow.svg"), image.clientWidth < innerWidth]);
            const frames = seen("article div.output:has(img)").map((p) =>
                [p.tabIndex, p.matches(".goes-on"), getComputedStyle(p, "::after").content]);
            const buttons = [...document.querySelectorAll(".highlight > button.copybtn")];
            const covered = buttons.filter((b) => b.getBoundingClientRect().left <
                b.parentNode.querySelector("pre").getBoundingClientRect().right);
            [drawn, frames, covered.length, buttons.length] }""")
        assert drawn == [[True, True]] and copied > 10 and not covered
        assert frames or name == "docs/launching"
        assert all(tab == 0 and fades and "Swipe" in cue for tab, fades, cue in frames)


@long
def test_links_are_underlined_and_the_search_says_so_in_both_schemes(browser):
    browser.resize(1280, 900)
    for scheme in "light", "dark":
        browser.prefer(color_scheme=scheme)
        browser.open((SITE / "RESULTS.html").as_uri())
        browser.run((HERE / "contrast.js").read_text(encoding="utf-8") + "; 0")
        lines, search = browser.run("""{
            const links = [...document.querySelectorAll("article :is(p, li) > a.reference")];
            const styleOf = (found, part) => getComputedStyle(document.querySelector(found), part);
            const search = styleOf(".sidebar-search", "::placeholder");
            const paper = rgba(styleOf(".sidebar-drawer").backgroundColor);
            [links.map((a) => getComputedStyle(a)).map((s) => [s.textDecorationLine,
                s.textDecorationColor === s.color]), contrast(rgba(search.color), paper)] }""")
        assert lines and all(pair == ["underline", True] for pair in lines)
        assert search >= 4.5


@long
@pytest.mark.parametrize("word", ("straggler", "deadlock"))
def test_the_search_finds_what_others_call_it(browser, word):
    browser.open((SITE / "search.html").as_uri() + f"?q={word}")
    ended = "document.querySelector('#search-results .search-summary').innerText.includes('found')"
    look = f"const look = () => {ended} ? done() : setTimeout(look, 50)"
    browser.run(f"new Promise(done => {{{look}; look(); setTimeout(done, 10000)}})")
    found = "[...document.querySelectorAll('#search-results li > a')].map(a => a.text)"
    assert "Troubleshooting" in browser.run(found)


@long
def test_every_page_says_what_it_is_and_what_comes_before_and_after(pages):
    for path, page in pages.items():
        assert len(page.find_all("meta", {"name": "viewport"})) == 1, path
        assert len(page.find("meta", {"name": "description"})["content"]) > 10, path
        assert page.find("meta", property="og:image")["content"].endswith("_static/card.png")
        assert page.find("link", rel="icon")["href"].endswith("favicon.svg")
    around = pages[SITE / "RESULTS.html"].select(".related-pages .title")
    assert [title.text for title in around] == ["How the cost grows", "Publishing the site"]
    assert not pages[SITE / "LICENSE.html"].select(".related-pages a")
    for path in sorted((SITE / "notebooks").glob("[01]?-*.html")):
        number, page = path.name[:2], pages[path]
        assert page.title.text.startswith(f"{number} ") and page.h1.text.startswith(f"{number} ")
        assert page.select_one(f'.sidebar-tree a:-soup-contains("{page.h1.text[:12]}")')
        links = [link.text for link in page.select(".ways a")]
        assert links == ["Download", "Open locally: make jupyter", "Source"]
        chips = [code.text for code in page.select("article p > code")]
        assert not [text for text in chips if re.fullmatch(r"[\d.,]+", text)]
        cells = json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
        assert len(cells) > 10 and not any(cell.get("outputs") for cell in cells)

"""How code and pictures are shown: readable on light and on dark pages, and as text."""

import base64
import io
import re

import matplotlib.pyplot as plt
import pytest
from PIL import Image
from pygments.lexers import DiffLexer, PythonLexer

import helpers
from shown import DARK_PAGES, INK, INKS, PAPER, coloured, command_box, style_of_code

TIME_BUDGET_S = 5
SOURCE = '''class A:
    def f(self, x):
        """Return "<b>"."""
        return x in (1, "2")  # no
'''


def luminance(colour):
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", [0, 1], ids=["light", "dark"])
def test_every_ink_can_be_read_on_its_paper(page):
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    for name, ink in {"plain": INK, **INKS}.items():
        assert contrast(ink[page], PAPER[page]) >= 4.5, name


def test_dark_inks_are_for_pages_that_say_that_they_are_dark():
    style = style_of_code()
    light, *rules = re.findall(r"([^{}]*)\{color-scheme:(\w+)\}", style)
    assert light == ("<style>.shown", "light") and {scheme for _, scheme in rules} == {"dark"}
    assert rules[0][0] == ",".join(f"body{page} .shown" for page in DARK_PAGES)
    assert re.search(r"prefers-color-scheme:dark\)\{body\[data-theme=\"auto\"\] \.shown\{", style)


def test_only_words_that_have_a_colour_are_marked():
    page = coloured(SOURCE, PythonLexer()).page.split("</style>")[1]
    marked = dict(re.findall(r'<span class="(\w+)">(.*?)</span>', page))
    assert marked == {
        "k": "return",
        "nc": "A",
        "nf": "f",
        "ow": "in",
        "mi": "1",
        "c1": "# no",
        "sd": '"""Return "&lt;b&gt;"."""',
        "s2": '"2"',
    }


def test_what_goes_and_what_comes_differ_by_colour_and_by_a_sign():
    page = coloured("-old\n+new", DiffLexer()).page
    assert '<span class="gd">-old</span>' in page and '<span class="gi">+new</span>' in page


def test_a_table_is_aligned_as_text_and_names_its_rows_for_screen_readers(monkeypatch):
    shown = []
    monkeypatch.setattr(helpers, "display", shown.append)
    helpers.table(["steps", "W = 1", "W = 2"], [["<same>", "256, 192", 9], ["linear", 1, 10]])
    text = "steps      W = 1  W = 2\n<same>  256, 192      9\nlinear         1     10"
    assert repr(shown[0]) == text
    page = shown[0]._repr_html_()
    assert '<th scope="row">&lt;same&gt;</th><td>256, 192</td><td>9</td>' in page


def test_a_picture_has_two_pixels_for_each_of_the_page_and_a_text(monkeypatch):
    shown = []
    monkeypatch.setattr(helpers, "display", shown.append)
    fig, _ = plt.subplots(figsize=(2, 1))
    helpers.figure(fig, "a line that rises")
    page = shown[0]._repr_html_()
    width, data = re.search(r'width="(\d+)" src="data:image/png;base64,([^"]*)"', page).groups()
    assert Image.open(io.BytesIO(base64.b64decode(data))).width // 2 == int(width)
    assert repr(shown[0]) == "[picture: a line that rises]"


def test_shown_code_is_its_source_where_there_are_no_pages():
    assert repr(coloured(SOURCE, PythonLexer())) == SOURCE.rstrip("\n")


def test_a_command_is_its_own_text_and_a_click_selects_it():
    box = command_box("python a.py 'x < 1' --num-epochs 3")
    assert repr(box) == "python a.py 'x < 1' --num-epochs 3"
    assert "user-select:all" in box.page and ">python a.py 'x &lt; 1' <span" in box.page
    assert '<span style="white-space:nowrap">--num-epochs</span> 3</pre>' in box.page


def test_a_command_that_runs_is_shown_as_one_types_it(monkeypatch, capsys):
    shown = []
    monkeypatch.setattr(helpers, "display", shown.append)
    words = "python", "-c", f"import os; print(os.environ['WORD'], '{helpers.ROOT}/build')"
    assert helpers.run(*words, WORD="a") == "a build\n" == capsys.readouterr().out
    typed = repr(shown[0])
    assert typed.startswith("WORD=a ") and str(helpers.ROOT) not in typed
    assert helpers.run_quietly(*words, WORD="a") == (0, [f"$ {typed}", "a build"])


def test_a_long_docstring_is_folded_below_its_first_line():
    doc = '"""First.\n\n    x : int\n    y : int\n    """'
    source = f'def f():\n    {doc}\n    return "a"\n\n\ndef g():\n    """One."""\n'
    page = coloured(source, PythonLexer()).page.split("</style>")[1]
    (folded,) = re.findall(r"<details>(.*?)</details>", page, re.S)
    first, rest = re.sub("<span.*?>|</span>", "", folded).split("</summary>")
    assert first == '<summary>    """First.\n' and rest.endswith('y : int\n    """\n')
    assert re.sub("<.*?>", "", page) == source

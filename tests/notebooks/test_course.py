"""The course as a whole: its words in order, and each thing taught once."""

import re
from collections import Counter

import pytest

from notebooks.test_notebooks import (
    FOLDER,
    NOTEBOOKS,
    committed,
    every_notebook,
    shown_sources,
    tagged,
)

TIME_BUDGET_S = 5
EVERYDAY = {"device", "step", "epoch", "batch size", "worker", "server", "push, pull", "Trainer"}


def markdown(name):
    return [cell.source for cell in committed(name).cells if cell.cell_type == "markdown"]


def glossary():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    table = text.split("## Glossary")[1].split("\n## ")[0]
    return [row.split("|")[1].strip().strip("`") for row in table.splitlines() if "|" in row][2:]


@every_notebook
def test_a_notebook_has_three_exercises_and_at_most_four_guesses(name):
    assert len(tagged(committed(name), "exercise")) == 3
    assert sum(text.count("**Guess") for text in markdown(name)) <= 4


@every_notebook
def test_what_a_guess_is_about_is_folded_until_it_is_opened(name):
    """On the site by a tag, in JupyterLab by two entries that it takes away together."""
    code = []  # since the last guess: whether each code cell's output is folded
    for cell in reversed(committed(name).cells):
        if cell.cell_type == "code":
            is_folded = "hide-output" in cell.metadata.get("tags", [])
            assert is_folded == cell.metadata.get("collapsed", False), cell.source
            assert is_folded == cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
            assert cell.outputs or not is_folded, cell.source
            code.insert(0, is_folded)
        elif "**Guess" in cell.source:
            assert any(code[:3]), cell.source
            code = []
    assert not any(code), "folded without a guess"


@every_notebook
def test_what_sets_a_notebook_up_is_folded(name):
    """Parameters, imports and versions: the code before the first part."""
    cells, setup = committed(name).cells, []
    while not re.search("^## ", cells[0].source, flags=re.M):
        setup += [cells[0]] * (cells[0].cell_type == "code")
        cells = cells[1:]
    assert setup
    for cell in setup:
        assert "hide-input" in cell.metadata.tags and cell.metadata.jupyter.source_hidden
        assert cell.metadata.mystnb.code_prompt_show == "Show the set-up"
    assert not [cell for cell in cells if "hide-input" in cell.metadata.get("tags", [])]


def test_a_function_stands_in_full_once_in_the_course():
    shown = Counter(source for name in NOTEBOOKS for source in shown_sources(committed(name)))
    assert shown and not [source for source, times in shown.items() if times > 1]


@pytest.mark.parametrize("word", sorted(set(glossary()) - EVERYDAY))
def test_a_word_of_the_glossary_is_explained_before_it_is_used(word):
    """The paragraph that uses it first has it in bold; links, code and promises do not count."""
    word = word.split(",")[0]
    for name in NOTEBOOKS:
        for text in markdown(name):
            text = re.sub(r"```.*?```|\[[^\]]*\]\([^)]*\)", "", text, flags=re.S)
            for line in re.sub(r"^(#|- say).*$", "", text, flags=re.M).splitlines():
                if re.search(rf"\b{re.escape(word)}[sd]?\b", line, flags=re.I):
                    assert re.search(rf"\*\*[^*]*{re.escape(word)}", line, flags=re.I), (name, line)
                    return
    pytest.fail(f"{word} is nowhere in the course")

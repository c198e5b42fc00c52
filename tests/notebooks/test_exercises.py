"""What the exercises say: of right answers, wrong ones, wrong types, and none yet."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import checks
import progress
from checks import fault_of_parts, fault_of_type, fingerprint
from checks.reasons import REASONS
from launching import ROOT
from notebooks.test_notebooks import (
    NOTEBOOKS,
    code_cells,
    committed,
    every_notebook,
    tagged,
    verdicts,
)

TIME_BUDGET_S = 20
HINTS = {"rank": "who ended first?", "cause": "read its last line"}
WANTED = {"rank": 3, "cause": "disk"}


@pytest.fixture(autouse=True)
def own_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "build" / "progress.txt"))
    return tmp_path / "build" / "progress.txt"


@every_notebook
def test_a_committed_exercise_is_known_as_it_was_handed_out_and_waits_for_its_reader(name):
    cells = tagged(committed(name), "exercise")
    numbers = [fingerprint(cell.source) for cell in cells]
    assert numbers == checks.HANDED_OUT[name[:2]], f"checks/handed_out.json: {numbers}"
    turn = "○ Your turn: exercise {} of 3. Change the cell, and run it again."
    said = [verdicts(cell) for cell in cells]
    assert said == [[turn.format(number)] for number in (1, 2, 3)]


@every_notebook
def test_a_check_knows_its_notebook_and_its_place_in_it(name):
    for number, cell in enumerate(tagged(committed(name), "exercise"), 1):
        module = re.search(r"from (checks\.\w+) import (check_\w+)", cell.source)
        text = Path(ROOT, "notebooks", f"{module[1].replace('.', '/')}.py").read_text()
        begin = rf'^@exercise\("{name[:2]}", {number}(, like=function)?\)\ndef {module[2]}\('
        assert re.search(begin, text, flags=re.M)


def values_of(cell):
    """The names that a cell gives values, each with what its value is written as."""
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, ast.FunctionDef
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
            yield from ((name, type(node.value)) for name in names)


@every_notebook
def test_a_check_takes_nothing_of_the_lesson_for_an_answer_that_was_emptied(name):
    lesson = set()
    for cell in code_cells(committed(name)):
        if "exercise" in cell.metadata.get("tags", []):
            checked = set(re.findall(r"\w+", cell.source.splitlines()[-1]))
            answer = {given for given in values_of(cell) if given[0] in checked}
            assert answer - lesson, cell.source
        lesson.update(values_of(cell))


def test_every_right_answer_has_its_reason_in_one_sentence():
    assert sorted(REASONS) == [name[:2] for name in NOTEBOOKS]
    for reason in (reason for reasons in REASONS.values() for reason in reasons):
        assert reason.endswith(".") and len(re.findall(r"\. ", reason)) == 0, reason


@pytest.mark.parametrize(
    ("given", "wanted", "fault"),
    [
        (3, 1, ""),
        (3.5, 1.0, ""),
        ("disk", "", ""),
        ("3", 1, '"3" is text: write the number 3'),
        ("0.5", 1.0, '"0.5" is text: write the number 0.5'),
        ("three", 1, '"three" is text: write a whole number'),
        (True, 1, "True is of type bool: write a whole number"),
        (None, 1.0, "None is no answer yet: write a number"),
        (3, "", '3 is no text: write "…", in quotes'),
        (3, [], "3 is of type int: write a list"),
        (len, print, ""),
        ("len", print, '"len" is text: write a function, by its name alone'),
        (len, 1, "len is a function: write a whole number"),
    ],
)
def test_a_wrong_type_is_told_with_what_to_write(given, wanted, fault):
    assert fault_of_type(given, wanted) == fault


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"rank": 3, "cause": "disk"}, ""),
        ({"rank": "3", "cause": ""}, 'rank: "3" is text: write the number 3'),
        ({"rank": 2, "cause": 5}, 'cause: 5 is no text: write "…", in quotes'),
        ({"rank": None, "cause": ""}, "rank: who ended first?"),
        ({"rank": 3}, "cause: read its last line"),
        ([3, "disk"], '[3, \'disk\'] is of type list: write {"rank": …, "cause": …}'),
    ],
)
def test_types_are_told_before_ideas(answer, fault):
    assert fault_of_parts(answer, WANTED, HINTS) == fault


def said(capsys, answer, number=2, notebook="00"):
    """What the check of an exercise displays outside a notebook."""
    check = checks.exercise(notebook, number)(lambda given: "" if given == 3 else "a <hint>")
    check(answer)
    return capsys.readouterr().out


def test_a_right_answer_is_told_why_and_what_comes_next(capsys, own_progress):
    because = REASONS["00"][1]
    assert said(capsys, 3) == f"✓ Correct: exercise 2 of 3. {because} Next: exercise 3.\n"
    assert said(capsys, 3, number=3).endswith(" Next: notebook 01.\n")
    assert said(capsys, 3, number=3, notebook="10").endswith(f"{REASONS['10'][2]}\n")
    assert own_progress.read_text() == "00 2\n00 3\n10 3\n"


def test_a_wrong_answer_is_told_the_hint_and_does_not_count(capsys, own_progress):
    assert said(capsys, 4) == "✗ Not yet: exercise 2 of 3. a <hint>\n"
    assert not own_progress.exists()


def test_a_verdict_in_a_notebook_has_words_beside_its_sign_and_keeps_signs_of_html():
    page = checks.Verdict("Not yet", "exercise 1 of 3", "1 < 2 & more")._repr_html_()
    assert '<span aria-hidden="true">✗ </span><strong>Not yet</strong>: exercise 1 of 3' in page
    assert "1 &lt; 2 &amp; more" in page and "color:" not in page.replace("border", "")


def test_a_cell_as_it_was_handed_out_is_no_wrong_answer(monkeypatch):
    cell = tagged(committed(NOTEBOOKS[0]), "exercise")[1].source
    shell = InteractiveShell()
    monkeypatch.setattr(checks, "get_ipython", lambda: shell)
    for source, is_untouched in (cell, True), (f"# mine\n{cell}\n", True), (f"1\n{cell}", False):
        shell.user_ns["_ih"] = ["", source]
        assert checks.is_untouched("00", 2) == is_untouched


def test_progress_shows_what_is_solved_and_the_next_exercise(own_progress):
    for exercise in ("00", 1), ("00", 2), ("00", 3), ("01", 2), ("01", 2):
        progress.note(*exercise)
    words = [sys.executable, ROOT / "notebooks" / "progress.py"]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    legend, *rows = text.splitlines()
    assert "✓ solved, · open" in legend and len(rows) == len(NOTEBOOKS) + 1
    assert [row.split("  ")[0] for row in rows[:2]] == ["00 Start here", "01 Train on one device"]
    assert [row[-3:] for row in rows[:3]] == ["✓✓✓", "·✓·", "···"]
    assert "4 of 33 exercises solved. Next: exercise 1 of notebooks/01-" in text
    assert own_progress.read_text().count("01 2") == 1


def test_a_progress_file_that_cannot_be_used_fails_nothing(own_progress, capsys):
    own_progress.mkdir(parents=True)
    assert said(capsys, 3).startswith("✓ Correct")
    own_progress.rmdir()
    own_progress.write_bytes(b"\xff\n99 9\n00 1\n")
    assert progress.solved() == {("00", 1)}

"""The exercises as nbgrader has them: handed out without answers, collected, graded."""

import csv
import json
import os
import subprocess

import nbformat
import pytest

from checks import say
from launching import ROOT
from make_assignments import assignment
from notebooks.test_notebooks import FOLDER, QUICKEST, committed, every_notebook, tagged

TIME_BUDGET_S = 150
GRADER = ROOT / ".venv-nbgrader" / "bin"
NAME = next(path.stem for path in FOLDER.glob(f"{QUICKEST}-*.ipynb"))
MARKED = {"schema_version": 3, "grade": True, "solution": True, "locked": False, "task": False}
MARKED["points"] = 1


def graded(notebook, **kind):
    """The cells that nbgrader knows, of one kind."""
    cells = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    assert cells
    return [cell for cell in cells if kind.items() <= cell["metadata"]["nbgrader"].items()]


@every_notebook
def test_every_exercise_carries_metadata_and_one_call_of_its_check(name):
    cells = tagged(committed(name), "exercise")
    assert len(cells) == 3 and cells == graded(committed(name))
    for number, cell in enumerate(cells, 1):
        assert cell.metadata["nbgrader"] == {**MARKED, "grade_id": f"exercise-{number}"}
        assert cell.source.splitlines()[-1].startswith("check_")
        assert cell.source.count("\ncheck_") == 1


@every_notebook
def test_an_exercise_becomes_a_cell_to_answer_in_and_a_locked_check(name):
    made = assignment(json.loads((FOLDER / name).read_text(encoding="utf-8")))
    nbformat.validate(nbformat.from_dict(made))
    answers, checks = graded(made, solution=True, grade=False), graded(made, locked=True, points=1)
    ids = [cell["metadata"]["nbgrader"]["grade_id"] for cell in graded(made)]
    assert ids == [f"exercise-{n}{what}" for n in (1, 2, 3) for what in ("", "-check")]
    assert len(answers) == len(checks) == 3 and "<summary>Answer" not in json.dumps(made)
    for cell in answers:
        assert "check_" not in cell["source"] and cell["source"].count(" SOLUTION\n") == 2
    for cell in checks:
        assert cell["source"].splitlines()[-1].startswith("check_")


def test_a_check_raises_an_error_where_nbgrader_grades(monkeypatch, capsys):
    say(False, "a hint")
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    say(True, "a hint")
    with pytest.raises(AssertionError, match="a hint"):
        say(False, "a hint")
    assert capsys.readouterr().out == "Not yet: a hint\nCorrect.\nNot yet: a hint\n"


def nbgrader(course, *words):
    """Run one of nbgrader's commands, in its activated environment."""
    environ = {**os.environ, "PATH": f"{GRADER}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        ["nbgrader", *words], cwd=course, env=environ, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def hand_in(course, student, answers):
    """Hand in the released notebook with some answers: code by exercise, from 0."""
    notebook = nbformat.read(course / "release" / NAME / f"{NAME}.ipynb", as_version=4)
    for number, cell in enumerate(graded(notebook, solution=True)):
        assert "SOLUTION" not in cell.source
        cell.source += answers.get(number, "")
    place = course / "submitted" / student / NAME
    place.mkdir(parents=True)
    nbformat.write(notebook, place / f"{NAME}.ipynb")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_nbgrader_grades_a_right_a_half_right_and_an_endless_copy(tmp_path):
    course = tmp_path / "course"
    subprocess.run(["make", "-s", "assignments", f"COURSE={course}"], cwd=ROOT, check=True)
    nbgrader(course, "generate_assignment", NAME)
    source = nbformat.read(course / "source" / NAME / f"{NAME}.ipynb", as_version=4)
    right = {n: cell.source for n, cell in enumerate(graded(source, solution=True))}
    hand_in(course, "right", right)
    hand_in(course, "half", {1: right[1]})
    hand_in(course, "endless", {0: "\nwhile True:\n    pass"})
    endless = "--student=endless"
    nbgrader(course, "autograde", NAME, endless, "--ExecutePreprocessor.timeout=20")
    nbgrader(course, "autograde", NAME)  # the others, with the limit of the course
    nbgrader(course, "generate_feedback", NAME, endless)
    nbgrader(course, "export")
    with open(course / "grades.csv", newline="") as table:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(table)}
    assert scores == {"right": 3, "half": 1, "endless": 0}
    page = (course / "feedback" / "endless" / NAME / f"{NAME}.html").read_text()
    assert "No reply from kernel before timeout" in page

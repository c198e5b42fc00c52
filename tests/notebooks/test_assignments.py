"""The exercises as nbgrader has them: handed out without answers, collected, graded."""

import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import nbformat
import psutil
import pytest

import grading_kernel
from checks import exercise
from launching import ROOT
from make_assignments import assignment
from notebooks.test_notebooks import (
    FOLDER,
    QUICKEST,
    committed,
    every_notebook,
    first_error,
    tagged,
)

TIME_BUDGET_S = 300
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
    for cell in checks:  # each stands alone: another may be deleted
        first, last = cell["source"].splitlines()
        assert first.split(" import ") == [first.split(" import ")[0], last.split("(")[0]]
        assert first.startswith("from checks.") and last.startswith("check_")


def test_a_check_raises_an_error_where_nbgrader_grades(monkeypatch, tmp_path):
    monkeypatch.setenv("TUTORIAL_PROGRESS", str(tmp_path / "progress.txt"))
    check = exercise("00", 1)(lambda answer: "" if answer == 3 else "a hint")
    check(2)
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    check(3)
    with pytest.raises(AssertionError, match="a hint"):
        check(2)


def test_a_copy_of_the_project_to_grade_in_holds_no_hand_ins(monkeypatch, tmp_path):
    monkeypatch.setattr(grading_kernel, "ROOT", tmp_path)
    hand_ins = Path("class", "submitted")
    for folder in (*grading_kernel.COPIED, hand_ins):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "notebooks" / "moved.csv").symlink_to(tmp_path / "away")
    grading_kernel.copy_project(tmp_path / "own")
    assert (tmp_path / "own" / "requirements.txt").exists()
    assert not (tmp_path / "own" / hand_ins).exists()


def commands_of(pattern):
    """Commands that the manual's page on teaching prints, with other folders."""
    page = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    text = re.search(f"^    {pattern}$", page, flags=re.M | re.S)[0]
    return text.replace("/srv/class", "class").replace("~/", "home/").replace("/home/", "home/")


@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
def test_who_copies_the_class_folder_again_gets_new_notebooks_and_keeps_solved_ones(tmp_path):
    ours, theirs = tmp_path / "class" / "lesson", tmp_path / "home" / "lesson"
    for folder, names in (ours, "00 01"), (theirs, "00"):
        folder.mkdir(parents=True)
        for name in names.split():
            (folder / f"{name}.ipynb").write_text(folder.parent.name)
    subprocess.run(commands_of(r"rsync[^\n]*"), shell=True, cwd=tmp_path, check=True)
    assert {path.stem: path.read_text() for path in theirs.iterdir()} == {
        "00": "home",
        "01": "class",
    }


@pytest.mark.skipif(not shutil.which("runuser") or os.geteuid() != 0, reason="needs root on Linux")
def test_what_students_hand_in_is_read_with_their_rights_and_has_its_time():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        secret, *files = (
            Path(folder, "home", student, "lesson", "notebooks", f"{NAME}.ipynb")
            for student in ("root", "daemon", "nobody")
        )
        for file in (secret, *files):
            file.parent.mkdir(parents=True)
        secret.touch(mode=0o600)
        files[0].symlink_to(secret)
        files[1].write_text("{}")
        os.utime(files[1], (0, 0))
        words = ["sh", "-c", commands_of(r"name=.*?\n    done")]
        said = subprocess.check_output(words, cwd=folder, text=True)
        copies = Path(folder, "course", "submitted")
        assert said == f"home/daemon: no {NAME}\n" and not (copies / "daemon").exists()
        assert (copies / "nobody" / NAME / f"{NAME}.ipynb").read_text() == "{}"
        time = (copies / "nobody" / NAME / "timestamp.txt").read_text()
        assert time == "1970-01-01 00:00:00 UTC\n"


def nbgrader(course, *words, status=0):
    """Run one of nbgrader's commands, in its activated environment; return what it says."""
    environ = {**os.environ, "PATH": f"{GRADER}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        ["nbgrader", *words], cwd=course, env=environ, capture_output=True, text=True
    )
    assert ran.returncode == status, ran.stderr
    return ran.stderr


def hand_in(course, student, answers, change=None, day=1):
    """Hand in the released notebook with some answers: code by exercise, from 0."""
    notebook = nbformat.read(course / "release" / NAME / f"{NAME}.ipynb", as_version=4)
    for number, cell in enumerate(graded(notebook, solution=True)):
        assert "SOLUTION" not in cell.source
        cell.source += answers.get(number, "")
    if change:
        change(notebook)
    place = course / "submitted" / student / NAME
    place.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, place / f"{NAME}.ipynb")
    (place / "timestamp.txt").write_text(f"2026-01-0{day} 12:00:00 UTC\n")


def commands(process):
    """The words of a process's command, or none if it has ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def lose_checks(notebook):
    for cell in graded(notebook, locked=True):
        notebook.cells.remove(cell)


def lose_metadata(notebook):
    for cell in notebook.cells:
        cell.metadata = {}


def lose_all(notebook):
    notebook.cells = [cell for cell in notebook.cells if "nbgrader" not in cell.metadata]


WARNING = """
import sys
get_ipython().events.register("pre_run_cell", lambda info: print("a warning", file=sys.stderr))
"""
MEMORY = "\nx = []\nwhile True:\n    x.append(bytearray(10**7))"
OUTPUT = "\nwhile True:\n    print('x')"
PROCESSES = """
import subprocess
while True:
    subprocess.Popen(["sleep", "901.5"], start_new_session=True)
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_nbgrader_grades_what_is_right_in_copies_that_lack_or_take_something(tmp_path):
    course = tmp_path / "course"
    subprocess.run(["make", "-s", "assignments", f"COURSE={course}"], cwd=ROOT, check=True)
    nbgrader(course, "generate_assignment", NAME)
    source = nbformat.read(course / "source" / NAME / f"{NAME}.ipynb", as_version=4)
    right = {n: cell.source for n, cell in enumerate(graded(source, solution=True))}
    hand_in(course, "deleted", right, lose_checks)
    hand_in(course, "plain", {**right, 0: right[0] + WARNING}, lose_metadata)
    hand_in(course, "greedy", {0: MEMORY, 1: OUTPUT, 2: right[2]})
    hand_in(course, "endless", {0: "\nwhile True:\n    pass", 1: PROCESSES, 2: right[2]})
    limits = "--RunWithinLimits.memory_gb=2", "--RunWithinLimits.processes=60"
    short = "--student=endless", "--ExecutePreprocessor.timeout=45"
    told = nbgrader(course, "autograde", NAME, *short, *limits)
    told += nbgrader(course, "autograde", NAME, *limits)  # the others, with the time of the course
    nbgrader(course, "generate_feedback", NAME)
    nbgrader(course, "export")
    with open(course / "grades.csv", newline="") as table:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(table)}
    assert scores == {"deleted": 3, "plain": 3, "greedy": 1, "endless": 1}
    ran = nbformat.read(course / "autograded" / "deleted" / NAME / f"{NAME}.ipynb", as_version=4)
    assert not first_error(ran)
    for number in 1, 2, 3:
        put_back = f"exercise-{number}-check was missing and was put back"
        assert f"deleted/{NAME}/{NAME}.ipynb: {put_back}" in told
    assert f"plain/{NAME}/{NAME}.ipynb: exercise-3-check had lost its metadata" in told
    for student, words in {
        "endless": ("No reply from kernel before timeout", "took more than 60 processes"),
        "greedy": ("took more than 2 GB of memory", "puts out more than 1,000,000 characters"),
    }.items():
        page = (course / "feedback" / student / NAME / f"{NAME}.html").read_text()
        assert all(word in page for word in words)
    assert not [p for p in psutil.process_iter() if "901.5" in commands(p)]
    hand_in(course, "greedy", right, day=2)  # better now
    assert nbgrader(course, "autograde", NAME).count("Autograding") == 1
    nbgrader(course, "generate_feedback", NAME)
    page = (course / "feedback" / "greedy" / NAME / f"{NAME}.html").read_text()
    assert "GB of memory" not in page and page.count("Correct</strong>") == 3
    hand_in(course, "empty", right, lose_all)
    told = nbgrader(course, "autograde", NAME, "--student=empty", status=1)
    assert f"empty/{NAME}/{NAME}.ipynb: not graded, for no cell has nbgrader's metadata." in told

"""`make notebooks`, on notebooks of two cells."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

TIME_BUDGET_S = 45
pytestmark = pytest.mark.long
TOOL = Path(__file__).resolve().parents[2] / "tools" / "refresh_notebooks.py"
TAKES = "Takes about 9 minutes on two CPU cores (measured 2020-01-01; the last cell says yours)."


@pytest.fixture
def notebook(tmp_path):
    """Write a notebook with the given code."""

    def write(code):
        cells = [nbformat.v4.new_markdown_cell(TAKES), nbformat.v4.new_code_cell(code)]
        path = tmp_path / "it.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    return write


def refresh(*words):
    command = [sys.executable, TOOL, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=200)


def test_outputs_are_kept_and_the_time_is_brought_up_to_date(notebook, tmp_path):
    path = notebook(
        "import os; print(os.environ['TUTORIAL_DATA'])\nprint('Took 1 minute on 2021-02-03')\n"
        "print('No ssh hosts can be made here (no root): all runs on this machine.')"
    )
    done = refresh("--data", tmp_path, path)
    assert done.returncode == 0, done.stderr
    assert "it.ipynb: 1 min, 1 kB, without ssh hosts" in done.stdout
    text, code = nbformat.read(path, as_version=4).cells
    assert code.outputs[0].text.startswith(str(tmp_path))
    assert text.source == TAKES.replace("9 minutes", "1 minute").replace("2020-01-01", "2021-02-03")


def test_a_notebook_that_fails_stays_as_it_was(notebook):
    path = notebook("1 / 0")
    before = path.read_bytes()
    done = refresh(path)
    assert done.returncode == 1 and "it.ipynb: a cell failed" in done.stderr
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_one_line(notebook):
    done = refresh("--data", "nowhere")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("--data nowhere: no such folder")

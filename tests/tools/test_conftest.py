"""What conftest.py does for all tests, seen on a small test file of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gluon_dist

import pytest

TIME_BUDGET_S = 30
pytestmark = pytest.mark.long
HERE = Path(__file__).resolve().parents[1]


def run_pytest(folder, test, ci):
    """Run pytest on one test with this conftest.py; return its exit status and what it printed."""
    (folder / "test_it.py").write_text(f"import pytest\nTIME_BUDGET_S = 5\n{test}\n")
    for file in HERE / "conftest.py", HERE.parent / "pyproject.toml":
        shutil.copy(file, folder)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "test_it.py"],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(Path(gluon_dist.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.returncode, done.stdout


SKIPPED = "def test_it(): pytest.skip('no card')"
MARKED = "@pytest.mark.skipif(True, reason='no card')\ndef test_it(): pass"
MODULE = "pytest.skip('no card', allow_module_level=True)"


@pytest.mark.parametrize("test", [SKIPPED, MARKED, MODULE])
def test_in_ci_a_skipped_test_fails_and_elsewhere_it_does_not(tmp_path, test):
    status, said = run_pytest(tmp_path, test, ci="true")
    assert status != 0
    assert "skipped in CI without a may_skip marker: Skipped: no card" in said
    assert "1 skipped" in run_pytest(tmp_path, test, ci="")[1]


def test_in_ci_a_test_marked_may_skip_may_be_skipped(tmp_path):
    status, said = run_pytest(tmp_path, f"@pytest.mark.may_skip('rare')\n{SKIPPED}", ci="true")
    assert status == 0
    assert "1 skipped" in said


def test_in_ci_the_seconds_of_each_module_are_shown_beside_its_budget(tmp_path):
    assert "  5.0  test_it.py" in run_pytest(tmp_path, "def test_it(): pass", ci="true")[1]

"""The notebooks: what is committed, and what happens when a reader runs them."""

import html.parser
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import lru_cache
from pathlib import Path

import nbformat
import pytest

from make_assignments import answer_code
from shown import style_of_code

TIME_BUDGET_S = 1100
ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
PROOFS = Path(__file__).parent / "proofs"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))
QUICKEST = "02"
LARGEST = 300_000  # bytes
RUN_LIMIT_S = 1800  # of one notebook: six times what two idle cores need at most
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:work|home|root|tmp|usr|opt|mnt|Users|builds?)/|site-packages"
)

pytestmark = pytest.mark.timeout(RUN_LIMIT_S + 60)
every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)
every_run = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[pytest.mark.xdist_group(name), *[pytest.mark.long] * (name[:2] != QUICKEST)],
        )
        for name in NOTEBOOKS
    ],
)


class Images(html.parser.HTMLParser):
    """The images of an HTML text, as attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.found.append(dict(attrs))


@lru_cache(None)
def committed(name):
    return nbformat.read(FOLDER / name, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    """The Markdown cells, code blocks left out."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return [re.sub(r"^```.*?^```", "", text, flags=re.S | re.M) for text in texts]


def texts_of(cell):
    """What a cell put out, without pictures: what was printed, in one piece, then the rest."""
    yield "".join(output.get("text", "") for output in cell.outputs)
    for output in cell.outputs:
        for kind, content in output.get("data", {}).items():
            if kind.startswith("text/"):
                yield re.sub(r"base64,[\w+/=]*", "", content)


def verdicts(cell):
    """What checks said of an answer, as text."""
    shown = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [text for text in shown if re.match("[○✗✓] ", text)]


def without_tags(page):
    """The text of a page of HTML."""
    return html.unescape(re.sub("<style>.*?</style>|<.*?>", "", page))


def shown_sources(notebook):
    """The source of each function that the notebook displays."""
    for cell in code_cells(notebook):
        pages = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
        if re.search(r"^show\(", cell.source, flags=re.M):
            yield from (without_tags(page) for page in pages if page)


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def with_answers(notebook):
    """The notebook, followed by each exercise as if it had been tried, and by its folded answer."""
    for exercise, answer in zip(tagged(notebook, "exercise"), tagged(notebook, "answer")):
        calls = [line for line in exercise.source.splitlines() if line.startswith("check_")]
        assert calls, exercise.source
        answered = "\n".join([answer_code(answer.source), *calls])
        for tag, source in ("unanswered", f"pass\n{exercise.source}"), ("answered", answered):
            cell = nbformat.v4.new_code_cell(source)
            cell.metadata["tags"] = [tag]
            notebook.cells.append(cell)
    return notebook


def offline():
    """Words that run a command in a network namespace of its own, where that can be had."""
    words = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    can = shutil.which("unshare") and subprocess.run([*words, "true"], stderr=-3).returncode == 0
    return words if can else []


def with_proof(notebook, name):
    """The notebook, followed by the assertions of proofs/, which see all that its cells made."""
    proof = PROOFS / f"{name[:2]}.py"
    if proof.exists():
        cell = nbformat.v4.new_code_cell(proof.read_text(encoding="utf-8"))
        cell.metadata["tags"] = ["proof"]
        notebook.cells.append(cell)
    return notebook


def first_error(notebook):
    """The first cell that failed, after what the cells before it put out; None if all went well."""
    cells = code_cells(notebook)
    for number, cell in enumerate(cells):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors:
            before = [
                text for earlier in cells[max(0, number - 4) : number] for text in texts_of(earlier)
            ]
            return "\n".join([*before, cell.source, *errors[0].traceback])


@lru_cache(None)
def executed(name):
    """The notebook as it is after a run from a clean kernel, without network or data.

    It is started from another folder, as an IDE may do. Before the answers to its exercises, it
    runs the proof of what it claims.
    """
    with tempfile.TemporaryDirectory() as folder:
        return run_in(Path(folder), name)


def run_in(folder, name):
    notebook = with_answers(with_proof(nbformat.read(FOLDER / name, as_version=4), name))
    for cell in code_cells(notebook):
        cell.update(outputs=[], execution_count=None)
    nbformat.write(notebook, folder / name)
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("DMLC_", "TUTORIAL_"))}
    environ.update(MXNET_HOME=str(folder / "no-data"))
    environ["TUTORIAL_PROGRESS"] = str(folder / "progress.txt")  # that of the reader stays
    jupyter = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "notebook", "--execute"]
    words = [*offline(), *jupyter, "--allow-errors", "--inplace", str(folder / name)]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=RUN_LIMIT_S)
    assert done.returncode == 0, done.stderr[-5000:]
    ran = nbformat.read(folder / name, as_version=4)
    error = first_error(ran)
    assert error is None, error
    return ran


PROBE = """\
import os, helpers, matplotlib, numpy
from matplotlib import pyplot
helpers.run_quietly("python", "-c", "import numpy")[0]
print(pyplot.get_backend(), matplotlib.rcParams["text.usetex"], "leaked" in globals(), os.getcwd())
"""


@pytest.mark.long
def test_what_somebody_set_for_others_does_not_reach_a_kernel(tmp_path):
    """As for a student whose .venv is root's: what is in the home folder would come first."""
    files = {
        ".local/share/jupyter/kernels/python3/kernel.json": '{"argv": ["/no/such/python"]}',
        ".ipython/profile_default/startup/own.py": "leaked = True",
        ".config/matplotlib/matplotlibrc": "text.usetex: true",
        "start.py": "leaked = True",
        "path/numpy.py": "raise ImportError",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PROBE)])
    nbformat.write(notebook, tmp_path / "it.ipynb")
    home = {"HOME": tmp_path, "PYTHONSTARTUP": tmp_path / "start.py", "MPLBACKEND": "TkAgg"}
    home.update(JUPYTER_PREFER_ENV_PATH=0, XDG_CONFIG_HOME=tmp_path / ".config")
    environ = {**os.environ, **{key: str(value) for key, value in home.items()}}
    environ.pop("JUPYTER_PATH", None)
    command = (
        f"PYTHONPATH={tmp_path}/path {sys.executable} -m jupyter nbconvert --execute --inplace"
    )
    recipe = f"probe: ; @{command} --to notebook {tmp_path}/it.ipynb"
    subprocess.run(["make", "-s", "--eval", recipe, "probe"], cwd=ROOT, env=environ, check=True)
    (cell,) = nbformat.read(tmp_path / "it.ipynb", as_version=4).cells
    inline = "module://matplotlib_inline.backend_inline"
    assert cell.outputs[0].text == f"{inline} False False {tmp_path}\n"


def test_two_kernels_have_folders_of_their_own(tmp_path):
    take = f"import helpers; print(helpers.own_folder({tmp_path.name!r}), flush=True); input()"
    words = [sys.executable, "-c", take]
    options = {"cwd": FOLDER, "stdin": -1, "stdout": -1, "text": True}
    with subprocess.Popen(words, **options) as one, subprocess.Popen(words, **options) as other:
        names = [process.stdout.readline().strip() for process in (one, other)]
        (ROOT / names[1] / "old").touch()
        other.communicate("\n")
        again = subprocess.run(words, cwd=FOLDER, input="\n", stdout=-1, text=True)
        one.communicate("\n")
    first = f"build/{tmp_path.name}"
    assert sorted(names) == [first, f"{first}-2"] and again.stdout.strip() == names[1]
    assert not list((ROOT / names[1]).iterdir())
    for name in names:
        (ROOT / name).rmdir()
        (ROOT / f"{name}.lock").unlink()


def test_on_a_disk_without_locks_a_kernel_has_a_temporary_folder(tmp_path):
    lines = ["import fcntl, helpers", "def refuse(*_): raise OSError(38, 'no locks')"]
    lines += ["fcntl.flock = refuse", f"folder = helpers.own_folder({tmp_path.name!r})"]
    lines += ["assert folder.is_absolute() and folder.is_dir()"]
    try:
        subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=FOLDER, check=True)
    finally:
        (ROOT / "build" / f"{tmp_path.name}.lock").unlink()


def test_the_import_of_an_experiment_makes_no_folder():
    names = sorted(path.stem for path in (FOLDER / "experiments").glob("*.py"))
    assert "feeding" in names
    lines = ["import helpers", f"import {', '.join(names)}", "assert not helpers.OWN"]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=FOLDER, check=True)


def test_the_notebooks_are_numbered_in_reading_order():
    numbers = [int(name[:2]) for name in NOTEBOOKS]
    assert len(numbers) > 8 and numbers == sorted(set(numbers))


@every_run
def test_a_notebook_runs_from_a_clean_kernel_without_a_network(name):
    cells = code_cells(executed(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


@every_run
def test_a_run_changes_no_metadata(name):
    before, after = committed(name), executed(name)
    assert after.metadata == before.metadata
    for old, new in zip(before.cells, after.cells):
        new.metadata.pop("execution", None)  # nbconvert's times
        assert new.metadata == old.metadata, old.source


@every_run
def test_answers_pass_their_checks_and_unfinished_exercises_do_not(name):
    notebook = executed(name)
    begins = {"exercise": "○ Your turn", "unanswered": "✗ Not yet", "answered": "✓ Correct"}
    for tag, words in begins.items():
        cells = tagged(notebook, tag)
        assert len(cells) == 3
        for number, cell in enumerate(cells, 1):
            (verdict,) = verdicts(cell)
            assert verdict.startswith(f"{words}: exercise {number} of 3. "), cell


@every_run
def test_a_committed_notebook_shows_the_code_of_today(name):
    """The functions that it displays are those of the project: else `make notebooks`."""
    pairs = list(zip(code_cells(committed(name)), code_cells(executed(name))))
    shows = [pair for pair in pairs if re.search(r"^show\(", pair[0].source, flags=re.M)]
    nothing_else = r"((show\(.*\)|import .*|from .*|)\n?)+"
    shown = [pair for pair in shows if re.fullmatch(nothing_else, pair[0].source)]
    for old, new in shown:  # another version of Pygments has other colours
        then, now = (list(map(without_tags, texts_of(cell))) for cell in (old, new))
        assert then == now, f"run `make notebooks`: {old.source}"


@every_notebook
def test_a_committed_notebook_was_run_from_top_to_bottom(name):
    cells = code_cells(committed(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert (FOLDER / name).stat().st_size < LARGEST


@every_notebook
def test_a_notebook_is_the_same_whichever_python_opens_it(name):
    """JupyterLab writes down the kernel that it finds: git would see a change."""
    kernel = json.loads(
        (Path(sys.prefix) / "share/jupyter/kernels/python3/kernel.json").read_text()
    )
    noted = committed(name).metadata
    assert noted.kernelspec == {
        "name": "python3",
        "display_name": kernel["display_name"],
        "language": "python",
    }
    assert noted.language_info.version == "3"
    assert noted == committed(NOTEBOOKS[0]).metadata


@every_notebook
def test_outputs_are_free_of_warnings_errors_and_machine_paths(name):
    for cell in code_cells(committed(name)):
        for output in cell.outputs:
            assert output.output_type != "error", cell.source
            assert output.get("name") != "stderr", output.text
            host = re.search(rf"\b{re.escape(socket.gethostname())}\b", output.get("text", ""))
            assert not host, output.text
        for text in [cell.source, *texts_of(cell)]:
            assert not MACHINE_PATH.search(text), text
            assert "# noqa" not in text
    for text in prose(committed(name)):
        assert not MACHINE_PATH.search(text), text


@every_notebook
def test_every_picture_has_an_alternative_text(name):
    notebook, count = committed(name), 0
    for cell in code_cells(notebook):
        for output in cell.outputs:
            kinds = output.get("data", {})
            assert not [kind for kind in kinds if kind.startswith("image/")], "use figure()"
            for image in Images(kinds.get("text/html", "")).found:
                assert len(image["alt"]) > 20
                count += 1
    for text in prose(notebook):
        for alt in re.findall(r"!\[(.*?)\]\(", text):
            assert len(alt) > 20
            count += 1
        assert not Images(text).found, "use ![text](file)"
    assert count >= 2


@every_notebook
def test_code_that_is_shown_has_the_style_of_today_and_a_text_for_terminals(name):
    """That its colours can be read on light and on dark pages is tested in test_shown.py."""
    for cell in code_cells(committed(name)):
        for output in cell.outputs:
            data = output.get("data", {})
            assert "object>" not in data.get("text/plain", ""), cell.source
            page = data.get("text/html", "")
            if "<pre" in page:
                box = '(<div><div class="highlight">)?<pre class="shown"'
                assert re.match(box, page.replace(style_of_code(), "", 1)), cell.source
                assert without_tags(page).strip() == data["text/plain"].strip()


@every_notebook
def test_headings_nest(name):
    marks = re.findall(r"^(#+) \S", "\n".join(prose(committed(name))), flags=re.M)
    levels = [len(mark) for mark in marks]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(new <= old + 1 for old, new in zip(levels, levels[1:])), levels


@every_notebook
def test_links_lead_to_files_that_are_there(name):
    links = re.findall(r"\]\(([^)\s]+)\)", "\n".join(prose(committed(name))))
    assert links
    for link in links:
        path = link.split("#")[0]
        assert path.startswith("https://") or (FOLDER / path).exists(), link


@every_notebook
def test_code_comes_in_pieces_between_prose(name):
    assert "ccc" not in "".join(cell.cell_type[0] for cell in committed(name).cells)


def numbers(text):
    """The numbers in a text of two digits or more: one digit stands somewhere in every notebook."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    return set(re.findall(r"(?<![\w.])(?<![A-Za-z]-)\d[\d.]*\d", text))


@every_notebook
def test_a_number_in_prose_stands_in_an_output_or_in_code(name):
    notebook = committed(name)
    known = [text for cell in code_cells(notebook) for text in [cell.source, *texts_of(cell)]]
    not_counted = r"^#.*$|[Nn]otebook \d\d|\]\(.*?\)|<[^>]*>|`[^`]*`"
    found = numbers(re.sub(not_counted, "", "\n".join(prose(notebook)), flags=re.M))
    missing = found - numbers("\n".join(known))
    assert found and not missing


NOTIFICATION = "@jupyterlab/apputils-extension:notification"


@pytest.mark.long
def test_jupyterlab_opens_on_the_notebooks(tmp_path):
    """What `make jupyter` starts says where, lists the notebooks and does not ask about news."""
    words = ["make", "-s", "jupyter", "JUPYTER_ARGS=--no-browser --port=0"]
    with open(tmp_path / "log", "w+b") as log, subprocess.Popen(
        words, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
    ) as lab:
        try:
            listed = json.loads(ask_jupyter("api/contents/notebooks", tmp_path / "log", lab))
            page = ask_jupyter("lab", tmp_path / "log", lab)
            settings = ask_jupyter(f"lab/api/settings/{NOTIFICATION}", tmp_path / "log", lab)
        finally:
            os.killpg(lab.pid, 15)
    assert set(NOTEBOOKS) <= {item["name"] for item in listed["content"]}
    asks = json.loads(settings)["schema"]["properties"]
    assert (asks["fetchNews"]["default"], asks["checkForUpdates"]["default"]) == ("false", False)
    address = r"JupyterLab: http://\S*/lab/tree/notebooks/00-start-here\.ipynb\?token=\w+  \(.*\)"
    assert re.fullmatch(address, (tmp_path / "log").read_text().splitlines()[0])
    assert re.search(r'"news": *{"disabled": *true}', page)


def ask_jupyter(what, log, process):
    """The text of a page of the server, which tells its address before it listens there."""
    end = time.monotonic() + 200
    while True:
        address = re.search(r"(http://127\.0\.0\.1:\d+)/\S*\?token=(\w+)", log.read_text())
        if address:
            url = f"{address[1]}/{what}?token={address[2]}"
            try:
                with urllib.request.urlopen(url, timeout=20) as answer:
                    return answer.read().decode()
            except OSError:
                pass
        assert process.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.1)

"""What README and the manual name: flags that exist, files that exist, links that lead to one."""

import os
import re
import shutil
import subprocess

from gluon_dist import contract

import pytest

import cluster_yarn
from launching import ROOT
from parsers import flags_of, parser_of
from versions import ROWS, debian, rows

TIME_BUDGET_S = 10
MODULES = ROOT / "cifar10_dist"
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [*MANUAL, ROOT / "RESULTS.md", ROOT / "CHANGELOG.md"]
TEXTS += [ROOT / ".github" / name for name in ("CONTRIBUTING.md", "SECURITY.md")]
TEXTS += [
    path for room in ("benchmarks", "notebooks") for path in sorted((ROOT / room).glob("*.md"))
]
PROGRAMS = (
    "cifar10_dist/cifar10_dist.py",
    "tools/launch.py",
    "tools/cluster.py",
    "tools/convert_module.py",
    "tools/make_venv.py",
    "tools/make_site.py",
    "tools/refresh_notebooks.py",
    "benchmarks/bench.py",
    "benchmarks/growth.py",
)
FLAG = re.compile(r"(?<![\w=-])--[a-z][\w-]*")
OTHERS = {  # flags of Slurm's programs, of rsync, of nbgrader, Docker, and MXNet's launchers
    "publishing.md": "delete",
    "teaching.md": "backup exclude force ignore-existing",
    "troubleshooting.md": "shm-size",
    "clusters.md": "exclusive gres nodes partition requeue",
    "yarn.md": "cluster",
    "launching.md": "cpus-per-task host-ip job-name jobname mem nodes partition queue sge-log-dir"
    " slurm-worker-nodes worker-cores worker-memory",
}
PROGRAM = re.compile(r"[\w./-]*?(\w+\.py)\b")
FILES = [
    f"/{path.relative_to(ROOT).as_posix()}"
    for room in ("cifar10_dist", "tools", "benchmarks", "notebooks", "tests", "docs", "examples")
    for path in (ROOT / room).rglob("*.py")
]
LINK = re.compile(r"\]\(([^)\s]+)")


@pytest.fixture(scope="module")
def flags():
    """The flags of each program, by its name."""
    return {path.split("/")[-1]: flags_of(parser_of(path)) for path in PROGRAMS}


def code_of(text):
    """The command lines, continued ones joined, and what stands between backticks."""
    text = text.replace("\\\n", " ")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = "\n".join(blocks).splitlines() + re.findall(r"^    .*", rest, re.MULTILINE)
    return [line.split("  #")[0] for line in lines] + re.findall(r"`([^`]+)`", rest)


def parts_of(code):
    """The programs in a command line, each with its own words: up to the next program."""
    found = list(PROGRAM.finditer(code))
    ends = [match.start() for match in found[1:]] + [len(code)]
    return [(match[1], code[match.end() : end]) for match, end in zip(found, ends)]


@pytest.mark.parametrize("awk", filter(shutil.which, ("awk", "gawk", "mawk", "original-awk")))
def test_make_help_lists_every_target_with_every_awk(awk, tmp_path, monkeypatch):
    (tmp_path / "awk").symlink_to(shutil.which(awk))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True)
    targets = re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(targets) > 10 and not done.stderr
    assert sorted(re.findall(r"^  make ([a-z-]+)", done.stdout, re.MULTILINE)) == sorted(targets)


def test_command_lines_are_cut_into_their_programs():
    code = "python tools/launch.py -n 2 --check python train.py --lr 1"
    assert parts_of(code) == [
        ("launch.py", " -n 2 --check python "),
        ("train.py", " --lr 1"),
    ]
    text = "Say `a.py --x`:\n\n    b.py --y \\\n      --z  # --no\n\n```sh\nc.py\n```\n"
    assert [part for code in code_of(text) for part in parts_of(code)] == [
        ("c.py", ""),
        ("b.py", " --y        --z"),
        ("a.py", " --x"),
    ]


@pytest.mark.parametrize("path", MANUAL, ids=lambda path: path.name)
def test_every_flag_that_is_mentioned_exists(path, flags):
    mentioned = set(FLAG.findall(path.read_text()))
    others = {f"--{name}" for name in OTHERS.get(path.name, "").split()}
    assert mentioned and mentioned <= others.union(*flags.values())


def test_every_command_line_has_flags_of_its_program_only(flags):
    lines = [code for path in MANUAL for code in code_of(path.read_text())]
    parts = [part for code in lines for part in parts_of(code)]
    shown = {(name, flag) for name, words in parts if name in flags for flag in FLAG.findall(words)}
    assert {name for name, _ in shown} == {"cifar10_dist.py", "launch.py", "convert_module.py"}
    assert not [(name, flag) for name, flag in shown if flag not in flags[name]]


def test_every_file_of_python_that_is_named_exists():
    """By its name, by its path, or by its path on another host."""
    found = [match[0] for path in MANUAL for match in PROGRAM.finditer(path.read_text())]
    named = {f"/{name}".replace("/..", "") for name in found} - {"/train.py"}  # a reader's own
    pairs = {name: [f for f in FILES if f.endswith(name) or name.endswith(f)] for name in named}
    assert pairs and not [name for name, files in pairs.items() if not files]


def modules_named(text):
    """The modules of the training program: alone, or in a row of a table that names the folder."""
    for row in text.splitlines():
        room = re.match(r"\| `([\w/]+/)`", row)
        for name in re.findall(r"`([\w/]+\.py)`", re.sub(r"\(.*?\)", "", row)):
            yield room[1] + name if room else name


def test_every_room_of_the_training_program_and_every_file_of_the_lesson_is_named():
    text = (ROOT / "docs" / "files.md").read_text()
    rooms = {f"{path.parent.relative_to(MODULES).as_posix()}/" for path in MODULES.rglob("*.py")}
    lesson = {path.name for path in MODULES.glob("*.py")}
    assert "gluon_dist/exchange/" in rooms and "training.py" in lesson
    assert not [name for name in (rooms - {"./"}) | lesson if f"`{name}`" not in text]


def test_every_module_that_the_manual_names_with_its_folder_exists():
    named = {name for path in MANUAL for name in modules_named(path.read_text())}
    folders = {path.name for path in MODULES.iterdir() if path.is_dir()}
    in_folders = {name for name in named if name.split("/")[0] in folders}
    assert in_folders and not [name for name in in_folders if not (MODULES / name).exists()]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_link_within_the_project_leads_to_a_file(path):
    links = [link for link in LINK.findall(path.read_text()) if "://" not in link]
    assert links
    assert not [link for link in links if not (path.parent / link.partition("#")[0]).exists()]


def test_the_first_page_is_short_and_has_one_place_for_the_address():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 110
    assert len([line for line in lines if "git clone " in line]) == 1


def test_the_version_is_the_same_wherever_it_stands():
    citation = (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert f"\nversion: {contract.VERSION}\n" in citation and newest[1] == contract.VERSION


def test_the_lines_of_the_batch_file_that_the_manual_prints_stand_in_it():
    command = re.search(
        r"^    .*SLURM_NNODES.*\n(    .*\n)+", (ROOT / "docs/clusters.md").read_text(), re.M
    )
    lines = [line.strip() for line in command[0].splitlines()]
    batch = [line.strip() for line in (ROOT / "examples/cifar10.sbatch").read_text().splitlines()]
    assert len(lines) == 3 and set(lines) <= set(batch)


def test_the_manual_says_what_a_simulated_yarn_host_offers():
    offered = cluster_yarn.SITE["yarn-site.xml"]
    memory, cores = (
        int(offered[f"yarn.nodemanager.resource.{what}"]) for what in ("memory-mb", "cpu-vcores")
    )
    text = " ".join((ROOT / "docs/yarn.md").read_text().split())
    assert f"Each host offers {memory // 1024} GB and {cores} cores;" in text


def tried():
    """The rows of the table of versions in the manual."""
    text = (ROOT / "docs" / "tried.md").read_text()
    return {tuple(row.strip("| ").split(" | ")) for row in text.splitlines() if row[:2] == "| "}


def test_the_page_of_what_was_tried_has_the_rows_that_make_versions_prints():
    parts = {(row[0], row[-1]) for row in tried()}
    assert {(name, what) for name, _, what in ROWS} <= parts


@pytest.mark.long
@pytest.mark.skipif((debian() or "").partition(".")[0] != "12", reason="needs Debian 12")
def test_what_was_tried_has_the_versions_that_are_here():
    """Of Debian itself only the first number: its packages keep their versions."""
    here = {row for row in rows() if row[1] != "-" and row[0] not in ("Debian", "Python")}
    assert here and here <= tried()

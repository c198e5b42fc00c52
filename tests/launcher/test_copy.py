"""What `--sync-dst-dir` copies: real rsync; a program stands in for ssh, and the host is here."""

import os
import shutil
import subprocess
import tempfile

import pytest

from gluon_launch.starting.contents import copy_itself, look
from launch import parse_args
from launching import ROOT, launch

TIME_BUDGET_S = 20
CHECKPOINTS = ROOT / "tests" / "checkpoint" / "of_an_earlier_version"
MPIRUN = (
    '[ "$1" = --version ] && exec echo Open MPI\nwhile [ "$1" != none ]; do shift; done; shift; '
)
THERE = 'case " $* " in *" -G "*) exit 0;; esac; while [ "$1" != d1 ]; do shift; done; shift; '
pytestmark = pytest.mark.skipif(not shutil.which("rsync"), reason="rsync is not installed")


def options(*words):
    return parse_args(["-n", "1", "-H", "d1,", "--sync-dst-dir", "job", *words, "x"])


def fill(folder, *names, size=1):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(size))


def copy(tmp_path, *words, command="true", ssh='exec sh -c "$*"', before=()):
    """Launch a job that copies tmp_path/here to tmp_path/there; the Job, and what is there."""
    (tmp_path / "ssh").write_text(f"#!/bin/sh\n{THERE}{ssh}\n")
    (tmp_path / "ssh").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    sync = ("-H", "d1,", "--sync-dst-dir", tmp_path / "there", "--no-check", *words)
    words = ("-n", 1, *sync, *command.split())
    job = launch(tmp_path, *words, env=env, cwd=tmp_path / "here", before=before)
    there = [path for path in (tmp_path / "there").rglob("*") if path.is_file()]
    return job, sorted(str(path.relative_to(tmp_path / "there")) for path in there)


def test_folders_and_networks_of_the_users_own_are_copied(tmp_path):
    names = ["checkpoints/a.json", "data/__init__.py", "model-0001.json", "model-0001.params"]
    names += ["net-0001.params", "net-symbol.json", "x.rec", "x.state", "x.states"]
    fill(tmp_path / "here", *names, ".git/x", ".venv/x", "sub/__pycache__/x")
    job, there = copy(tmp_path)
    assert job.status == 0 and there == names, job.text()
    assert "leaves out" not in job.text()


def test_a_copy_in_the_folder_has_no_copy_of_itself(tmp_path):
    """The host may share our disk, and each job would add one."""
    here, target = tmp_path / "here", tmp_path / "here" / "out*[1]" / "job"
    fill(here, "a", "out*[1]/b")
    for _ in range(2):
        job, _ = copy(tmp_path, "--sync-dst-dir", target)
        assert job.status == 0, job.text()
    found = [str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()]
    assert sorted(found) == ["a", "out*[1]/b"]


@pytest.mark.parametrize(
    "target, pattern", [("/a", []), ("/a/b", []), ("/a/c", []), ("/a/b/c", ["/c/"]), ("c", ["/c/"])]
)
def test_only_a_copy_in_the_folder_itself_is_left_out(monkeypatch, target, pattern):
    monkeypatch.setenv("HOME", "/a/b")  # where a relative one is
    assert copy_itself("/a/b", target) == pattern


def test_a_connection_that_something_keeps_open_is_not_waited_for(tmp_path):
    """As a process that a .bashrc there has left behind does with ssh's."""
    fill(tmp_path / "here", "a")
    job, there = copy(tmp_path, ssh='sh -c "$*"; sleep 300')
    assert (job.status, there) == (0, ["a"]), job.text()


def test_a_relative_folder_is_in_the_home_with_mpirun_too(tmp_path):
    """Which itself goes to the folder that it was started in."""
    fill(tmp_path / "here", "a")
    for name, act in (("ssh", THERE + 'cd; exec sh -c "$*"'), ("mpirun", MPIRUN + 'cat | "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{act}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path / "there")}
    (tmp_path / "there").mkdir()
    words = ("--launcher", "mpi", "-H", "d1,", "--sync-dst-dir", "job", "--no-check")
    job = launch(tmp_path, "-n", 1, *words, "pwd", env=env, cwd=tmp_path / "here")
    assert f"[worker 0 d1] {tmp_path}/there/job\n" in job.stdout, job.text()


def test_a_full_disk_here_is_told_in_one_line(tmp_path):
    fill(tmp_path / "here", "a")
    full = ["sh", "-c", '(ulimit -f 0; exec "$@" 2>&1) | cat', "sh"]  # no file takes a byte
    text = copy(tmp_path, before=full)[0].text()
    assert text.startswith("[launch] rsync: No usable temporary directory found in [")
    assert text.count("\n") == 1


def test_a_large_file_is_left_out_and_its_absence_explained(tmp_path):
    fill(tmp_path / "here", "data/b [1].bin", size=30_001)
    fill(tmp_path / "here", "data/a.bin", size=30_000)
    words = ("--sync-max-size", "30kB", "--job-dir", "../log")
    job, there = copy(tmp_path, *words, command="cat data/b_[1].bin")
    assert there == ["data/a.bin"]
    line = "1 file above 30 kB: data/b [1].bin (30 kB; see --sync-max-size)"
    assert f"[launch] --sync-dst-dir leaves out {line}\n" in job.stderr
    assert f"hint: --sync-dst-dir leaves out {line}" in job.last_words()
    assert line in (tmp_path / "log" / "job.json").read_text()
    assert len(copy(tmp_path, "--sync-max-size=none")[1]) == 2


def test_a_checkpoint_of_this_program_is_left_out_whole(tmp_path):
    for name in ("plain", "dropout"):
        shutil.copytree(CHECKPOINTS / name, tmp_path / "here" / "out*[1]" / name)
    job, there = copy(tmp_path)
    assert there == ["out*[1]/plain/end.params"]
    assert "leaves out 2 checkpoints in out*[1]/dropout/, out*[1]/plain/ (" in job.last_words()
    assert len(copy(tmp_path, "--sync-exclude", "none")[1]) == 9


def test_a_dry_run_copies_the_same(tmp_path):
    fill(tmp_path / "here", "data/x", "large", size=2000)
    shutil.copytree(CHECKPOINTS / "plain", tmp_path / "here" / "out")
    words = ("-H", "d1,", "--sync-dst-dir", tmp_path / "there", "--sync-max-size=1999", "--dry-run")
    job = launch(tmp_path, "-n", 1, *words, "true", cwd=tmp_path / "here")
    assert "--max-size=1999 --exclude=/out/model-0001-00002.json --exclude=/out/" in job.stdout
    assert "# --sync-dst-dir leaves out 3 files above 2 kB: out/end.params, " in job.stdout


def test_files_have_their_sizes_whatever_their_names(tmp_path):
    names = {"a": 1, "b c": 1_234_567, "é\n": 3, "\\#012": 4, "d/\udcff": 5}
    for name, size in names.items():
        fill(tmp_path, name, size=size)
    fill(tmp_path, "e.txt", "f/e.txt")
    found = look(str(tmp_path), options("--sync-exclude", "/e.txt", "--sync-exclude=f/"))
    assert found.sizes == names and found.left_out() == ""
    large = look(str(tmp_path), options("--sync-max-size", "2", "--sync-exclude", "b c"))
    assert "3 files above 2 B: d/?, \\#012, é? (12 B;" in large.left_out()


@pytest.mark.long
def test_looking_at_100000_files_takes_at_most_2_s(tmp_path):
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else tmp_path  # a busy disk takes minutes
    make = "for d in $(seq 100); do mkdir $d; (cd $d; seq -f %04g.json 1000 | xargs touch); done"
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        subprocess.run(["sh", "-c", make], cwd=folder, check=True, timeout=60)
        began = sum(os.times()[:4])  # of processors, ours and those of rsync: others are busy, too
        assert len(look(folder, options()).sizes) == 100_000
        assert sum(os.times()[:4]) - began < 2

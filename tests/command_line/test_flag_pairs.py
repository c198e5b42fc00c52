"""Pairs and triples of flags through the whole program: each trains, or is refused in one line.

60 cases by default, FLAG_CASES=600 for more.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import chain

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import record_files
from command_line.flags import FLAGS, OPTIMIZERS
from launching import PROGRAMS, ROOT

CASES = int(os.environ.get("FLAG_CASES", "60"))
TIME_BUDGET_S = CASES
pytestmark = pytest.mark.long
BASE = ("--num-examples", "90", "--batch-size", "40", "--num-epochs", "2")
EDGES = ("0", "1", "2", "-1", "nan", "-inf", "0.5", "1e308", "1e-300", "2147483647", "9" * 400)
EDGES += ("1,2", "2,1", "{x}", "é", " ", "")
PATHS = ("file", "folder", "new", "file/x", "new/x", "/proc/x")
# What may do something besides being refused; the files are made below.
VALUES = {
    "--kv-store": ("local", "dist_sync", "dist_async"),
    "--cpus": ("2", "3"),
    "--gpus": ("0",),
    "--network": ("fast", "resnet", "cifar_resnet20_v1", "mobilenet0.25", "resnet_v9"),
    "--num-layers": ("8", "9"),
    "--num-classes": ("3", "11"),
    "--data-dir": PATHS,
    "--image-shape": ("3,32,32", "3,8,8", "3,40,24"),
    "--data-train": ("train.rec", *PATHS),
    "--data-val": ("val.rec", *PATHS),
    "--num-examples": ("30", "301"),
    "--max-data-gb": ("1e-9",),
    "--pad-size": ("4", "40"),
    "--batch-size": ("3", "90", "91", "300"),
    "--num-epochs": ("1", "3"),
    "--num-epoch": ("3",),
    "--optimizer": OPTIMIZERS,
    "--lr-step-epochs": ("1", "1,2", "9"),
    "--model-prefix": ("out/m", *PATHS),
    "--log-dir": PATHS,
    "--profile": PATHS,
    "--resume": ("auto", "none", "out/m", "out/m-0001", "out/m-0001.json", "out/m-0007", *PATHS),
}
RECORDS = ["--data-train", "train.rec", "--data-val", "val.rec"]
TOGETHER = (
    RECORDS,
    [*RECORDS, "--max-data-gb", "1e-9"],
    ["--model-prefix", "out/m", "--resume", "auto"],
    ["--model-prefix", "out/m", "--load-epoch", "1"],
    ["--network", "resnet", "--num-layers", "8"],
    ["--lr-schedule", "step", "--lr-step-epochs", "1"],
)
TOO_LONG = {"--num-epochs", "--num-epoch"}  # to train for 2147483647 of
OF_DOWNLOADS = (".lock", ".download-failed")
NOT_A_LINE = ("Traceback", "Exception ignored", "terminate called", "Stack trace", "Check failed")


@st.composite
def words_of_a_flag(draw):
    """Draw a flag with one of its values, an edge value, or no value."""
    flag = draw(st.sampled_from(list(chain(*FLAGS.values()))))
    name = draw(st.sampled_from(flag.names.split()))
    own = (
        flag.takes if isinstance(flag.takes, tuple) else (flag.default or "", *VALUES.get(name, ()))
    )
    edges = [edge for edge in EDGES if name not in TOO_LONG or edge != "2147483647"]
    value = draw(st.one_of(st.sampled_from(own).map(str), st.sampled_from(edges)))
    return draw(st.sampled_from([[name, value]] * 4 + [[f"{name}={value}"], [name]]))


def contents(folder):
    """The contents of all files, without those of a download."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in OF_DOWNLOADS]
    return {path.relative_to(folder): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def try_words(tmp_path_factory):
    """Call the program with words, in a folder with files to name; return status, text, changes."""
    scratch = tmp_path_factory.mktemp("flags")
    case, files = scratch / "case", scratch / "files"
    (files / "folder").mkdir(parents=True)
    (files / "file").write_text("nothing of ours")
    record_files.write(files / "train.rec", [i % 3 for i in range(100)])
    record_files.write(files / "val.rec", [i % 3 for i in range(20)])
    server = subprocess.Popen(
        [sys.executable, PROGRAMS / "try_flags.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/cifar10_dist{os.pathsep}{PROGRAMS}"},
    )

    def run(words, workers=0):
        shutil.rmtree(case, ignore_errors=True)
        shutil.copytree(files, case)
        line = json.dumps({"words": words, "folder": str(case), "workers": workers})
        print(line, file=server.stdin, flush=True)
        answer = json.loads(server.stdout.readline())
        return answer["status"], answer["text"], contents(case) != contents(files)

    assert run([*BASE, "--model-prefix", "out/m"])[0] == 0
    shutil.copytree(case / "out", files / "out")
    yield run
    server.stdin.close()
    assert server.wait(60) == 0


@pytest.mark.timeout(300 + 10 * CASES)
@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(
    flags=st.lists(st.one_of(words_of_a_flag(), st.sampled_from(TOGETHER)), min_size=2, max_size=3),
    workers=st.sampled_from([0, 0, 2]),
)
def test_any_flags_together_train_or_are_refused_in_one_line(try_words, flags, workers):
    status, text, is_changed = try_words([*BASE, *chain(*flags)], workers)
    event(f"status {status}")
    is_told = status == 1 and re.search("error: (out of memory|.* has diverged)", text)
    assert status in (0, 2) or is_told, (status, text)
    assert not [bad for bad in NOT_A_LINE if bad in text], text
    if status == 2:
        assert not is_changed
        assert text.splitlines()[-1].startswith("cifar10_dist.py: error: "), text

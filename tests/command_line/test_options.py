"""The options as workers compare them, as checkpoints hold them, as the user reads them."""

import json

import pytest

from command_line.defaults import FAST
from command_line.flags import ALL
from command_line.options import STEERING, explain_defaults, options_of
from command_line.parse import parse_args
from launching import ROOT

TIME_BUDGET_S = 5
SAVED = ROOT / "tests/checkpoint/of_an_earlier_version/plain/model-0001-00002.json"


def options(words):
    return options_of(parse_args(words.split()))


@pytest.mark.parametrize(
    "one, other, different",
    [
        ("--lr 0.1", "--lr 0.2 --batch-size 7", {"--lr", "--batch-size"}),
        ("--data-dir a --disp-batches 3", "--cpus 1 --gpus", set()),
        ("--log-dir a", "--log-dir b", set()),
        ("--log-dir a", "", {"--log-dir"}),
        ("--data-train a --data-val b", "--data-train c --data-val d", set()),
        ("--model-prefix a/m", "--model-prefix b/m --keep 2", set()),
        ("--model-prefix a/m", "", {"--model-prefix"}),
        ("--resume a-0001", "--resume b-0001", set()),
        ("--model-prefix m --resume auto", "--model-prefix m --resume a", {"--resume"}),
        ("--monitor 1", "", set()),
    ],
)
def test_workers_may_differ_in_options_that_do_not_change_the_training(one, other, different):
    ours, theirs = options(one), options(other)
    assert {name for name in ours.keys() | theirs.keys() if ours[name] != theirs[name]} == different


def test_options_have_the_names_that_an_earlier_version_saved():
    saved = json.loads(SAVED.read_text())["options"]
    assert {name for name in saved if name.startswith("--")} <= options("").keys()


def test_options_that_change_the_training_are_among_those_of_all_workers():
    assert {"--lr", "--dtype", "--random-crop"} < set(STEERING) < options("").keys()
    assert {flag.attribute for flag in ALL} > FAST.keys()
    fast = {flag.name for flag in ALL if flag.attribute in FAST}
    assert fast - set(STEERING) == {"--flip-test"}


def test_the_defaults_of_the_fast_network_are_told_as_one_would_type_them():
    assert not list(explain_defaults(parse_args([])))
    (line,) = explain_defaults(parse_args(["--network", "fast", "--lr", "0.5"]))
    start = "--network fast trains with --optimizer nag --lr 0.5 --lr-schedule onecycle "
    assert line.startswith(start) and "--rgb-mean 125.3,123,113.9" in line
    words = line.replace("trains with ", "").split()
    assert list(explain_defaults(parse_args(words))) == [line]
    (short,) = explain_defaults(parse_args(words), is_short=True)
    assert short == "--network fast sets 15 options: cifar10_dist.py --help lists them"

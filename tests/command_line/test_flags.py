"""Flags: every check, every default, and random combinations with values at the edge."""

import argparse
import ast
import os
import re
import sys
from itertools import chain
from pathlib import Path
from unittest import mock

from gluon_dist.common.errors import UsageError

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from command_line import checks, flag_types
from command_line.checks import check_devices
from command_line.flags import ALL, FLAGS, WITHOUT_EFFECT
from command_line.parse import parse_args
from launching import train

TIME_BUDGET_S = 20

ALONE, LAUNCHED = {}, {"DMLC_PS_ROOT_URI": "127.0.0.1"}
P3 = {**LAUNCHED, "DMLC_PS_VAN_TYPE": "p3"}
NO_SERVERS, RING = {**LAUNCHED, "DMLC_NUM_SERVER": "0"}, {"HOROVOD_SIZE": "2"}
SYMBOL = Path(__file__).parents[1] / "checkpoint/of_an_earlier_version/plain/model-symbol.json"
# How each message begins, the command line that brings it, and what the launcher says.
CASES = {
    "--cpus and --gpus exclude": ("--cpus 2 --gpus 0", ALONE),
    "--load-epoch and --resume exclude": ("--load-epoch 0 --resume none", ALONE),
    "--data-train and --data-val": ("--data-val y.rec", ALONE),
    "--data synthetic and": ("--data synthetic --data-train x.rec --data-val y.rec", ALONE),
    "--load-epoch needs": ("--load-epoch 0", ALONE),
    "--keep needs": ("--keep 1", ALONE),
    "--model-prefix out/..: a folder": ("--model-prefix out/..", ALONE),
    "--profile /no/where/trace.json: its": ("--profile /no/where/trace.json", ALONE),
    "--resume auto needs": ("--resume auto", ALONE),
    "--load-epoch 5: nothing": ("--model-prefix x --load-epoch 5", ALONE),
    "--network none.json: no such": ("--network none.json", ALONE),
    "--dtype bfloat16: /": (f"--network {SYMBOL} --dtype bfloat16", ALONE),
    "--pad-size 1001: too": ("--pad-size 1001", ALONE),
    "--top-k 4: there": ("--top-k 4 --num-classes 3", ALONE),
    "--lr-schedule step needs": ("--network fast --lr-schedule step", ALONE),
    "--lr-step-epochs goes": ("--lr-schedule onecycle --lr-step-epochs 3", ALONE),
    "--lr-factor 1e-11: the": ("--lr 1e-9 --lr-factor 1e-11 --lr-step-epochs 1,2", ALONE),
    "--lr-scale staleness needs": ("--lr-scale staleness --kv-store dist_sync", LAUNCHED),
    "--warmup-epochs 5.5: longer": ("--warmup-epochs 5.5", ALONE),
    "--kv-store dist_sync needs": ("--kv-store dist_sync", ALONE),
    "--kv-store device would": ("--kv-store device", RING),
    "--kv-store dist_sync has no servers": ("--kv-store dist_sync", NO_SERVERS),
    "--kv-store horovod needs": ("--kv-store horovod", ALONE),
    "--kv-store horovod takes no servers": ("--kv-store horovod", LAUNCHED),
    "--kv-store horovod: Horovod is not": ("--kv-store horovod", NO_SERVERS),
    "--gc-type 2bit does not": ("--gc-type 2bit", P3),
    "--kv-store dist_async does not": ("--kv-store dist_async", P3),
    "--kv-store device under": ("--kv-store device", LAUNCHED),
    "--gc-type 2bit needs": ("--gc-type 2bit --kv-store dist_async", LAUNCHED),
    "--gc-type and --dtype": ("--gc-type 2bit --dtype float16", LAUNCHED),
    "--dtype float16 and": ("--kv-store dist_async --dtype float16", LAUNCHED),
    "--test-io and --benchmark": ("--test-io 1 --benchmark 1", ALONE),
    "--optimizer luck: not": ("--optimizer luck", ALONE),
    "--optimizer dcasgd: MXNet": ("--optimizer DCASGD", ALONE),
}
# The same with devices.
DEVICE_CASES = {
    "--dtype float16 needs": ("--dtype float16", "cpu", 1),
    "--dtype bfloat16 needs": ("--dtype bfloat16", "gpu", 1),
    "--dtype bfloat16: MXNet": ("--dtype bfloat16", "cpu", 1),
    "--batch-size 3: fewer": ("--batch-size 3", "gpu", 4),
    "--optimizer nadam: MXNet": ("--optimizer nadam", "cpu", 2),
}
# The values that MXNet's older examples give to their own flags.
OLD_DEFAULTS = """
    --network resnet --num-layers 50 --kv-store device --num-epochs 80 --lr 0.1 --lr-factor 0.1
    --lr-step-epochs 30,60 --initializer default --optimizer sgd --mom 0.9 --wd 0.0001
    --batch-size 128 --disp-batches 20 --save-period 1 --monitor 0 --top-k 0 --loss= --test-io 0
    --dtype float32 --gc-type none --gc-threshold 0.5 --macrobatch-size 0 --warmup-epochs 5
    --warmup-strategy linear --profile-worker-suffix= --profile-server-suffix=
    --use-imagenet-data-augmentation 0 --data-train-idx= --data-val-idx= --data-nthreads 4
    --rgb-mean 123.68,116.779,103.939 --rgb-std 58.393,57.12,57.375 --pad-size 0 --fill-value 127
    --image-shape 3,224,224 --num-classes 1000 --num-examples 1281167 --benchmark 0
    --random-crop 0 --random-mirror 1 --max-random-h 0 --max-random-s 0 --max-random-l 0
    --min-random-aspect-ratio 0.75 --max-random-aspect-ratio 1.3333333333333333
    --max-random-rotate-angle 0 --max-random-shear-ratio 0 --max-random-scale 1
    --min-random-scale 1 --max-random-area 1 --min-random-area 0.08 --max-crop-size -1
    --min-crop-size -1 --brightness 0.4 --contrast 0.4 --saturation 0.4 --pca-noise 0.1
    --random-resized-crop 1
"""
EDGES = ("0", "1", "-1", "nan", "-inf", "1e308", "9" * 400, "1,2", "2,1", "{x}", "é", " ", "")
ENVIRONMENTS = (ALONE, LAUNCHED, P3, {**LAUNCHED, "LAUNCH_MAX_RESTARTS": "3"})


def parse(words, environment=ALONE):
    with mock.patch.dict(os.environ, environment), mock.patch.dict(sys.modules, horovod=None):
        return parse_args(words)


@pytest.mark.parametrize("beginning", CASES)
def test_flags_that_do_not_go_together_are_refused(beginning):
    words, environment = CASES[beginning]
    with pytest.raises(UsageError, match=f"^{re.escape(beginning)}"):
        parse(words.split(), environment)


@pytest.mark.parametrize("beginning", DEVICE_CASES)
def test_flags_that_do_not_go_with_the_devices_are_refused(beginning):
    words, kind, num_devices = DEVICE_CASES[beginning]
    args = parse(words.split())
    without_avx512 = mock.patch.object(Path, "read_text", lambda *_, **__: "flags\t\t: fpu avx2\n")
    with without_avx512, pytest.raises(UsageError, match=f"^{re.escape(beginning)}"):
        check_devices(args, kind, num_devices)


def test_every_check_has_a_case():
    tree = ast.parse(Path(checks.__file__).read_text())
    mistakes = [node for node in ast.walk(tree) if isinstance(node, ast.Yield)]
    assert len(mistakes) == len(CASES) + len(DEVICE_CASES)


@pytest.mark.parametrize("words", ["--cpus 2", "--gpus=", "--model-prefix x --load-epoch 0"])
def test_flags_that_exclude_others_are_taken_alone(words):
    parse(words.split())


@pytest.mark.parametrize("network", ["resnet18_v1", "fast"])
@pytest.mark.parametrize("flag", ALL, ids=lambda flag: flag.names)
def test_a_flag_takes_its_own_default(flag, network):
    value = flag.of(parse(["--network", network]))
    if isinstance(flag.takes, tuple):
        assert value in flag.takes
    elif value not in (None, ()):
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert flag.takes(text) == value


# Values at the edges of a type: first those that it takes, then those that it refuses.
@pytest.mark.parametrize(
    "name, taken, refused",
    [
        ("path", ["x", " "], [""]),
        ("compression", ["none", "fp16", "2bit"], ["1bit", "None", ""]),
        ("positive", ["1", "2147483647"], ["0", "2147483648", "1.5", ""]),
        ("count", ["0", "2147483647"], ["-1", "2147483648"]),
        ("positive_float", ["1e-30", "1e30"], ["0", "9e-31", "1.1e30", "inf", "nan"]),
        ("not_negative", ["0", "1e-30", "1e30"], ["-1e-30", "1e-300", "1e300", "inf", "nan"]),
        ("below_one", ["0", "0.999"], ["1", "-0.1", "1e-300", "nan"]),
        ("fraction", ["0.001", "1"], ["0", "1.001", "1e-300", "nan"]),
        ("gpu_list", ["", "0", "3,1"], ["-1", "1,1", "0,", "a"]),
        ("epochs", ["", "1", "1,3"], ["0", "3,1", "2,2"]),
        ("shape", ["3,1,1", "(3, 32, 32)"], ["1,2,2", "3,0,1", "3,2", ""]),
        ("triple", ["0,-1,2.5"], ["1,2", "1,2,inf", "1,2,-1e308", ""]),
        ("positive_triple", ["1,2,0.5"], ["1,2,0", "1,2,inf", "1e-300,1,1", ""]),
    ],
)
def test_a_type_takes_values_up_to_its_edges(name, taken, refused):
    for text in taken:
        getattr(flag_types, name)(text)
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError):
            getattr(flag_types, name)(text)


@pytest.mark.parametrize("name, value", [("gpus", ()), ("test_io", 1), ("benchmark", 1)])
def test_a_flag_may_stand_without_a_value(name, value):
    assert getattr(parse([f"--{name.replace('_', '-')}", "--seed=1"]), name) == value


def test_the_fast_network_has_other_defaults_and_what_the_user_says_wins():
    fast = ("--network", "fast", "--num-epochs", "10")
    args = parse([*fast, "--lr", "0.1", "--random-crop", "0", "--lr-step-epochs", "3"])
    assert (args.lr, args.random_crop, args.lr_schedule, args.wd) == (0.1, 0, "step", 0.00133)
    assert (args.lr_scale, args.optimizer) == ("linear", "nag")
    assert args.warmup_epochs == pytest.approx(2.3)
    assert parse(fast).lr_schedule == "onecycle" and parse([]).optimizer == "adam"
    assert parse([*fast, "--kv-store", "dist_async"], LAUNCHED).lr_scale == "staleness"


@pytest.mark.parametrize(
    "words, restarts, resume",
    [
        ("--model-prefix x", "3", "auto"),
        ("--model-prefix x", "0", "none"),
        ("", "3", "none"),
        ("--model-prefix x --load-epoch 1", "3", "none"),
        ("--model-prefix x --resume none", "3", "none"),
        ("--resume y-0001", "3", "y-0001"),
    ],
)
def test_a_job_that_may_be_restarted_resumes_by_itself(words, restarts, resume):
    assert parse(words.split(), {"LAUNCH_MAX_RESTARTS": restarts}).resume == resume


def test_help_lists_every_flag_in_its_group_and_no_flag_without_effect(tmp_path):
    job = train(tmp_path, "--help")
    text = job.stdout
    assert (job.status, job.stderr) == (0, "")
    for (title, flags), following in zip(FLAGS.items(), [*list(FLAGS)[1:], "A checkpoint is"]):
        part = text.split(f"\n{title}:\n", 1)[1].split(f"\n{following}", 1)[0]
        listed = re.findall(r"^  (--[a-z-]+)", part, re.MULTILINE)
        assert listed == [flag.name for flag in flags]
    assert not set(WITHOUT_EFFECT) & set(re.findall(r"--[a-z-]+", text))
    assert max(map(len, text.splitlines())) <= 110
    assert "--network fast trains with --optimizer nag --lr 0.375" in text


@pytest.mark.parametrize(
    "words", [["--monitor", "3", "--brightness"], WITHOUT_EFFECT], ids=["some", "all"]
)
def test_flags_without_effect_are_taken_and_warned_of(words, capsys):
    parse(words)
    names = " ".join(word for word in words if word != "3")
    assert capsys.readouterr().err == f"gluon_dist: warning: no effect here: {names}\n"


def test_the_defaults_of_older_examples_are_taken(capsys):
    args = parse(OLD_DEFAULTS.split())
    assert args.gc_type is None and args.rgb_std == (58.393, 57.12, 57.375)
    (line,) = capsys.readouterr().err.splitlines()
    assert "no effect here" in line


@pytest.mark.parametrize(
    "words, told",
    [
        ("--rgb-mean 1,2,3", ["--rgb-std 255,255,255 (there 1,1,1)"]),
        ("--rgb-std 1,2,3", ["--rgb-mean 0,0,0 (there 123.68,116.779,103.939)"]),
        ("--mom 0.9 --rgb-std 1,1,1", ["--rgb-mean 0,0,0", "--optimizer adam (there sgd)"]),
        ("--lr 0.1", ["--optimizer adam (there sgd)"]),
        ("--optimizer SGD", ["--lr 0.001 (there 0.1)"]),
        ("--random-crop 1", ["--pad-size 0 (there 4)"]),
        ("--random-crop 1 --pad-size 0", []),
        ("--random-crop 1 --data-train a --data-val b", []),
        ("--rgb-mean 1,2,3 --rgb-std 1,1,1 --lr 0.1 --optimizer sgd", []),
        ("--lr 0.003 --num-epochs 3", []),
        ("--network fast --rgb-mean 1,2,3 --lr 0.1 --mom 0.8", []),
    ],
)
def test_one_warning_names_the_missing_partners_of_old_flags(words, told, capsys):
    parse(words.split())
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == bool(told)
    assert all(text in lines[0] for text in told)


@st.composite
def words_of_a_flag(draw):
    """Draw a flag with one of its values, an edge value, or no value."""
    flag = draw(st.sampled_from(ALL))
    own = flag.takes if isinstance(flag.takes, tuple) else (flag.default, flag.shown)
    own += ("fast", "sgd") if flag.takes is str else ()
    value = draw(st.sampled_from([*map(str, own), *EDGES]))
    name = draw(st.sampled_from(flag.names.split()))
    return draw(st.sampled_from([[name, value], [f"{name}={value}"], [name]]))


@settings(max_examples=400)
@given(st.lists(words_of_a_flag(), min_size=2, max_size=3), st.sampled_from(ENVIRONMENTS))
@example([["--network", "fast"], ["--num-epochs", "9" * 400]], ALONE)
def test_any_flags_together_are_taken_or_refused_in_one_line(flags, environment):
    try:
        args = parse(list(chain(*flags)), environment)
    except UsageError as error:
        (line,) = str(error).splitlines()
        assert line.strip()
    else:
        assert isinstance(args, argparse.Namespace)
        assert None not in (args.kv_store, args.lr_schedule, args.lr_scale, args.resume)

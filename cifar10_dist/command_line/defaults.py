"""What the command line leaves open."""

import argparse

from gluon_dist.common.messages import warn
from gluon_dist.setup.environment import is_first_worker, is_launched, max_restarts

from command_line.flags import ALL, WITHOUT_EFFECT, attribute_of

# The defaults that --network fast replaces; None: see `fill_in`.
FAST = {
    "pad_size": 2,
    "random_crop": 1,
    "random_mirror": 1,
    "rgb_mean": "125.3,123,113.9",
    "rgb_std": "63,62.1,66.7",
    "optimizer": "nag",
    "lr": 0.375,  # for 256 examples, as --lr-scale linear has it
    "lr_schedule": None,
    "warmup_epochs": None,
    "lr_scale": None,
    "mom": 0.85,
    "wd": 0.00133,
    "label_smoothing": 0.2,
    "lookahead": 5,
    "flip_test": "last",
}
# Defaults of MXNet's older examples that differ from ours.
OLDER = {
    "--rgb-mean": "123.68,116.779,103.939",
    "--rgb-std": "1,1,1",
    "--pad-size": "4",
    "--optimizer": "sgd",
    "--lr": "0.1",
}


def fill_in(given):
    """Return all values: those given, and the defaults of flags that are None in ``given``."""
    is_fast = given.network == "fast"
    defaults = {flag.attribute: flag.default for flag in ALL}
    if is_fast:
        defaults.update(FAST)
    args = argparse.Namespace(**vars(given))
    for flag in ALL:
        if flag.of(given) is None:
            default = defaults[flag.attribute]
            is_text = isinstance(default, str) and callable(flag.takes)
            setattr(args, flag.attribute, flag.takes(default) if is_text else default)
    if args.kv_store is None:
        args.kv_store = "dist" if is_launched() else "device"
    if args.lr_schedule is None:
        without_steps = "onecycle" if is_fast else "constant"
        args.lr_schedule = "step" if args.lr_step_epochs else without_steps
    if args.warmup_epochs is None:
        args.warmup_epochs = 0.23 * args.num_epochs
    if args.lr_scale is None:
        synchronous = "linear" if is_fast else "none"
        args.lr_scale = "staleness" if args.kv_store == "dist_async" else synchronous
    if args.resume is None:
        is_restartable = max_restarts() and args.model_prefix and args.load_epoch is None
        args.resume = "auto" if is_restartable else "none"
    return args


def warn_of_older_examples(given):
    """Warn of flags without effect, and of defaults that differ from MXNet's older examples."""
    useless = [name for name in WITHOUT_EFFECT if hasattr(given, attribute_of(name))]
    if useless:
        warn(f"no effect here: {' '.join(useless)}")
    missing = [] if given.network == "fast" else list(_missing_partners(given))
    differing = [f"{f.name} {f.default} (there {OLDER[f.name]})" for f in ALL if f.name in missing]
    if differing and is_first_worker():
        warn(f"other defaults than in MXNet's older examples: {', '.join(differing)}")


def _missing_partners(given):
    """Yield flags that are not given, though a flag that goes with them is."""
    if given.rgb_std and not given.rgb_mean:
        yield "--rgb-mean"
    if given.rgb_mean and not given.rgb_std:
        yield "--rgb-std"
    if given.random_crop and given.pad_size is None and not given.data_train:  # crops nothing
        yield "--pad-size"
    if not given.optimizer and (given.mom or (given.lr or 0) >= 0.05):  # Adam's rates are lower
        yield "--optimizer"
    if not given.lr and (given.optimizer or "").lower() in ("sgd", "nag"):
        yield "--lr"

"""The options as texts: for the comparison of workers, for checkpoints, for the user."""

import hashlib
from pathlib import Path

from command_line.defaults import FAST
from command_line.flags import ALL, FLAGS

# The order of flags in a line for the user: the optimizer, its rate and the like come first.
_ORDERED = sorted(ALL, key=lambda flag: flag not in FLAGS["training"])
STEERING = [flag.name for flag in _ORDERED if flag.steers]


def options_of(args):
    """Return the options that must be the same for all workers, as texts by name.

    Parameters
    ----------
    args : argparse.Namespace

    Returns
    -------
    dict of str to str
        Such as ``{"--lr": "0.001", ...}``.
    """
    texts = {flag.name: str(flag.of(args)) for flag in ALL if not flag.may_differ}
    if args.network.endswith(".json"):  # the path may differ, the content may not
        digest = hashlib.sha256(Path(args.network).read_bytes()).hexdigest()
        texts["--network"] = f"a file with SHA-256 {digest[:12]}"
    for name, value in ("--model-prefix", args.model_prefix), ("--log-dir", args.log_dir):
        texts[name] = "given" if value else "not given"
    if args.resume not in ("auto", "none"):
        texts["--resume"] = "of a path"
    return texts


def explain_defaults(args, is_short=False):
    """Yield a line on the options that ``--network fast`` sets: their values, or how many."""
    if args.network == "fast":
        flags = [flag for flag in _ORDERED if flag.attribute in FAST]
        if is_short:
            yield f"--network fast sets {len(flags)} options: cifar10_dist.py --help lists them"
            return
        chosen = [f"{flag.name} {_as_text(flag.of(args))}" for flag in flags]
        yield f"--network fast trains with {' '.join(chosen)}"


def _as_text(value):
    """Write a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(_as_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)

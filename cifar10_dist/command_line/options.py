"""What is told of the options: to other workers, to a checkpoint, to the user."""

import hashlib
from pathlib import Path

from command_line.defaults import FAST
from command_line.flags import ALL, FLAGS

# A line that names several flags begins with those of the training: the optimizer, its rate, ...
_TOLD = sorted(ALL, key=lambda flag: flag not in FLAGS["training"])
STEERING = [flag.name for flag in _TOLD if flag.steers]  # the course of a training


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
    if args.network.endswith(".json"):  # whose content counts
        digest = hashlib.sha256(Path(args.network).read_bytes()).hexdigest()
        texts["--network"] = f"a file with SHA-256 {digest[:12]}"
    texts["--model-prefix"] = "given" if args.model_prefix else "not given"
    if args.resume not in ("auto", "none"):
        texts["--resume"] = "of a path"
    return texts


def explain_defaults(args):
    """Yield a line on the defaults that ``--network fast`` sets, with the values they have now."""
    if args.network == "fast":
        flags = [flag for flag in _TOLD if flag.attribute in FAST]
        chosen = [f"{flag.name} {_as_text(flag.of(args))}" for flag in flags]
        yield f"--network fast trains with {' '.join(chosen)}"


def _as_text(value):
    """Write a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(_as_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)

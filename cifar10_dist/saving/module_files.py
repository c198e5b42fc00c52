"""Checkpoints of ``mx.mod.Module``, as MXNet's older examples save them: which network they have.

- ``PREFIX-symbol.json``: the network, with its loss at the end, a ``SoftmaxOutput``
- ``PREFIX-0020.params``: the parameters, named as in the symbol, with ``arg:`` or ``aux:`` before
"""

import contextlib
import json
import re
from pathlib import Path

from ground import environment
from ground.failure import UsageError
from ground.messages import warn
from networks.by_symbol import ends_in_softmax
from networks.create import create_from_symbol, is_as_named
from saving.candidates import asks_for_files, candidates, place_of

UNSCALED = {"rgb_mean": (0, 0, 0), "rgb_std": (255, 255, 255)}  # the defaults


def network_of_module(args, ctx, workers):
    """Read the network of the checkpoint to go on from, if that is, or was once, of Module.

    All workers make this call. Only worker 0 reads files.

    Parameters
    ----------
    args : argparse.Namespace
    ctx : list of mxnet.Context
    workers : workers.Workers

    Returns
    -------
    networks.by_symbol.SymbolNetwork or None
        None if ``--network`` says what is trained.

    Raises
    ------
    UsageError
        If the symbol cannot be used.
    """
    if not asks_for_files(args):
        return None
    found = _find_symbol(args) if workers.rank == 0 else None
    found = json.loads(workers.hand_out(json.dumps(found).encode()))
    if found is None:
        return None
    name, text, is_theirs = found
    net = create_from_symbol(args, name, text, ctx)
    if workers.rank == 0:
        if not is_as_named(args, net):
            warn(f"the network is read from {name}; --network {args.network} would be another")
        if is_theirs and all(vars(args)[flag] == value for flag, value in UNSCALED.items()):
            warn(
                "images are divided by 255, which MXNet's older examples did not do: add the "
                "--rgb-mean and --rgb-std of the old line; their defaults were "
                "123.68,116.779,103.939 and 1,1,1"
            )
    return net


def _find_symbol(args):
    """Find the symbol of Module beside the checkpoint to go on from.

    Returns
    -------
    name, text, is_theirs : str, str, bool
        Its path and content, and whether the checkpoint is Module's, too, and not of a training
        that went on from it; or None for all three.
    """
    entries, _, _ = candidates(args, environment.job_id(), environment.is_restarted())
    if not entries:
        return None
    is_theirs = entries[0].manifest is None and entries[0].error is None
    prefix = re.sub(r"-\d{4,}(-\d{5,})?$", "", entries[0].name)
    try:
        text = read_symbol(prefix)
    except UsageError:
        if is_theirs:
            raise
        return None
    return (f"{prefix}-symbol.json", text, is_theirs) if text else None


def read_symbol(prefix):
    """Return the text of ``PREFIX-symbol.json`` if Module trains that network, else None.

    Raises
    ------
    UsageError
        If it cannot be read, or ends in something else than the scores or their softmax.
    """
    path = Path(f"{prefix}-symbol.json")
    try:
        text = path.read_text(encoding="utf-8")
        return text if ends_in_softmax(text) else None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None


def warn_of_replacing(prefix):
    """Say that a new training replaces the network of older files, which may be Module's."""
    with contextlib.suppress(UsageError):
        if read_symbol(prefix):
            warn(
                f"{place_of(prefix, '-symbol.json')}, which mx.mod.Module has saved, is replaced "
                "by that of a new training; --load-epoch N would go on from the files beside it"
            )

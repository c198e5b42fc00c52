"""Put the parameters of a file into a network, by whichever names they were saved."""

from gluon_dist.checkpoint import files
from gluon_dist.checkpoint.files import Broken

import mxnet as mx


def load(net, path, content):
    """Put the parameters of a file into a network, on every device, cast to the network's types.

    Their names may be those of ``Block.save_parameters`` (``features.0.weight``), or those of
    ``collect_params().save`` with or without the network's prefix; this program and MXNet's Module
    write ``arg:`` or ``aux:`` before them.

    Parameters
    ----------
    net : mxnet.gluon.Block
        Initialized.
    path, content : str, bytes
        Where the file is, for messages, and what is in it.

    Raises
    ------
    gluon_dist.checkpoint.manifest.Broken
        If they are not the parameters of this network.
    """
    try:
        _load(net, content)
    except (mx.MXNetError, AssertionError, ValueError) as error:
        lines = str(error).strip().splitlines()
        reason = lines[-1 if isinstance(error, mx.MXNetError) else 0][:200]
        raise Broken(f"{path}: not the parameters of this network: {reason}") from None


def _load(net, content):
    """Load, by whichever of the network's names the file has; raise ValueError if none fit."""
    found = files.parse_params(content)
    own = net.collect_params()
    short = {name[len(net.prefix) :]: param for name, param in own.items()}
    ways = (dict(own.items()), net._collect_params_with_prefix(), short)
    params = min(ways, key=lambda params: len(params.keys() ^ found.keys()))
    missing = [name for name in params if name not in found]
    left_over = [name for name in found if name not in params]
    if missing or left_over:
        lists = ("missing", missing), ("left over", left_over)
        raise ValueError("; ".join(f"{what}: {_first(names)}" for what, names in lists if names))
    ctx = next(iter(own.values())).list_ctx()
    arrays = {params[name].name: array for name, array in found.items()}
    own.load_dict(arrays, ctx=ctx, cast_dtype=True)


def with_kinds(params, symbol):
    """Put ``arg:`` or ``aux:`` before names, as in MXNet's files, by the symbol (its JSON)."""
    arguments = set(mx.sym.load_json(symbol).list_arguments())
    return {("arg:" if n in arguments else "aux:") + n: value for n, value in params.items()}


def _first(names):
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")

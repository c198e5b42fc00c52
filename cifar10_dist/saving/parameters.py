"""Put the parameters of a file into a network, by whichever names they were saved."""

from saving import checkpoint


def load(net, content):
    """Put the parameters of a file into a network, on every device, cast to the network's types.

    Their names may be those of ``Block.save_parameters`` (``features.0.weight``), or those of
    ``collect_params().save`` with or without the network's prefix; this program and MXNet's Module
    write ``arg:`` or ``aux:`` before them.

    Parameters
    ----------
    net : mxnet.gluon.Block
        Initialized.
    content : bytes

    Raises
    ------
    ValueError, AssertionError, mxnet.MXNetError
        If they are not the parameters of this network; the first line says why.
    """
    found = checkpoint.parse_params(content)
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


def _first(names):
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")

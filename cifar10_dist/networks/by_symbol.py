"""A network that is read from its symbol: ``PREFIX-symbol.json``, as all of MXNet saves it."""

import json
from pathlib import Path

from gluon_dist.common.errors import UsageError, last_line

import mxnet as mx


class SymbolNetwork(mx.gluon.SymbolBlock):
    """The network of a symbol: it gives the scores. A ``SoftmaxOutput`` at its end is left out.

    Parameters have the names that they have in the symbol; all but BatchNorm's running means and
    variances are learned. Casts, of a network that was trained in float16, do nothing.

    Parameters
    ----------
    path : str
        Of the symbol's file.

    Attributes
    ----------
    statistics : set of str
        Names of BatchNorm's running means and variances.

    Raises
    ------
    UsageError
        If it cannot be read, is no symbol of MXNet's, or ends in another loss.
    """

    def __init__(self, path):
        scores = read_symbol(path)
        ends = ends_of(scores)
        if ends == ["SoftmaxOutput"]:
            scores = scores.get_children()[0]
        elif any(op.endswith("Output") or op == "MakeLoss" for op in ends):
            raise UsageError(f"{path}: ends in {', '.join(ends)}, not in scores or a SoftmaxOutput")
        arguments = scores.list_arguments()  # in the order in which they are used: images first
        images = "data" if "data" in arguments else arguments[0]
        super().__init__(scores, mx.sym.var(images, dtype="float32"))
        self.statistics = set(scores.list_auxiliary_states())
        for param in self.collect_params().values():
            param.init = _ByShape()


class _ByShape(mx.init.Initializer):
    """Draws weights as ``Xavier`` does; vectors begin with 1 or 0, as in MXNet's layers."""

    def _init_weight(self, name, arr):
        if arr.ndim > 1:
            mx.init.Xavier()._init_weight(name, arr)
        else:
            arr[:] = name.endswith(("gamma", "var"))


def read_symbol(path):
    """Return the symbol in a file, without its casts: MXNet has float16 on GPUs only.

    Returns
    -------
    mxnet.symbol.Symbol

    Raises
    ------
    UsageError
        If it cannot be read, or is no symbol of MXNet's.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        json.loads(text)  # for MXNet's own message may hold bytes that are no text
        graph = json.loads(mx.sym.load_json(text).tojson())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (mx.MXNetError, ValueError) as error:
        raise UsageError(f"{path}: not a network in MXNet's JSON: {last_line(error)}") from None
    for node in graph["nodes"]:
        if node["op"] == "Cast":
            node["attrs"]["dtype"] = "float32"
    return mx.sym.load_json(json.dumps(graph))


def ends_of(symbol):
    """Return the operators at the end of a symbol: of a network that Module trains, its loss."""
    graph = json.loads(symbol.tojson())
    return [graph["nodes"][head[0]]["op"] for head in graph["heads"]]

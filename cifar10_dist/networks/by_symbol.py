"""A network that is read from its symbol, as ``mx.mod.Module`` saves it."""

import json

import mxnet as mx

from ground.failure import UsageError


class SymbolNetwork(mx.gluon.SymbolBlock):
    """The network of a symbol that ends in a ``SoftmaxOutput``, without that: it gives the scores.

    Parameters have the names that they have in the symbol, and their shapes are known.

    Parameters
    ----------
    name : str
        Of the symbol's file, for messages.
    text : str
        The symbol, in MXNet's JSON.
    image_shape : tuple of int
        (channels, height, width) of all images to come.
    num_classes : int

    Attributes
    ----------
    text : str
        The whole symbol, to be saved again: its ``SoftmaxOutput`` is what ``Module`` trains with.
    statistics : set of str
        Names of BatchNorm's running means and variances.

    Raises
    ------
    UsageError
        If it takes other images, or more than images, or has other classes.
    """

    def __init__(self, name, text, image_shape, num_classes):
        scores = mx.sym.load_json(_in_float32(text)).get_children()[0]
        arguments = scores.list_arguments()  # in the order in which they are used: images first
        images = "data" if "data" in arguments else arguments[0]
        try:
            shapes, found, of_statistics = scores.infer_shape(**{images: (1, *image_shape)})
        except mx.MXNetError as error:
            shape, reason = ",".join(map(str, image_shape)), _last_line(error)
            raise UsageError(
                f"{name}: does not take images of --image-shape {shape} ({reason})"
            ) from None
        if found is None:  # MXNet warns of those whose shapes it does not know
            raise UsageError(f"{name}: needs more inputs than images")
        if found != [(1, num_classes)]:
            classes = "x".join(map(str, found[0][1:]))
            raise UsageError(f"--num-classes {num_classes}: {name} has {classes} classes")
        super().__init__(scores, mx.sym.var(images, dtype="float32"))
        self.title, self.text = name, text
        self.statistics = set(scores.list_auxiliary_states())
        names = arguments + scores.list_auxiliary_states()
        params = self.collect_params()
        for param, shape in zip(names, shapes + of_statistics):
            if param != images:
                params[param].shape = shape


def ends_in_softmax(text):
    """Tell whether a symbol is a network that classifies, as ``Module`` trains it.

    Parameters
    ----------
    text : str
        MXNet's JSON.

    Raises
    ------
    UsageError
        If it is no symbol of MXNet's, or ends in another loss.
    """
    try:
        json.loads(text)  # for MXNet's own message may hold bytes that are no text
        graph = json.loads(mx.sym.load_json(text).tojson())
    except (mx.MXNetError, ValueError) as error:
        raise UsageError(f"not a network in MXNet's JSON: {_last_line(error)}") from None
    ends = [graph["nodes"][head[0]]["op"] for head in graph["heads"]]
    if any(op.endswith("Output") or op == "MakeLoss" for op in ends) and ends != ["SoftmaxOutput"]:
        raise UsageError(f"ends in {', '.join(ends)}; only one SoftmaxOutput can be replaced here")
    return ends == ["SoftmaxOutput"]


def _in_float32(text):
    """Let the casts of a network that was trained in float16 do nothing; see ``--dtype``."""
    graph = json.loads(mx.sym.load_json(text).tojson())
    for node in graph["nodes"]:
        if node["op"] == "Cast":
            node["attrs"]["dtype"] = "float32"
    return json.dumps(graph)


def _last_line(error):
    return str(error).strip().splitlines()[-1][:200]

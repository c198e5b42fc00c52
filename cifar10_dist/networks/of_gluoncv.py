"""Networks of GluonCV's model zoo, without pretrained weights."""

import contextlib
from functools import partial

from gluon_dist.common.errors import UsageError, last_line

import mxnet as mx
from gluoncv.model_zoo import get_model, get_model_list, model_store
from gluoncv.nn.dropblock import set_drop_prob


def network_of_gluoncv(name, num_classes=None):
    """Return a network of GluonCV's, its parameters not drawn yet.

    Parameters
    ----------
    name : str
    num_classes : int, optional
        Default: GluonCV's own number, which some networks cannot change.

    Raises
    ------
    UsageError
        If there is no such network, or GluonCV has it with pretrained weights only.
    """
    if name.lower() not in get_model_list():
        raise UsageError(
            f"--network {name}: not a GluonCV model; try resnet18_v1, cifar_resnet20_v2, "
            "mobilenet0.25, or resnet with --num-layers 20"
        )
    # Some take num_classes, and are silent on classes that they do not know.
    for words in ("classes", "num_classes"), ("classes",):
        options = dict.fromkeys(words, num_classes) if num_classes else {}
        try:
            with mx.name.NameManager(), _without_weights():
                net = get_model(name, pretrained=False, **options)
        except _Weights:
            reason = "GluonCV builds it on trained weights; this program trains from nothing"
        except Exception as error:  # of any kind: each network has other authors
            reason = f"not a network that classifies images ({last_line(error)})"
        else:
            # It looks whether this is a training when the graph is made, once: it would drop in
            # tests, too. And it takes one size of images.
            net.apply(partial(set_drop_prob, 0))
            return net
    raise UsageError(f"--network {name}: {reason}")


class _Weights(Exception):
    """A network asked for pretrained weights."""


@contextlib.contextmanager
def _without_weights():
    """Make a request for pretrained weights raise :class:`_Weights`."""

    def refuse(*args, **kwargs):
        raise _Weights

    download, model_store.get_model_file = model_store.get_model_file, refuse
    try:
        yield
    finally:
        model_store.get_model_file = download

#!/usr/bin/env python3
"""Make a checkpoint of cifar10_dist.py from parameters that MXNet saved.

What mx.mod.Module saved (fit's epoch_end_callback, mx.model.save_checkpoint):
    python tools/convert_module.py old/cifar10-0020.params --model-prefix new/cifar10
    python cifar10_dist/cifar10_dist.py --network new/cifar10-symbol.json \\
        --model-prefix new/cifar10 --load-epoch 20 --num-epochs 30
What Gluon saved (save_parameters, export, collect_params().save), of a network with a name:
    python tools/convert_module.py my.params --epoch 3 --network resnet18_v1 \\
        --model-prefix new/model
    python cifar10_dist/cifar10_dist.py --network resnet18_v1 \\
        --model-prefix new/model --load-epoch 3 --num-epochs 10
"""

import argparse
import os
import re
import sys
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "cifar10_dist"
sys.path.insert(0, str(PROGRAM))

import gluon_dist  # noqa: E402, F401  before mxnet
from gluon_dist.checkpoint import files as checkpoint  # noqa: E402
from gluon_dist.checkpoint.lock import check_prefix, hold  # noqa: E402
from gluon_dist.checkpoint.manifest import Manifest  # noqa: E402
from gluon_dist.checkpoint.parameters import load, with_kinds  # noqa: E402
from gluon_dist.checkpoint.writer import new_run, reason_of  # noqa: E402
from gluon_dist.common.errors import UsageError  # noqa: E402
from gluon_dist.common.failure import exit_with  # noqa: E402

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

from command_line.flag_types import count, path, positive, shape  # noqa: E402
from command_line.flags import names_a_folder  # noqa: E402
from command_line.parse import Parser  # noqa: E402
from networks.by_name import get_network, network_json  # noqa: E402
from networks.by_symbol import ends_of, read_symbol  # noqa: E402
from run.versions import versions  # noqa: E402

ENDING = """\
No file is written over another. If PATH-symbol.json is there, random images must get the same
scores as by it. The optimizer begins anew, in float32. MXNet's older examples did not divide images
by 255: train with the --rgb-mean and --rgb-std of the old line; their defaults were
123.68,116.779,103.939 and 1,1,1.

Exit status: 0 done; 2 the command line or the files are wrong, and nothing is written.
"""
CLOSE = {"rtol": 1e-3, "atol": 1e-5}  # two ways of computing round differently


def parse_args(argv=None):
    """Read the command line."""
    parser = Parser(
        description=__doc__,
        epilog=ENDING,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("params", help="the parameters: PATH-0020.params")
    add("--model-prefix", type=path, required=True, metavar="PREFIX", help="of the new files")
    add("--epoch", type=count, metavar="N", help="epochs done; default: the number in the name")
    add("--network", metavar="NAME", help="as of cifar10_dist.py; default: PATH-symbol.json")
    add("--num-layers", type=positive, metavar="N", help="of --network resnet")
    add("--num-classes", type=positive, default=10, metavar="N", help="default 10")
    add("--image-shape", type=shape, default=(3, 32, 32), metavar="C,H,W", help="default 3,32,32")
    return parser.parse_args(argv)


def main(argv=None):
    """Convert as the command line says; return the exit status."""
    args = parse_args(argv)
    if names_a_folder(args.model_prefix):
        raise UsageError(f"--model-prefix {args.model_prefix}: a folder; add how its files begin")
    named = re.fullmatch(r"(.+)-(\d{4,})\.params", args.params)
    if args.epoch is None and not named:
        raise UsageError(f"{args.params}: no number of epochs in its name: give --epoch N")
    symbol = f"{named[1] if named else args.params}-symbol.json"
    epoch = int(named[2]) if args.epoch is None else args.epoch
    content = checkpoint.read_file(args.params)
    if not args.network and not Path(symbol).exists():
        raise UsageError(f"{symbol} is not there: give the network's name, --network NAME")
    network = args.network or symbol
    net = get_network(network, args.num_classes, args.image_shape, [mx.cpu()], args.num_layers)
    load(net, args.params, content)
    compared = compare(net, symbol, content, args.image_shape) if Path(symbol).exists() else ""
    name = write(net, args, epoch)
    print(f"{name}: the parameters of {args.params}{compared}")
    network = args.network or f"{args.model_prefix}-symbol.json"
    network += f" --num-layers {args.num_layers}" if args.num_layers else ""
    where = f"--model-prefix {args.model_prefix} --load-epoch {epoch}"
    print(f"cifar10_dist.py --network {network} {where} goes on from it")
    return 0


def compare(net, path, content, image_shape):
    """See that a network gives what MXNet itself gives for the symbol; return words for the user.

    Raises
    ------
    UsageError
        If the scores differ.
    """
    images = mx.nd.array(np.random.RandomState(0).normal(size=(8, *image_shape)))
    symbol, values = read_symbol(path), checkpoint.parse_params(content)
    names, kinds = symbol.list_arguments(), symbol.list_auxiliary_states()
    if not values.keys() <= {*names, *kinds}:
        return ""  # --network knows them by other names
    data = "data" if "data" in names else names[0]
    shapes = dict(zip(names, symbol.infer_shape(**{data: images.shape})[0]))
    values = {name: value.astype("float32") for name, value in values.items()}
    labels = {name: mx.nd.zeros(shapes[name]) for name in names if name not in values}
    inputs = {**values, **labels, data: images}
    os.environ["MXNET_SUBGRAPH_VERBOSE"] = "0"  # MXNet would say how it fuses layers
    executor = symbol.bind(mx.cpu(), inputs, aux_states=values, grad_req="null")
    expected = executor.forward(is_train=False)[0].asnumpy()
    scores = net(images)
    found = (scores.softmax() if ends_of(symbol) == ["SoftmaxOutput"] else scores).asnumpy()
    if not np.allclose(found, expected, **CLOSE):
        far = np.abs(found - expected).max()
        raise UsageError(f"{path}: another network than {net.name}: scores are {far:.2g} away")
    return f"; gives the scores of {path} on {len(images)} random images"


def write(net, args, epoch):
    """Write the checkpoint, over no other file; return the common path of its files."""
    prefix, symbol = args.model_prefix, network_json(net)
    name = f"{prefix}-{checkpoint.tag(epoch)}"
    check_prefix(prefix)
    with hold(prefix):
        new, path = ("params", "state", "json"), Path(f"{prefix}-symbol.json")
        there = [f"{name}.{ending}" for ending in new if Path(f"{name}.{ending}").exists()]
        if path.exists() and path.read_text(encoding="utf-8") != symbol:
            there.append(path)
        if there:
            raise UsageError(f"{there[0]} exists: name another --model-prefix")
        params = {key: param.data() for key, param in net.collect_params().items()}
        params = with_kinds(params, symbol)
        program = {"converted": args.params, "versions": versions()}
        manifest = Manifest(epoch, run=new_run(), program=program)
        try:
            return checkpoint.write(prefix, manifest, symbol, params, {})
        except (OSError, mx.MXNetError, ValueError) as error:
            raise UsageError(f"{name} could not be saved: {reason_of(error)}") from None


if __name__ == "__main__":
    exit_with(main, "convert_module.py")

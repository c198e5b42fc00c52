"""Save and load a network in MXNet's files, ``PREFIX-symbol.json`` and ``PREFIX-0001.params``."""

import os
import tempfile
from pathlib import Path

import mxnet as mx
from failure import UsageError


def check_prefix(prefix):
    """Make the folder of ``prefix`` and see that it takes files, before any time is spent."""
    folder = Path(prefix).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"--model-prefix {prefix}: cannot write to {folder}: {error.strerror}"
        ) from None


def save(net, prefix, epoch):
    """Write the network after ``epoch`` finished epochs.

    The files are complete before they get their names, so that a crash leaves none half-written.
    ``gluon.SymbolBlock.imports`` and ``mx.model.load_checkpoint`` read them.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
        Hybridized, and used at least once.
    prefix : str
        Path and start of the file names.
    epoch : int
    """
    target = Path(prefix)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".saving-") as folder:
        net.export(os.path.join(folder, target.name), epoch)
        for path in sorted(Path(folder).iterdir()):  # parameters first
            with open(path, "rb") as file:
                os.fsync(file.fileno())
            os.replace(path, target.parent / path.name)


def load(net, prefix, epoch, ctx):
    """Read the parameters that :func:`save` wrote after ``epoch`` epochs.

    Raises
    ------
    UsageError
        If the file is missing, broken, or of another network.
    """
    path = f"{prefix}-{epoch:04d}.params"
    if not os.path.isfile(path):
        raise UsageError(f"--load-epoch {epoch}: there is no file {path}")
    try:
        net.collect_params().load(path, ctx=ctx)
    except (mx.MXNetError, AssertionError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise UsageError(f"{path}: not the parameters of this network: {reason}") from None

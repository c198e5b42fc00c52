"""``--dtype``: the type a network computes in. ``auto`` measures which is faster, and takes that.

A processor with AVX512_BF16 or AMX multiplies bfloat16 faster than float32. But MXNet keeps weights
in float32 and casts them in every step, and oneDNN has fewer kernels for bfloat16. Which type wins
depends on the network, the batch and the processor: the same network gained 60 % on one processor
with AVX512_BF16, and lost 37 % on another. Processors with only AVX-512 emulate bfloat16;
without AVX-512 MXNet refuses it.
"""

import contextlib
import ctypes
import gc
import itertools
import sys
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.contrib import amp

from ground.failure import UsageError
from ground.messages import report
from ground.processor import processor_flags
from networks.by_name import SymbolNetwork, hybridize, starts_with_batchnorm

PROCESSOR_HAS = {"avx512_bf16", "amx_bf16"}  # one of them
TYPES = ("float32", "bfloat16")
# Of the steps after the first, the fastest counts: other programs may slow down any of them.
TIMED_S = 0.2  # of steps of one type before the other is measured; at least one step
CLEARLY = 1.05  # bfloat16 must be faster by this factor: else float32, which loses no digits
LEAD = 2  # rounds that one type must win more than the other
MOST_ROUNDS = 9


def choose_dtype(args, net, workers, saved=None, cpuinfo="/proc/cpuinfo"):
    """Return the type of ``--dtype``; for ``auto``, find it out and say which it is.

    All workers make this call, before the network computes.

    Parameters
    ----------
    args : argparse.Namespace
        With ``dtype``, and for the trial ``batch_size`` and ``image_shape``.
    net : mxnet.gluon.HybridBlock
        With parameters; they stay as they are.
    workers : workers.Workers
    saved : str, optional
        The type that a checkpoint was trained in.
    cpuinfo : str
        Linux's file that lists what the processor can do.

    Returns
    -------
    {'float32', 'float16', 'bfloat16'}

    Raises
    ------
    UsageError
        If this processor cannot compute in bfloat16.
    """
    flags = processor_flags(cpuinfo)
    if args.dtype == "bfloat16" and flags and "avx512bw" not in flags:
        raise UsageError("--dtype bfloat16: MXNet needs a processor with AVX-512; take float32")
    if args.dtype != "auto":
        return args.dtype
    dtype, reason = faster_dtype(args, net, workers, saved, cpuinfo)
    if workers.rank == 0:
        report(f"--dtype auto: {dtype} ({reason})")
    return dtype


def use_mixed_precision(dtype):
    """Let MXNet cast to a type in every network of this process that it compiles from now on.

    It compiles a network at its first step, and puts casts around convolutions and products.
    Weights stay float32. With float32 there is nothing to do.
    """
    if dtype != "float32":
        plain = mx.sym.Convolution
        amp.init(target_dtype=dtype)
        if dtype == "bfloat16":
            keep_first_convolution(plain)


def keep_first_convolution(plain):
    """Let a convolution of images compute in float32, by an operator that does not cast.

    For three channels oneDNN has no good code in bfloat16, and what it writes makes the BatchNorm
    after it ten times as slow: a sixth of ResNet-18's step.
    """
    cast = mx.sym.Convolution

    def convolution(data, *args, **kwargs):
        is_first = data.list_arguments() == [data.name]  # there is no weight before it
        return (plain if is_first else cast)(data, *args, **kwargs)

    mx.sym.Convolution = mx.sym.op.Convolution = convolution


def faster_dtype(args, net, workers, saved=None, cpuinfo="/proc/cpuinfo"):
    """Return what ``--dtype auto`` stands for, and why; the same on all workers.

    Parameters
    ----------
    args, net, workers, saved, cpuinfo
        As of :func:`choose_dtype`.

    Returns
    -------
    dtype : {'float32', 'bfloat16'}
    reason : str
    """
    if isinstance(net, SymbolNetwork):
        return "float32", f"{net.title} is read as it is, without casts"
    ctx = next(iter(net.collect_params().values())).list_ctx()
    is_slow = ctx[0].device_type == "gpu" or not PROCESSOR_HAS & processor_flags(cpuinfo)
    slow_workers = np.flatnonzero(workers.gather([is_slow]))
    if slow_workers.size:
        reason = f"no fast bfloat16 on worker {slow_workers[0]}'s devices"
        changed = "; the checkpoint was trained in bfloat16" if saved == "bfloat16" else ""
        return "float32", reason + changed
    if saved in TYPES:
        return saved, "as in the checkpoint"
    began = time.monotonic()
    rounds = measure_steps(net, ctx, args.batch_size, args.image_shape, workers)
    dtype, fastest = decide(rounds)
    found = ", ".join(f"{dtype} {args.batch_size / s:.0f}" for dtype, s in zip(TYPES, fastest))
    return dtype, f"{found} samples/s a worker, measured in {time.monotonic() - began:.1f} s"


def decide(rounds):
    """Take rounds until one type is clearly the faster; a doubtful difference keeps float32.

    Parameters
    ----------
    rounds : iterator of array_like, shape (2,)
        Seconds of a step in each of ``TYPES``.

    Returns
    -------
    dtype : {'float32', 'bfloat16'}
    fastest : ndarray, shape (2,)
        Seconds of the fastest step in each of ``TYPES``.
    """
    fastest, lead = np.full(len(TYPES), np.inf), 0
    for seconds in itertools.islice(rounds, MOST_ROUNDS):
        fastest = np.minimum(fastest, seconds)
        lead += 1 if _is_clear(seconds) else -1
        if abs(lead) == LEAD:
            break
    return TYPES[lead == LEAD and _is_clear(fastest)], fastest


def _is_clear(seconds):
    return bool(seconds[0] > CLEARLY * seconds[1])


def measure_steps(net, ctx, batch_size, image_shape, workers):
    """Measure the types in turn; yield the seconds of a step of the slowest worker in each.

    All workers take their steps at the same time, as in a training, where all wait for the slowest.

    Parameters
    ----------
    net : mxnet.gluon.HybridBlock
        It stays as it is: a copy is measured.
    ctx : list of mxnet.Context
    batch_size : int
        Of one worker.
    image_shape : tuple of int
    workers : workers.Workers
    """
    random = np.random.RandomState(0)
    images = random.randint(256, size=(batch_size, *image_shape), dtype=np.uint8)
    data = gluon.utils.split_and_load(images, ctx, even_split=False)
    data = [part.astype("float32") / 255 for part in data]
    labels = [mx.nd.zeros(len(part), ctx=part.context) for part in data]
    if starts_with_batchnorm(net):  # as network_by_name has it
        for part in data:
            part.attach_grad()
    while True:
        seconds = []
        for dtype in TYPES:
            seconds.append(step_time(copy_in(dtype, net, ctx), data, labels, workers))
            give_back_memory()
        yield workers.gather(seconds).max(axis=0)


def copy_in(dtype, net, ctx):
    """Copy a network into one that computes in float32 or bfloat16; others do not change."""
    images = mx.sym.var("data", dtype="float32")
    # A NameManager of its own, so that the names of later layers stay the same.
    with mx.name.NameManager(), mxnet_restored():
        use_mixed_precision(dtype)
        scores = mx.sym.amp_cast(net(images), dtype="float32")  # the loss is in float32
        copy = gluon.SymbolBlock(scores, images)
    own = net.collect_params()
    for name, param in copy.collect_params().items():
        param.grad_req = own[name].grad_req
    values = {name: param.list_data()[0] for name, param in own.items()}
    copy.collect_params().load_dict(values, ctx=ctx)
    hybridize(copy, ctx)
    return copy


@contextlib.contextmanager
def mxnet_restored():
    """Undo ``amp.init`` at the end of a with block; MXNet has no function for it.

    ``amp.init`` replaces MXNet's operators. (``amp.convert_symbol`` does not, but fails for
    networks with dropout.)
    """
    modules = [m for n, m in sys.modules.items() if n.startswith(("mxnet.symbol", "mxnet.ndarray"))]
    before = [(vars(module), dict(vars(module))) for module in modules]
    try:
        yield
    finally:
        for functions, originals in before:
            functions.update(originals)
        amp.amp._amp_initialized = False


def give_back_memory():
    """Free the memory of the measured copy, before the next copy or the training needs it."""
    gc.collect()  # its blocks refer to each other
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim:
        trim(0)


def step_time(net, data, labels, workers):
    """Return the seconds of the fastest step, forward and backward; the first does not count."""
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    loss.hybridize(static_alloc=True, static_shape=True)
    _forward_backward(net, loss, data, labels)
    workers.barrier()
    times = []
    while sum(times) < TIMED_S:
        began = time.monotonic()
        _forward_backward(net, loss, data, labels)
        mx.nd.waitall()
        times.append(time.monotonic() - began)
    return min(times)


def _forward_backward(net, loss, data, labels):
    with autograd.record():
        losses = [loss(net(x), y) for x, y in zip(data, labels)]
    autograd.backward(losses)

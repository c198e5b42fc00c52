"""Workers use the operations of the package over a store; argv: its type. The oracles are exact.

Then they do so again under compression, or with the servers' optimizer of dist_async.
"""

import copy
import sys
import time
from functools import reduce

import gluon_dist
from gluon_dist import all_gather, all_reduce, barrier, broadcast, broadcast_parameters
from gluon_dist.common.errors import UsageError
from gluon_dist.common.failure import exit_with
from gluon_dist.exchange.server_optimizer import CountingOptimizer
from gluon_dist.workers import collectives, group
from gluon_dist.workers import workers as workers_module

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

RANK = COUNT = None
WHOLE = ("int8", "int32", "int64", "uint8", "uint64")
FLOATS = ("float16", "float32", "float64", ">f4")
SHAPES = [(), (0,), (3,), (2, 3)]


def main():
    global RANK, COUNT
    store, workers = gluon_dist.store(sys.argv[1]), group.workers()
    RANK, COUNT = gluon_dist.rank(), gluon_dist.size()
    operate(300_000)
    if workers.is_async:
        store.set_optimizer(CountingOptimizer(mx.optimizer.SGD()))
        workers.barrier()
        workers.collectives.note_server_optimizer()
        operate(300_000)
        keys()
        workers.collectives.barrier = lambda: leave_late(workers)
        talk(workers)
    elif store.type.startswith("dist"):
        if COUNT > 1:
            keys()
        params = {"type": "2bit", "threshold": "0.001667"}  # no power of two
        store.set_gradient_compression(params)
        workers.barrier()  # the servers know
        workers.collectives.note_compression(params["threshold"])
        operate(20_000)
    barrier()
    print("operations done", flush=True)


def operate(long):
    """`long` numbers are cut into several messages."""
    talk(group.workers())
    numbers()
    arrays([*SHAPES, (long,)])
    half_precision()
    mistakes()
    parameters()
    metrics()


def leave_late(workers):
    """Leave the barrier one after the other: the last pulls when the first has pushed again."""
    collectives.Collectives.barrier(workers.collectives)
    time.sleep(0.03 * RANK)


def talk(workers):
    """The program's own operations: sums, any bits, and settings that must agree."""
    for number in range(5):  # the same keys again and again: a sum must never mix two rounds
        got = workers.all_reduce([RANK + number, 2**40 + 1, 0.1])
        wanted = [sum(range(COUNT)) + COUNT * number, COUNT * (2**40 + 1), sum([0.1] * COUNT)]
        assert got.tolist() == wanted  # float32 would differ at 1e-8
        assert workers.all_reduce(np.float32([number == RANK, 1])).tolist() == [
            number < COUNT,
            COUNT,
        ]
    row = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 2.0**53 + 1, RANK])
    rows = [np.append(row[:-1], rank) for rank in range(COUNT)]
    assert workers.all_gather(row).tobytes() == np.array(rows).tobytes()
    workers.agree({"data": "the same", "--lr": "0.1"})
    workers_module.OTHERS_WAIT_S = 0
    if COUNT > 1:
        usual = ", ".join(str(rank) for rank in range(COUNT) if rank != 1)
        text = f"the workers differ in --lr: 0.1 on worker {usual}, 0.2 on worker 1; start all"
        told(UsageError, text, workers.agree, {"--lr": "0.2" if RANK == 1 else "0.1"})


def numbers():
    ranks = range(COUNT)
    check(all_reduce(RANK), sum(ranks))
    check(all_reduce(2**62 + RANK), COUNT * 2**62 + sum(ranks))  # above 64 bits
    check(all_reduce(RANK, "mean"), sum(ranks) / COUNT)
    check(all_reduce(RANK == 0), 1)
    check(all_reduce(RANK == 0, op="max"), True)
    check(all_reduce(-0.5 * RANK, "min"), -0.5 * (COUNT - 1))
    check(all_reduce(float("nan") if RANK == 0 else 1.0, "max"), float("nan"))
    check(all_reduce(np.float32(RANK + 0.25)), np.float32(sum(ranks) + 0.25 * COUNT))
    for numbers in ([0.5 * r for r in ranks], list(ranks), [r == 0 for r in ranks]):
        got = all_gather(numbers[RANK])
        assert got.tolist() == numbers and got.dtype == np.array(numbers).dtype
    for root in {0, COUNT - 1}:
        for kind in (bool, int, float, np.float32):
            check(broadcast(kind(RANK + 1), root), kind(root + 1))


def arrays(shapes):
    for dtype in (*WHOLE, *FLOATS, "bool"):
        for shape in shapes if dtype in ("float32", "int64") else SHAPES[:3]:
            for close in (np.array, as_ndarray):
                if close is np.array or (shape not in ((), (0,)) and dtype in MXNETS):
                    array(dtype, shape, close)


MXNETS = ("int8", "int32", "int64", "uint8", "float16", "float32", "float64")


def as_ndarray(values):
    return mx.nd.array(values, mx.cpu(1), values.dtype)


def array(dtype, shape, close):
    rows = [draw(rank, dtype, shape) for rank in range(COUNT)]
    mine = close(rows[RANK])
    before = open_(mine).copy()
    is_float = np.dtype(dtype).kind == "f"
    check(all_reduce(mine, "max"), close(np.array(np.max(rows, axis=0), dtype)))
    if dtype != "bool":
        check(all_reduce(mine), close(total(rows).astype(dtype)))
    mean = np.array(total(rows) / COUNT).astype(dtype if is_float else np.float64)
    if is_float or np.size(rows) == 0 or np.abs(np.array(rows, float)).max() < 2**50:
        check(all_reduce(mine, "mean"), close(mean))
    check(all_gather(mine), close(np.array(rows, dtype)))
    for root in {0, COUNT - 1}:
        check(broadcast(mine, root), close(rows[root]))
    assert open_(mine).tobytes() == before.tobytes()


def draw(rank, dtype, shape):
    """Values of a worker, whose sum over three workers the type can hold; some are special."""
    random, kind = np.random.RandomState(rank), np.dtype(dtype)
    if kind.kind == "f":
        values = np.array(random.randn(*shape) * 10.0 ** random.randint(-3, 3, shape))
        values.reshape(-1)[:1] = [-0.0, 1e4, 1.0][rank]
        return values.astype(dtype)
    if kind.kind == "b":
        return np.array(random.randint(0, 2, shape), dtype)
    most = np.iinfo(kind).max // 3
    return np.array(random.randint(0, most, shape, kind) if shape else most, kind)


def total(rows):
    """Add up in the order of the ranks: in float64, or exactly."""
    kind = rows[0].dtype.kind
    result = rows[0].astype(np.float64 if kind == "f" else object)
    for row in rows[1:]:
        result = result + (row.astype(np.float64) if kind == "f" else row.astype(object))
    return np.array(result)


def half_precision():
    half = mx.nd.array([1.5, -2.25 * (RANK + 1)]).astype(np.dtype([("bfloat16", np.uint16)]))
    got = all_reduce(half)
    assert got.dtype == half.dtype
    ranks = [1.5 * COUNT, -2.25 * sum(range(1, COUNT + 1))]
    assert got.astype("float32").asnumpy().tolist() == ranks
    check(all_reduce(mx.np.array([RANK, 2.0])), mx.np.array([sum(range(COUNT)), 2.0 * COUNT]))


def mistakes():
    """Only worker 0 makes the first ones: nothing may be sent, or other workers would wait."""
    if RANK == 0:
        told(ValueError, "op 'median': choose from sum, mean, max, min", all_reduce, 1, "median")
        told(ValueError, f"root {COUNT}: the workers are 0 to", broadcast, 1, COUNT)
        told(ValueError, "does not fit in 64 bits", all_gather, 2**63)
        told(TypeError, "object cannot travel", all_reduce, np.array([None]))
        told(TypeError, "cannot travel: pass bool, whole", all_gather, np.array(["a"]))
        told(TypeError, "complex64 cannot travel", all_reduce, np.zeros(2, np.complex64))
        told(TypeError, "a list cannot travel: pass a number", broadcast, [1])
        told(TypeError, "bool do not add up", all_reduce, np.array([True]))
        sparse = mx.nd.zeros((2, 2)).tostype("row_sparse")
        told(TypeError, "row_sparse cannot travel", all_reduce, sparse)
        told(TypeError, "pass net.collect_params(), not a Dense", broadcast_parameters, nn.Dense(1))
    if COUNT == 1:
        return
    is_last, last = RANK == COUNT - 1, COUNT - 1
    x = np.zeros(2) if is_last else np.zeros(3, np.float32)
    text = f"worker 0 passes float32 (3,), worker {last} float64 (2,)"
    for call in (all_reduce, all_gather, broadcast):
        told(ValueError, f"{call.__name__}: {text}", call, x)
    op = "max" if is_last else "sum"
    told(ValueError, f"0 passes op='sum', worker {last} op='max'", all_reduce, 1, op)
    told(ValueError, f"0 passes int, worker {last} float", all_reduce, 1.0 if is_last else 1)
    told(ValueError, f"0 passes root=0, worker {last} root=1", broadcast, 1, int(is_last))
    kinds = mx.nd.zeros(1) if is_last else np.zeros(1, np.float32)
    told(ValueError, f"float32 (1,), worker {last} NDArray float32 (1,)", all_gather, kinds)
    calls = barrier if is_last else lambda: all_reduce(1)
    told(ValueError, f"worker 0 calls all_reduce, worker {last} barrier: all must", calls)
    net = nn.BatchNorm(in_channels=2) if is_last else nn.Dense(1, in_units=1)
    net.initialize()
    text = f"average_statistics: worker 0 passes nothing more, worker {last} statistics (2,)"
    told(ValueError, text, gluon_dist.average_statistics, net)
    most = np.array([100], np.int8)
    told(OverflowError, "a sum does not fit in int8", all_reduce, most)


def parameters():
    devices = [mx.cpu(number + 1) for number in range(RANK + 1)]  # unequal numbers of them
    root = COUNT - 1
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(32, 3, in_channels=32), nn.BatchNorm(in_channels=32))
        net.add(nn.Dense(3, in_units=32))
    net.initialize(ctx=devices)
    for _, param in sorted(net.collect_params().items()):
        for device, data in zip(devices, param.list_data()):
            data[:] = values_of(param, RANK, device.device_id)
    for device in devices:  # oneDNN now keeps the weights in a layout of its own
        net(mx.nd.ones((2, 32, 3, 3), device)).wait_to_read()
    broadcast_parameters(net.collect_params(), root)
    assert "net_batchnorm0_running_var" in net.collect_params()
    for _, param in sorted(net.collect_params().items()):
        for data in param.list_data():
            assert data.asnumpy().tobytes() == values_of(param, root, 1).tobytes(), param.name
    net(mx.nd.ones((2, 32, 3, 3), devices[0])).wait_to_read()

    statistics = [p for n, p in sorted(net.collect_params().items()) if "running_" in n]
    for param in statistics:
        for device, data in zip(devices, param.list_data()):
            data[:] = values_of(param, RANK, device.device_id)
    gluon_dist.average_statistics(net)
    for param in statistics:  # in the order of the ranks, to the last bit
        rows = [
            reduce(np.add, [values_of(param, rank, device + 1) for device in range(rank + 1)])
            for rank in range(COUNT)
        ]
        mean = reduce(np.add, rows) / np.float32(sum(range(1, COUNT + 1)))
        for data in param.list_data():
            assert data.asnumpy().tobytes() == mean.tobytes(), param.name

    with mx.name.NameManager():
        layers = [nn.BatchNorm(in_channels=1) for _ in range(11 + RANK)][RANK + 8 :]
    for number, layer in enumerate(layers):  # batchnorm8, 9 and 10; on worker 1: 9, 10 and 11
        layer.initialize()
        layer.running_mean.data()[:] = number
    net = nn.Sequential()
    net.add(*layers)
    gluon_dist.average_statistics(net)
    assert [layer.running_mean.data().asscalar() for layer in layers] == [0, 1, 2]

    arrays = {"b": mx.nd.array([RANK + 1]), "a": mx.nd.array([[2**60 + RANK]], dtype="int64")}
    broadcast_parameters(arrays)
    assert [arrays[name].asnumpy().tolist() for name in "ab"] == [[[2**60]], [1]]
    broadcast_parameters({})

    deferred = nn.Dense(2, prefix="late_")
    deferred.initialize()
    text = "late_weight has no values yet: call net.initialize(), and tell its layer the size"
    told(ValueError, text, broadcast_parameters, deferred.collect_params())
    if COUNT > 1:
        other = nn.Dense(2, prefix="late_", in_units=2 + RANK)
        other.initialize()
        text = "worker 0 passes late_weight float32 (2, 2), worker 1 late_weight float32 (2, 3)"
        told(ValueError, text, broadcast_parameters, other.collect_params())


def values_of(param, rank, device):
    random = np.random.RandomState([rank, device, len(param.name)])
    return random.rand(*param.shape).astype(np.float32)


def metrics():
    """A metric of all workers is that of one process that sees all batches."""
    synced, alone = gluon_dist.sync_metric(all_metrics()), all_metrics()
    values = synced.get()[1]
    assert len(values) == 10 and np.isnan(values).all()
    for number in range(2):
        for rank in range(max(COUNT - 1, 1)):  # the last of several workers sees none
            batch = batch_of(10 * number + rank)
            alone.update(*batch)
            if rank == RANK:
                synced.update(*batch)
        for _ in range(2):  # what a worker has counted itself is not changed
            same_results(synced, alone)
    for metric in (synced, alone):
        metric.reset_local()
        metric.update(*batch_of(RANK if metric is synced else 0))
    for rank in range(1, COUNT):
        alone.update(*batch_of(rank))
    same_results(copy.deepcopy(synced), alone)
    if COUNT > 1:
        text = "worker 0 calls get of the metric accuracy, worker 1 all_reduce"
        first = synced.metrics[0]
        told(ValueError, text, first.get if RANK == 0 else lambda: all_reduce(np.zeros(4)))


def same_results(synced, alone):
    for got, wanted in (
        (synced.get(), alone.get()),
        (synced.get_global(), alone.get_global()),
        (zip(*synced.get_name_value()), zip(*alone.get_name_value())),
    ):
        (names, values), (wanted_names, wanted_values) = map(list, got), map(list, wanted)
        assert list(names) == list(wanted_names)
        np.testing.assert_allclose(values, wanted_values, rtol=1e-12)


def all_metrics():
    names = ("acc", "perplexity", "rmse", "ce", "loss", "f1", "pearsonr")
    options = {"perplexity": {"ignore_label": None}}
    metrics = [mx.metric.create(name, **options.get(name, {})) for name in names]
    metrics.append(mx.metric.CustomMetric(lambda label, _: (label.sum(), label.size), "own"))
    metrics.append(WithoutGlobal("local"))
    composite = mx.metric.CompositeEvalMetric(metrics)
    composite.add(mx.metric.TopKAccuracy(2))
    composite.metrics[2].update = updated_with_first_column(composite.metrics[2])
    composite.metrics[6].update = updated_with_first_column(composite.metrics[6])
    return composite


class WithoutGlobal(mx.metric.EvalMetric):
    """A sum; its ``get_global()`` calls ``get()``."""

    def update(self, labels, _):
        self.sum_metric += float(labels[0].sum().asscalar())
        self.num_inst += labels[0].size

    def get(self):
        return self.name, self.sum_metric if self.num_inst else float("nan")


def updated_with_first_column(metric):
    update = type(metric).update
    return lambda labels, outputs: update(metric, labels, [o[:, 0] for o in outputs])


def batch_of(seed):
    random = np.random.RandomState(seed)
    outputs = random.dirichlet([1, 1], 4 + seed % 3)
    return [mx.nd.array(random.randint(0, 2, len(outputs)))], [mx.nd.array(outputs)]


def keys():
    """However many calls and lengths, the keys of a store are few."""
    first = group.workers().collectives._next_key
    most, collectives.LAST_KEY = collectives.LAST_KEY, first + 4 * 17 * COUNT
    for number in range(300):
        check(broadcast(number + RANK, number % COUNT), number + number % COUNT)
        check(all_reduce(np.full(number, RANK)), np.full(number, sum(range(COUNT))))
        barrier()
    collectives.LAST_KEY = most


def open_(x):
    return x.asnumpy() if isinstance(x, mx.nd.NDArray) else np.asarray(x)


def check(got, wanted):
    """They must be equal in kind, type, shape, device and bits."""
    assert type(got) is type(wanted), (type(got), type(wanted))
    if isinstance(got, mx.nd.NDArray):
        assert got.context == wanted.context or type(got) is mx.np.ndarray
    got, wanted = open_(got), open_(wanted)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), (got, wanted)
    assert got.tobytes() == wanted.tobytes(), (got, wanted)


def told(kind, text, call, *arguments):
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"{text}: not told")


exit_with(main, "operate.py")

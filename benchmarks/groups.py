"""What is compared with what: the groups of programs that `bench.py` measures."""

import shutil
import statistics
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from between_hosts import SLOW, link, many_hosts, wire
from comparison import there_and_back
from contenders import (
    LAUNCH,
    ONE_THREAD,
    PEERS,
    RING,
    has_horovod,
    ours,
    run,
    torch,
    with_peak_memory,
)
from measured import ROOT
from report import Row
from rungs import RUNGS

# The default of a malloc setting: gluon_dist leaves malloc alone when it finds one.
KEEPS_NOTHING = {"GLIBC_TUNABLES": "glibc.malloc.arena_test=8"}
FLAGS = {*Path("/proc/cpuinfo").read_text().split()}
# MXNet refuses bfloat16 on other processors.
DTYPES = ("float32", "bfloat16")[: 1 + ("avx512bw" in FLAGS)]
FAST_DTYPE = "bfloat16" if FLAGS & {"avx512_bf16", "amx_bf16"} else "float32"
PEAK = [sys.executable, "benchmarks/peak.py"]
# Settings of the fast network among which images held out of the training set choose.
SETTINGS = tuple(["--pad-size", p, "--lr", lr] for p in ("1", "2") for lr in ("0.375", "0.5"))
CHOOSING_EPOCHS = "13"
# One epoch of them reaches 0.69 on those images (three seeds), and is to reach what is published.
QUICK_EXAMPLES = 26_000


@dataclass(frozen=True)
class Group:
    """Programs that take turns, and the rows that come of them.

    Attributes
    ----------
    prepare : callable
        Called with the options; returns the turns for :func:`comparison.take_turns`, and a function
        that yields a row each of what was found (and may add to it). ``options.stack`` closes what
        it has opened.
    round_s : float
        Seconds that a round takes on two cores, for the plan.
    rounds : tuple of int
        At least, and at most: as long as the interval of a row holds its aim.
    needs_data : bool
        Whether it needs real images.
    by_name : bool
        Whether it is measured only if it is named.
    """

    prepare: callable
    round_s: float
    rounds: tuple = (2, 3)
    needs_data: bool = False
    by_name: bool = False


def median(found, name, figure="speed"):
    return statistics.median(figures[figure] for figures in found[name])


def fastest(found, names):
    """Return the fastest of those programs that ran as often as any."""
    most = max(len(found[name]) for name in names)
    return max((n for n in names if len(found[n]) == most), key=partial(median, found))


def share_of_peak(found, network, program, dtype):
    """Add the floating-point operations of a network and of a large product; return their names.

    Backward takes twice the multiply-adds of forward, and each is two operations.
    """
    flop = 6 * found["peak"][0][f"multiply_adds_{network}"]
    used, most = f"used, {dtype}", f"most, {dtype}"
    found[used] = [{"flops": flop * run["speed"]} for run in found[program]]
    found[most] = [{"flops": 1e9 * run[f"gflops_{dtype}"]} for run in found["peak"]]
    return used, most, "flops"


def one_process(options):
    """ResNet-18, batch 256, all cores: the best ways of both; ours twice, as a control."""
    size = {"steps": 12, "lines": 4} if options.quick else {"steps": 24, "lines": 6}
    mine = {f"ours {d}": partial(run, ours(**size, options=["--dtype", d])) for d in DTYPES}
    theirs = {}
    has_compiler = shutil.which("g++") is not None and not options.quick
    if not has_compiler:
        print("left out: torch.compile, which needs g++, and time", flush=True)
    for dtype in DTYPES:
        for layout in ([], ["--channels-last"]):
            for how in ([], ["--compile"])[: 1 + has_compiler]:
                words = ["--dtype", dtype, *layout, *how]
                name = " ".join(["torch", dtype, *layout, *how]).replace("--", "")
                theirs[name] = partial(run, torch(**size, options=words))
    rest = {"ours again": mine["ours float32"], "peak": partial(run, PEAK)}

    def turns(found):
        runs = {**mine, **theirs, **rest}
        for dtype in DTYPES if found else ():  # far behind after the first round is far behind
            ways = [name for name in theirs if dtype in name]
            best = median(found, fastest(found, ways))
            slow = {name for name in ways if median(found, name) < 0.9 * best}
            runs = {name: act for name, act in runs.items() if name not in slow}
        return there_and_back(runs)

    def rows(found):
        a, b = fastest(found, mine), fastest(found, theirs)
        yield Row("ResNet-18, one process: best of ours / best of PyTorch", a, b, "speed", 1.15,
                  edge=1.05, note=f"{a} / {b}")  # fmt: skip
        yield Row("the same program twice (control)", "ours float32", "ours again", "speed")
        for dtype in DTYPES:
            best = fastest(found, [name for name in theirs if dtype in name])
            title = f"ResNet-18, one process, {dtype}: ours / best of PyTorch"
            yield Row(title, f"ours {dtype}", best, "speed", note=best)
            figures = share_of_peak(found, "resnet18_v1", f"ours {dtype}", dtype)
            yield Row(f"ResNet-18, one process, {dtype}: share of the processor's peak", *figures)

    return turns, rows


def fast_one_process(options):
    """The fast network in one process, in both kinds of numbers."""
    size = {"steps": 20, "lines": 5}
    runs = {"peak": partial(run, PEAK)}
    for dtype in DTYPES:
        runs[f"ours {dtype}"] = partial(run, ours("fast", **size, options=["--dtype", dtype]))
        layout = ["--channels-last", "--dtype", dtype]
        runs[f"torch {dtype}"] = partial(run, torch("fast", **size, options=layout))

    def rows(found):
        for dtype, aim in zip(DTYPES, (None, 1.0)):
            title = f"fast network, one process, {dtype}"
            mine = f"ours {dtype}"
            yield Row(f"{title}: ours / PyTorch", mine, f"torch {dtype}", "speed", aim)
            figures = share_of_peak(found, "fast", mine, dtype)
            yield Row(f"{title}: share of the processor's peak", *figures, 0.6)
        if "bfloat16" in DTYPES:
            title = "fast network, one process, ours: bfloat16 / float32"
            yield Row(title, "ours bfloat16", "ours float32", "speed")

    return runs, rows


def two_workers(batch_size, aims, network="resnet18_v1", steps=20, lines=5):
    """Two workers beside two independent processes, and beside DDP."""

    def group(options):
        size = {"network": network, "batch_size": batch_size, "steps": steps, "lines": lines}
        alone = ours(**size, options=["--kv-store", "local"])
        send = ["--allreduce", "servers"]
        runs = {
            "ours": partial(run, ours(**size, workers=2)),
            "sent": partial(run, ours(**size, workers=2, options=send)),
            "independent": partial(run, alone, alone, env=ONE_THREAD),
        }
        title = f"{network}, batch {batch_size} a worker"
        if network == "resnet18_v1":
            runs["ddp"] = partial(
                run,
                torch(
                    batch_size=batch_size,
                    steps=steps,
                    lines=lines,
                    workers=2,
                    options=["--channels-last"],
                ),
            )
            if has_horovod():
                runs["ring"] = partial(run, ours(**size, workers=2, options=RING))

        def rows(found):
            others = {"2 processes": "independent", "DDP": "ddp", "Horovod's ring": "ring"}
            for (name, other), both in zip(others.items(), aims):
                for (ending, kind), aim in zip(
                    (("", "ours"), (", through the servers", "sent")), both
                ):
                    ours_is = "2 workers" if other == "independent" else "ours"
                    what = f"{title}: {ours_is}{ending} / {name}"
                    if other in found:
                        yield Row(what, kind, other, "speed", aim)
            if "ring" in found:
                yield Row(f"{title}: ours by Horovod / DDP", "ring", "ddp", "speed")

        return runs, rows

    group.__doc__ = two_workers.__doc__
    return group


def loader(options):
    """Images a second of the loaders, in one thread."""
    program = [sys.executable, "benchmarks/loading.py"]
    runs = {n: partial(run, [*program, n], env=ONE_THREAD) for n in ("ours", "published")}

    def rows(found):
        found["100,000"] = [{"speed": 100_000}] * len(found["ours"])
        title = "images a second of the loader, one thread"
        yield Row(f"{title} / 100,000", "ours", "100,000", "speed", 1.0)
        yield Row(f"{title}: ours / published", "ours", "published", "speed")

    return runs, rows


def reading(options):
    """Training with reading and augmentation, beside one repeated batch."""
    size = {"steps": 24, "lines": 6}
    runs = {
        "read": partial(run, ours("fast", **size, options=["--benchmark", "0"])),
        "repeated": partial(run, ours("fast", **size)),
    }
    title = "fast network, one process: training on read images / on one repeated batch"
    return runs, lambda found: [Row(title, "read", "repeated", "speed", 0.98)]


def start(options):
    """From the command line to the first trained batch, two workers of ResNet-18."""
    small = {"batch_size": 128, "steps": 2, "workers": 2, "lines": 1}
    runs = {"ours": partial(run, ours(**small)), "ddp": partial(run, torch(**small))}
    title = "time to the first batch, 2 workers: ours / torchrun"
    return runs, lambda found: [
        Row(title, "ours", "ddp", "first_batch_s", 0.6, is_upper_limit=True)
    ]


def memory(options):
    """Memory over epochs of reading, training and testing the fast network."""
    runs = {}
    for epochs in ("10", "100"):
        words = ["--benchmark", "0", "--num-epochs", epochs, "--test-period", "10"]
        program = ours("fast", batch_size=64, steps=3, options=words)
        runs[f"{epochs} epochs"] = partial(run, with_peak_memory(program))
    title = "peak memory of training: 100 epochs / 10"
    # Flat: the peaks of equal runs differ by some per cent.
    return runs, lambda found: [
        Row(title, "100 epochs", "10 epochs", "peak_mb", 1.05, is_upper_limit=True)
    ]


def published(options):
    """The published example's five epochs of CIFAR-10 beside ours: time, accuracy and memory.

    A round is a seed. The settings of ours are chosen on a tenth of the training images, which the
    other nine tenths teach. The last program gets as many epochs as it has time for.
    """
    held_out = ROOT / "build" / "bench" / "held-out"
    job = [*LAUNCH, "-n", "2", "-s", "2", sys.executable]
    program = [*job, "cifar10_dist/cifar10_dist.py"]
    part = ["--num-examples", str(QUICK_EXAMPLES)]

    def train(folder, *words):
        records = ["--data-train", f"{folder}/cifar10_train.rec"]
        return [*program, *records, "--data-val", f"{folder}/cifar10_val.rec", *words]

    def fast(settings, num_epochs, *words, folder=options.data):
        always = ["--network", "fast", "--dtype", FAST_DTYPE, "--batch-size", "128"]
        ends = ["--num-epochs", num_epochs, "--test-period", num_epochs]
        return partial(run, train(folder, *always, *settings, *ends, *words))

    def turns(found):
        seed = ["--seed", str(len(found.get("published", ())))]
        if not found:
            folder = str(held_out)
            run([sys.executable, "benchmarks/held_out.py", options.data, folder])
            for settings in SETTINGS:
                yield " ".join(settings), fast(settings, CHOOSING_EPOCHS, folder=folder)
        chosen = max(SETTINGS, key=lambda words: found[" ".join(words)][0]["accuracy"])
        yield "published", partial(run, [*job, str(PEERS / "published.py"), options.data])
        memory = ["--num-epochs", "1", "--num-examples", "10000", "--benchmark", "1"]
        yield "default", partial(run, train(options.data, *memory))
        yield "quick", fast(chosen, "1", *part, *seed)
        theirs, quick = found["published"][-1], found["quick"][-1]
        # Both test once, after the last epoch.
        training_s = quick["last_epoch_s"] - quick["started_s"]
        test_s = training_s - QUICK_EXAMPLES / (2 * quick["speed"])
        left_s = theirs["last_epoch_s"] - quick["started_s"] - test_s
        left_s *= 0.9  # machines that others use, too, change their speed meanwhile
        num_epochs = max(1, int(left_s / (50_000 / (2 * quick["speed"]))))
        yield "thorough", fast(chosen, str(num_epochs), *seed)

    def rows(found):
        triples = list(zip(found["published"], found["quick"], found["thorough"]))
        # Where the quick one has not come so far, the thorough one has.
        found["reached"] = [q if q["accuracy"] >= p["accuracy"] else t for p, q, t in triples]
        found["accuracy"] = [{"accuracy": 1.0}] * len(triples)
        title = "peak memory of a worker: ours / published"
        yield Row(title, "default", "published", "peak_mb", 0.7, is_upper_limit=True)
        title = "time to the accuracy of five published epochs: published / ours"
        yield Row(title, "published", "reached", "last_epoch_s", 16)
        title = "time that the next row took: ours / five published epochs"
        yield Row(title, "thorough", "published", "last_epoch_s", 1.0, is_upper_limit=True)
        in_time = all(t["last_epoch_s"] <= p["last_epoch_s"] for p, _, t in triples)
        title = "accuracy of ours in that time"
        yield Row(title, "thorough", "accuracy", "accuracy", 0.90 if in_time else None)
        title = "accuracy of the published example after its five epochs"
        yield Row(title, "published", "accuracy", "accuracy")

    return turns, rows


def ladder(options):
    """From the published way of training to ours, one change at a time."""
    program = [sys.executable, "benchmarks/ladder.py", "--rungs"]
    alone, together = {}, {}
    for rung in range(6):
        words = [*program, str(rung), "--steps", "20", "--disp-batches", "5"]
        alone[f"alone {rung}"] = partial(run, words, env=KEEPS_NOTHING)
    for rung in range(5, len(RUNGS) + 1):
        words = [*program, str(rung), "--batch-size", "32", "--steps", "40", "--disp-batches", "10"]
        env = {} if rung >= 8 else KEEPS_NOTHING
        together[f"2 workers {rung}"] = partial(
            run, [*LAUNCH, "-n", "2", "-s", "2", *words], env=env
        )

    def turns(found):
        return [*there_and_back(alone), *there_and_back(together)]

    def rows(found):
        for runs, where in ((alone, "one process"), (together, "2 workers, batch 32 each")):
            names = list(runs)
            for before, name in zip(names, names[1:]):
                rung = RUNGS[int(name.split()[-1]) - 1]
                yield Row(f"ladder, {where}: {rung}", name, before, "speed")

    return turns, rows


AIMS_128 = ((0.96, 0.90), (1.6, 1.4), (1.15, None))
AIMS_32 = ((0.90, 0.72), (1.6, 1.2), (1.05, None))
GROUPS = {
    "one-process": Group(one_process, 240),
    "fast": Group(fast_one_process, 86, (2, 2)),
    "workers-128": Group(two_workers(128, AIMS_128), 126),
    "workers-32": Group(two_workers(32, AIMS_32, steps=50, lines=10), 142),
    "workers-fast": Group(two_workers(256, ((0.97, 0.97),), "fast", steps=12, lines=3), 66),
    "start": Group(start, 23, (2, 4)),
    "loader": Group(loader, 8),
    "reading": Group(reading, 42),
    "memory": Group(memory, 70, (1, 1)),
    "published": Group(published, 1600, (3, 3), needs_data=True),
    "ladder": Group(ladder, 213, (1, 1)),
    "bytes-2": Group(wire(2), 42, (1, 1)),
    "bytes-3": Group(wire(3), 60, (1, 1)),
    "1gbit": Group(link("1gbit", 128, aim=1.2, limit_aim=1.05, float16_aim=1.2), 165),
    "100mbit": Group(link("100mbit", 128, aim=1.03, limit_aim=1.05, **SLOW), 305, (1, 1)),
    "1gbit-32": Group(link("1gbit", 32), 152, (1, 1), by_name=True),
    "100mbit-32": Group(link("100mbit", 32, **SLOW), 295, (1, 1), by_name=True),
    "hosts-8": Group(many_hosts, 210, (1, 1)),
}

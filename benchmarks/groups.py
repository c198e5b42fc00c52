"""What is compared with what: the groups of programs that `bench.py` measures."""

import ast
import importlib.util
import statistics
import sys
from functools import partial

from comparison import take_turns
from contenders import LAUNCH, PEERS, Failed, ours, run, torch
from hosts import bytes_sent, cluster, ours_on_hosts, torch_on_hosts
from report import Row

RUNGS = next(  # ladder.py imports MXNet, which this program leaves to others
    ast.literal_eval(node.value)
    for node in ast.parse((PEERS.parent / "ladder.py").read_text()).body
    if isinstance(node, ast.Assign) and node.targets[0].id == "RUNGS"
)
# The default of a malloc setting: mxnet_setup leaves malloc alone when it finds one.
KEEPS_NOTHING = {"GLIBC_TUNABLES": "glibc.malloc.arena_test=8"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
RING = ["--kv-store", "horovod"]
HAS_HOROVOD = importlib.util.find_spec("horovod") is not None


def one_process(options):
    """ResNet-18, batch 256, all cores; ours twice, which shows how far equal programs differ."""
    size = {"steps": 12, "lines": 4} if options.quick else {}
    runs = {
        "ours": partial(run, ours(**size)),
        "torch": partial(run, torch(**size)),
        "torch channels-last": partial(run, torch(**size, options=["--channels-last"])),
        "ours again": partial(run, ours(**size)),
    }
    found = take_turns(runs, options.rounds)
    best = max(
        ("torch", "torch channels-last"),
        key=lambda name: statistics.median(figures["speed"] for figures in found[name]),
    )
    yield found, Row("ResNet-18, one process: ours / PyTorch", "ours", best, "speed", 1.05)
    yield found, Row("the same program twice (control)", "ours", "ours again", "speed", None)


def fast_one_process(options):
    """The fast network in one process, in both kinds of numbers."""
    runs = {}
    for dtype in ("float32", "bfloat16"):
        runs[f"ours {dtype}"] = partial(run, ours("fast", options=["--dtype", dtype]))
        layout = ["--channels-last", "--dtype", dtype]
        runs[f"torch {dtype}"] = partial(run, torch("fast", options=layout))
    found = take_turns(runs, options.rounds)
    for dtype, target in (("float32", None), ("bfloat16", 1.0)):
        title = f"fast network, one process, {dtype}: ours / PyTorch"
        yield found, Row(title, f"ours {dtype}", f"torch {dtype}", "speed", target)
    title = "fast network, one process, ours: bfloat16 / float32"
    yield found, Row(title, "ours bfloat16", "ours float32", "speed", None)


def two_workers(batch_size, targets, network="resnet18_v1", steps=40, lines=10):
    """Two workers beside two independent processes, and beside DDP."""

    def measure(options):
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
                torch(batch_size=batch_size, steps=steps, workers=2, options=["--channels-last"]),
            )
            if has_horovod():
                runs["ring"] = partial(run, ours(**size, workers=2, options=RING))
        found = take_turns(runs, options.rounds)
        others = {"2 processes": "independent", "DDP": "ddp"}
        for (name, other), target in zip(others.items(), targets):
            for ending, kind in (("", "ours"), (", through the servers", "sent")):
                ours_is = "2 workers" if other == "independent" else "ours"
                what = f"{title}: {ours_is}{ending} / {name}"
                yield found, Row(what, kind, other, "speed", target)
        ways = {"DDP": "ddp", "servers": "sent", "shared memory": "ours"}
        for name, other in ways.items() if "ring" in found else ():
            yield found, Row(f"{title}: ours by Horovod / {name}", "ring", other, "speed", None)

    measure.__doc__ = two_workers.__doc__
    return measure


def loader(options):
    """Images a second of the loaders, in one thread."""
    program = [sys.executable, "benchmarks/loading.py"]
    runs = {n: partial(run, [*program, n], env=ONE_THREAD) for n in ("ours", "published")}
    found = take_turns(runs, options.rounds)
    found["100,000"] = [{"speed": 100_000}] * len(found["ours"])
    title = "images a second of the loader, one thread"
    yield found, Row(f"{title} / 100,000", "ours", "100,000", "speed", 1.0)
    yield found, Row(f"{title}: ours / published", "ours", "published", "speed", None)


def reading(options):
    """Training with reading and augmentation, beside one repeated batch."""
    repeated = ours("fast", options=["--benchmark", "1"])
    read = ours("fast", options=["--benchmark", "0"])
    found = take_turns(
        {"read": partial(run, read), "repeated": partial(run, repeated)}, options.rounds
    )
    title = "fast network, one process: training on read images / on one repeated batch"
    yield found, Row(title, "read", "repeated", "speed", 0.98)


def start(options):
    """From the command line to the first trained batch, two workers of ResNet-18."""
    small = {"batch_size": 128, "steps": 2, "workers": 2, "lines": 1}
    runs = {"ours": partial(run, ours(**small)), "ddp": partial(run, torch(**small))}
    found = take_turns(runs, options.rounds)
    title = "time to the first batch, 2 workers: ours / torchrun"
    yield found, Row(title, "ours", "ddp", "first_batch_s", 1.0, less_is_better=True)


def published(options):
    """The published example's five epochs of CIFAR-10 beside ours: time, accuracy and memory.

    The programs run once a round, and the last gets as many epochs as it has time for.
    """
    if not options.data:
        print("left out: needs --data, the folder of CIFAR-10's RecordIO files", flush=True)
        return
    records = ["--data-train", f"{options.data}/cifar10_train.rec"]
    records += ["--data-val", f"{options.data}/cifar10_val.rec"]
    job = [*LAUNCH, "-n", "2", "-s", "2", sys.executable]
    train = [*job, "cifar10_dist/cifar10_dist.py", *records]
    # In so few epochs, smaller shifts of the images teach more.
    fast = [*train, "--network", "fast", "--dtype", "auto", "--batch-size", "128"]
    fast += ["--pad-size", "1", "--num-epochs"]
    part = ["--num-examples", "40000"]  # of an epoch: enough for the quick one
    found = {name: [] for name in ("published", "default", "quick", "thorough")}

    def measure(name, command):
        figures = run(command)
        found[name].append(figures)
        print(f"{name}: " + ", ".join(f"{k} {v:.4g}" for k, v in figures.items()), flush=True)
        return figures

    for _ in range(max(1, options.rounds // 2)):
        theirs = measure("published", [*job, str(PEERS / "published.py"), options.data])
        measure(
            "default", [*train, "--num-epochs", "1", "--num-examples", "10000", "--benchmark", "1"]
        )
        quick = measure("quick", [*fast, "1", *part])
        if quick["accuracy"] < theirs["accuracy"]:
            raise Failed(f"40,000 images reached {quick['accuracy']}, no {theirs['accuracy']}")
        # Both test once, after the last epoch.
        training_s = quick["last_epoch_s"] - quick["started_s"]
        test_s = training_s - 40_000 / (2 * quick["speed"])
        left_s = theirs["last_epoch_s"] - quick["started_s"] - test_s
        left_s *= 0.9  # machines that others use, too, change their speed meanwhile
        num_epochs = str(int(left_s / (50_000 / (2 * quick["speed"]))))
        measure("thorough", [*fast, num_epochs, "--test-period", num_epochs])
    found["accuracy"] = [{"accuracy": 1.0}] * len(found["thorough"])
    title = "peak memory of a worker: ours / published"
    yield found, Row(title, "default", "published", "peak_mb", 1.0, less_is_better=True)
    title = "time to the accuracy of five published epochs: published / ours"
    yield found, Row(title, "published", "quick", "last_epoch_s", 8)
    title = "time that the next row took: ours / five published epochs"
    yield found, Row(title, "thorough", "published", "last_epoch_s", 1.0, less_is_better=True)
    title = "accuracy of ours in that time"
    times = zip(found["thorough"], found["published"])
    in_time = all(ours["last_epoch_s"] <= theirs["last_epoch_s"] for ours, theirs in times)
    yield found, Row(title, "thorough", "accuracy", "accuracy", 0.88 if in_time else None)
    title = "accuracy of the published example after its five epochs"
    yield found, Row(title, "published", "accuracy", "accuracy", None)


def wire(hosts):
    """Bytes that all hosts send in a step, over 2 (W - 1) G: what a ring, too, would send."""

    def measure(options):
        with cluster(hosts):
            runs = {}
            for steps in (10, 50):
                program = ours(batch_size=16, steps=steps)
                program[program.index("--num-examples") + 1] = str(16 * steps * hosts)
                command = ours_on_hosts(program, hosts)

                def count(command=command):
                    before = bytes_sent()
                    figures = run(command)
                    return dict(figures, bytes=bytes_sent() - before)

                runs[f"{steps} steps"] = count
            found = take_turns(runs, 1)
        more, less = (found[f"{n} steps"] for n in (50, 10))
        ideal = 2 * (hosts - 1) * 4 * more[0]["parameters"]
        found["sent"] = [
            {"bytes_a_step": (m["bytes"] - s["bytes"]) / 40} for m, s in zip(more, less)
        ]
        found["2 (W - 1) G"] = [{"bytes_a_step": ideal}] * len(more)
        title = f"bytes sent in a step by {hosts} hosts / 2 (W - 1) G"
        yield found, Row(title, "sent", "2 (W - 1) G", "bytes_a_step", 1.08, less_is_better=True)

    measure.__doc__ = wire.__doc__
    return measure


def has_horovod():
    """Tell whether Horovod can be measured; say so if it cannot."""
    if not HAS_HOROVOD:
        print("left out: Horovod, which needs `make setup HOROVOD=1`", flush=True)
    return HAS_HOROVOD


def link(rate, batch_size=128, target=1.0):
    """Two hosts with cables of a rate: ours through servers and by Horovod, and DDP."""

    def measure(options):
        with cluster(2, rate) as addresses:
            size = {"batch_size": batch_size, "steps": 20, "lines": 5}
            program = ours(**size)
            program[program.index("--num-examples") + 1] = str(20 * batch_size * 2)
            other = torch(**size, options=["--channels-last"])
            runs = {
                "ours": partial(run, ours_on_hosts(program, 2)),
                "ddp": partial(run, torch_on_hosts(other, addresses)),
            }
            if has_horovod():
                runs["ring"] = partial(run, ours_on_hosts([*program, *RING], 2))
            found = take_turns(runs, max(1, options.rounds // 2))
        title = f"two hosts at {rate}, ResNet-18, batch {batch_size}"
        yield found, Row(f"{title}: ours / DDP", "ours", "ddp", "speed", target)
        for name, other in (("DDP", "ddp"), ("servers", "ours")) if "ring" in found else ():
            yield found, Row(f"{title}: ours by Horovod / {name}", "ring", other, "speed", None)

    measure.__doc__ = link.__doc__
    return measure


def ladder(options):
    """From the published way of training to ours, one change at a time."""
    program = [sys.executable, "benchmarks/ladder.py", "--rungs"]
    alone, together = {}, {}
    for rung in range(6):
        alone[f"alone {rung}"] = partial(run, [*program, str(rung)], env=KEEPS_NOTHING)
    for rung in range(5, len(RUNGS) + 1):
        words = [*program, str(rung), "--batch-size", "32", "--steps", "60", "--disp-batches", "20"]
        env = {} if rung >= 8 else KEEPS_NOTHING
        together[f"2 workers {rung}"] = partial(
            run, [*LAUNCH, "-n", "2", "-s", "2", *words], env=env
        )
    rounds = max(1, options.rounds // 2)
    found = {**take_turns(alone, rounds), **take_turns(together, rounds)}
    for runs, where in ((alone, "one process"), (together, "2 workers, batch 32 each")):
        names = list(runs)
        for before, name in zip(names, names[1:]):
            title = f"ladder, {where}: {RUNGS[int(name.split()[-1]) - 1]}"
            yield found, Row(title, name, before, "speed", None)


GROUPS = {
    "one-process": one_process,
    "fast": fast_one_process,
    "workers-128": two_workers(128, (0.96, 1.10)),
    "workers-32": two_workers(32, (0.72, 1.0), steps=100),
    "workers-fast": two_workers(256, (0.97,), "fast", steps=19, lines=4),
    "start": start,
    "loader": loader,
    "reading": reading,
    "published": published,
    "ladder": ladder,
    "bytes-2": wire(2),
    "bytes-3": wire(3),
    "1gbit": link("1gbit"),
    "100mbit": link("100mbit"),
    "1gbit-32": link("1gbit", 32, None),
    "100mbit-32": link("100mbit", 32, None),
}

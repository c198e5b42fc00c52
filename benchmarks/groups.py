"""What is compared with what on one machine: the groups of programs that `bench.py` measures."""

import shutil
import statistics
import sys
from functools import partial

from gluon_dist.common.processor import processor_flags

from comparison import Group, Row, compared, figures, there_and_back
from contenders import (
    HAS_HOROVOD,
    LAUNCH,
    ONE_THREAD,
    PEERS,
    RING,
    ROOT,
    ours,
    run,
    torch,
    with_peak_memory,
)
from rungs import RUNGS

# A setting of malloc: where one is set, gluon_dist sets none.
PLAIN_MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.arena_test=8"}
FLAGS = processor_flags()
# MXNet refuses bfloat16 on other processors.
DTYPES = ("float32", "bfloat16")[: 1 + ("avx512bw" in FLAGS)]
PEAK = partial(run, [sys.executable, "benchmarks/peak.py"])


def share_of_peak(title, found, network, dtype, in_page=False):
    """Return the row of a network's floating-point operations over those of a large product.

    Backward takes twice the multiply-adds of forward, and each is two operations.
    """
    flop = 6 * found["peak"][0][f"multiply_adds_{network}"]
    used = [flop * speed for speed in figures(found, f"ours {dtype}")]
    most = [1e9 * gflops for gflops in figures(found, "peak", f"gflops_{dtype}")]
    return Row(f"{title}, {dtype}: share of the processor's peak", used, most, in_page)


class OneProcess(Group):
    """ResNet-18, batch 256, all cores: the best ways of both; ours twice, as a control."""

    def setup(self, stack, is_quick=False, data=None):
        size = {"steps": 12, "lines": 4} if is_quick else {"steps": 24, "lines": 6}
        has_compiler = shutil.which("g++") is not None and not is_quick
        if not has_compiler:
            print("left out: torch.compile, which needs g++, and time", flush=True)
        self.programs = {
            f"ours {d}": partial(run, ours(**size, options=["--dtype", d])) for d in DTYPES
        }
        for dtype in DTYPES:
            for layout in ([], ["--channels-last"]):
                for how in ([], ["--compile"])[: 1 + has_compiler]:
                    name = " ".join(["torch", dtype, *layout, *how]).replace("--", "")
                    words = ["--dtype", dtype, *layout, *how]
                    self.programs[name] = partial(run, torch(**size, options=words))
        self.programs["ours again"] = self.programs["ours float32"]
        self.programs["peak"] = PEAK

    def turns(self, found):
        """Far behind after the first round is far behind."""
        programs = dict(self.programs)
        for dtype in DTYPES if found else ():
            best = self._speed(found, self._best(found, dtype))
            for name in self._ways(dtype):
                if self._speed(found, name) < 0.9 * best:
                    del programs[name]
        return there_and_back(programs)

    def rows(self, found):
        yield compared(
            "the same program twice (control)", found, "ours float32", "ours again", in_page=True
        )
        for dtype in DTYPES:
            best = self._best(found, dtype)
            title = f"ResNet-18, one process, {dtype}: ours / best of PyTorch"
            yield compared(title, found, f"ours {dtype}", best, in_page=True, note=best)
            yield share_of_peak("ResNet-18, one process", found, "resnet18_v1", dtype, True)

    def _ways(self, dtype):
        return [name for name in self.programs if name.startswith(f"torch {dtype}")]

    def _best(self, found, dtype):
        """Return the fastest of PyTorch's ways that ran as often as any."""
        ways = self._ways(dtype)
        most = max(len(found[name]) for name in ways)
        return max((n for n in ways if len(found[n]) == most), key=partial(self._speed, found))

    @staticmethod
    def _speed(found, name):
        return statistics.median(figures(found, name))


class FastOneProcess(Group):
    """The fast network in one process, in both kinds of numbers."""

    def setup(self, stack, is_quick=False, data=None):
        size = {"steps": 20, "lines": 5}
        self.programs = {"peak": PEAK}
        for dtype in DTYPES:
            words = ["--dtype", dtype]
            self.programs[f"ours {dtype}"] = partial(run, ours("fast", **size, options=words))
            command = torch("fast", **size, options=["--channels-last", *words])
            self.programs[f"torch {dtype}"] = partial(run, command)

    def rows(self, found):
        title = "fast network, one process"
        for dtype in DTYPES:
            mine, theirs = f"ours {dtype}", f"torch {dtype}"
            what = f"{title}, {dtype}: ours / PyTorch"
            yield compared(what, found, mine, theirs, in_page=dtype == DTYPES[-1])
            yield share_of_peak(title, found, "fast", dtype)
        if "bfloat16" in DTYPES:
            what = f"{title}, ours: bfloat16 / float32"
            yield compared(what, found, "ours bfloat16", "ours float32")


class TwoWorkers(Group):
    """Two workers beside two independent processes, PyTorch's DDP, and Horovod."""

    def __init__(self, round_s, batch_size, network="resnet18_v1", rounds=2, steps=20, lines=5):
        super().__init__(round_s, rounds)
        self._size = {"batch_size": batch_size, "steps": steps, "lines": lines}
        self._network = network
        self._title = f"{network}, batch {batch_size} a worker"
        self._is_first = batch_size == 128

    def setup(self, stack, is_quick=False, data=None):
        size = {"network": self._network, **self._size}
        alone = ours(**size, options=["--kv-store", "local"])
        through_servers = ["--allreduce", "servers"]
        self.programs = {
            "ours": partial(run, ours(**size, workers=2)),
            "sent": partial(run, ours(**size, workers=2, options=through_servers)),
            "independent": partial(run, alone, alone, env=ONE_THREAD),
        }
        if self._network == "resnet18_v1":
            ddp = torch(**self._size, workers=2, options=["--channels-last"])
            self.programs["ddp"] = partial(run, ddp)
            if HAS_HOROVOD:
                self.programs["ring"] = partial(run, ours(**size, workers=2, options=RING))

    def rows(self, found):
        for other, mine, name in (
            ("independent", "2 workers", "2 processes"),
            ("ddp", "ours", "DDP"),
            ("ring", "ours", "Horovod's ring"),
        ):
            if other in found:
                what = f"{self._title}: {mine}"
                is_main = self._is_first or other == "ddp"
                yield compared(f"{what} / {name}", found, "ours", other, in_page=is_main)
                what += ", through the servers"
                is_main = self._is_first and other != "ring"
                yield compared(f"{what} / {name}", found, "sent", other, in_page=is_main)
        if "ring" in found:
            yield compared(f"{self._title}: ours by Horovod / DDP", found, "ring", "ddp")


class Pair(Group):
    """Two programs, and one row."""

    def __init__(self, round_s, rounds, about, title, programs, figure="speed", in_page=True):
        super().__init__(round_s, rounds)
        self._about, self._row, self.programs = about, (title, figure, in_page), programs

    def setup(self, stack, is_quick=False, data=None):
        """The programs are ready."""

    def rows(self, found):
        title, figure, in_page = self._row
        yield compared(title, found, *self.programs, figure, in_page)

    def __str__(self):
        return self._about


class Published(Group):
    """The published example's five epochs of CIFAR-10 beside ours: time, accuracy and memory.

    A round is a seed. The settings of ours are chosen on a tenth of the training images, which the
    other nine tenths teach. The last program gets as many epochs as it has time for.
    """

    needs_data = True
    SETTINGS = tuple(["--pad-size", p, "--lr", lr] for p in ("1", "2") for lr in ("0.375", "0.5"))
    # One epoch of so many images reached 0.69 on those held out, more than is published.
    QUICK_EXAMPLES = 26_000
    JOB = (*LAUNCH, "-n", "2", "-s", "2", sys.executable)

    def setup(self, stack, is_quick=False, data=None):
        self._data, self._held_out = data, str(ROOT / "build" / "bench" / "held-out")
        run([sys.executable, "benchmarks/held_out.py", data, self._held_out])

    def turns(self, found):
        seed = ["--seed", str(len(found.get("published", ())))]
        for settings in self.SETTINGS if not found else ():
            yield " ".join(settings), self._fast(self._held_out, settings, 13)
        best = max(self.SETTINGS, key=lambda words: found[" ".join(words)][0]["accuracy"])
        yield "published", partial(run, [*self.JOB, str(PEERS / "published.py"), self._data])
        memory = ["--num-epochs", "1", "--num-examples", "10000", "--benchmark", "1"]
        yield "default", self._train(self._data, memory)
        part = ["--num-examples", str(self.QUICK_EXAMPLES)]
        yield "quick", self._fast(self._data, [*best, *part, *seed], 1)
        num_epochs = self._epochs_in_time(found["published"][-1], found["quick"][-1])
        yield "thorough", self._fast(self._data, [*best, *seed], num_epochs)

    def rows(self, found):
        title = "peak memory of a worker: ours / published"
        yield compared(title, found, "default", "published", "peak_mb", in_page=True)
        theirs = figures(found, "published", "last_epoch_s")
        # Where the quick one has not come so far, the thorough one has.
        ours_s = [
            (q if q["accuracy"] >= p["accuracy"] else t)["last_epoch_s"]
            for p, q, t in zip(found["published"], found["quick"], found["thorough"])
        ]
        title = "time to the accuracy of five published epochs: published / ours"
        yield Row(title, theirs, ours_s, in_page=True)
        title = "time that the next row took: ours / five published epochs"
        yield compared(title, found, "thorough", "published", "last_epoch_s")
        one = [1.0] * len(theirs)
        title = "accuracy of ours in that time"
        yield Row(title, figures(found, "thorough", "accuracy"), one)
        title = "accuracy of the published example after its five epochs"
        yield Row(title, figures(found, "published", "accuracy"), one)

    def _train(self, folder, words):
        records = ["--data-train", f"{folder}/cifar10_train.rec"]
        records += ["--data-val", f"{folder}/cifar10_val.rec"]
        return partial(run, [*self.JOB, "cifar10_dist/cifar10_dist.py", *records, *words])

    def _fast(self, folder, settings, num_epochs):
        dtype = "bfloat16" if FLAGS & {"avx512_bf16", "amx_bf16"} else "float32"
        words = ["--network", "fast", "--dtype", dtype, "--batch-size", "128", *settings]
        ends = ["--num-epochs", str(num_epochs), "--test-period", str(num_epochs)]
        return self._train(folder, [*words, *ends])

    def _epochs_in_time(self, theirs, quick):
        """Return the epochs of ours in the published time; both test once, after the last."""
        epoch_s = 50_000 / (2 * quick["speed"])
        training_s = quick["last_epoch_s"] - quick["started_s"]
        test_s = training_s - epoch_s * self.QUICK_EXAMPLES / 50_000
        left_s = theirs["last_epoch_s"] - quick["started_s"] - test_s
        # A shared machine changes its speed meanwhile.
        return max(1, int(0.9 * left_s / epoch_s))


class Ladder(Group):
    """From the published way of training to ours, one change at a time."""

    ALONE = range(6)  # rungs in one process
    TOGETHER = range(5, len(RUNGS) + 1)  # rungs of two workers

    def setup(self, stack, is_quick=False, data=None):
        program = [sys.executable, "benchmarks/ladder.py", "--rungs"]
        self.programs = {}
        for rung in self.ALONE:
            command = [*program, str(rung), "--steps", "20", "--disp-batches", "5"]
            self.programs[f"alone {rung}"] = partial(run, command, env=PLAIN_MALLOC)
        for rung in self.TOGETHER:
            words = ["--batch-size", "32", "--steps", "40", "--disp-batches", "10"]
            command = [*LAUNCH, "-n", "2", "-s", "2", *program, str(rung), *words]
            is_free = rung > [*RUNGS].index("malloc")
            env = {} if is_free else PLAIN_MALLOC
            self.programs[f"2 workers {rung}"] = partial(run, command, env=env)

    def rows(self, found):
        changes = [*RUNGS.values()]
        for name, where, rungs in (
            ("alone", "one process", self.ALONE),
            ("2 workers", "2 workers, batch 32 each", self.TOGETHER),
        ):
            for rung in rungs[1:]:
                title = f"ladder, {where}: {changes[rung - 1]}"
                yield compared(title, found, f"{name} {rung}", f"{name} {rung - 1}")


SMALL = {"batch_size": 128, "steps": 2, "workers": 2, "lines": 1}
LOADER = [sys.executable, "benchmarks/loading.py"]
FAST = {"network": "fast", "steps": 24, "lines": 6}


def epochs(count):
    """Return the program that trains and tests the fast network, and prints its peak memory."""
    words = ["--benchmark", "0", "--num-epochs", count, "--test-period", "10"]
    program = ours("fast", batch_size=64, steps=3, options=words)
    return partial(run, with_peak_memory(program))


GROUPS = {
    "one-process": OneProcess(190),
    "fast": FastOneProcess(50),
    "workers-128": TwoWorkers(70, 128, rounds=3),
    "workers-32": TwoWorkers(80, 32, steps=50, lines=10),
    "workers-fast": TwoWorkers(35, 256, "fast", rounds=3, steps=12, lines=3),
    "start": Pair(
        15,
        4,
        "From the command line to the first trained batch, two workers of ResNet-18.",
        "time to the first batch, 2 workers: ours / torchrun",
        {"ours": partial(run, ours(**SMALL)), "ddp": partial(run, torch(**SMALL))},
        "first_batch_s",
    ),
    "loader": Pair(
        8,
        2,
        "Images a second of the loaders, in one thread.",
        "images a second of the loader, one thread: ours / published",
        {name: partial(run, [*LOADER, name], env=ONE_THREAD) for name in ("ours", "published")},
    ),
    "reading": Pair(
        22,
        3,
        "Training with reading and augmentation, beside one repeated batch.",
        "fast network, one process: training on read images / on one repeated batch",
        {
            "read": partial(run, ours(**FAST, options=["--benchmark", "0"])),
            "repeated": partial(run, ours(**FAST)),
        },
    ),
    "memory": Pair(
        42,
        1,
        "Memory over epochs of reading, training and testing the fast network.",
        "peak memory of training: 100 epochs / 10",
        {"100 epochs": epochs("100"), "10 epochs": epochs("10")},
        "peak_mb",
        in_page=False,
    ),
    "published": Published(750, 3),
    "ladder": Ladder(110, 1),
}

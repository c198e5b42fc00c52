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
    ours,
    run,
    torch,
)
from rungs import RUNGS

# A setting of malloc's: gluon_dist sets no other when it finds one.
PLAIN_MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.arena_test=8"}
FLAGS = processor_flags()
# MXNet refuses bfloat16 on other processors.
DTYPES = ("float32", "bfloat16")[: 1 + ("avx512bw" in FLAGS)]


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

    def turns(self, found):
        """Leave out, after the first round, the ways of PyTorch that are 10 % behind its best."""
        programs = dict(self.programs)
        for dtype in DTYPES if found else ():
            best = self._speed(found, self._best(found, dtype))
            for name in self._ways(dtype):
                if self._speed(found, name) < 0.9 * best:
                    del programs[name]
        return there_and_back(programs)

    def rows(self, found):
        yield compared("the same program twice (control)", found, "ours float32", "ours again")
        for dtype in DTYPES:
            best = self._best(found, dtype)
            title = f"ResNet-18, one process, {dtype}: ours / best of PyTorch"
            yield compared(title, found, f"ours {dtype}", best, note=best)

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
        self.programs = {}
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
            yield compared(what, found, mine, theirs)
        if "bfloat16" in DTYPES:
            what = f"{title}, ours: bfloat16 / float32"
            yield compared(what, found, "ours bfloat16", "ours float32")


class TwoWorkers(Group):
    """Two workers beside two independent processes, PyTorch's DDP, and Horovod."""

    def __init__(self, round_s, batch_size, network="resnet18_v1", steps=20, lines=5):
        super().__init__(round_s)
        self._size = {"batch_size": batch_size, "steps": steps, "lines": lines}
        self._network = network
        self._title = f"{network}, batch {batch_size} a worker"

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
                yield compared(f"{what} / {name}", found, "ours", other)
                yield compared(f"{what}, through the servers / {name}", found, "sent", other)
        if "ring" in found:
            yield compared(f"{self._title}: ours by Horovod / DDP", found, "ring", "ddp")


class Pair(Group):
    """Two programs, and one row."""

    def __init__(self, round_s, about, title, programs, figure="speed"):
        super().__init__(round_s)
        self._about, self._title, self._figure = about, title, figure
        self.programs = programs

    def setup(self, stack, is_quick=False, data=None):
        """The programs are ready."""

    def rows(self, found):
        yield compared(self._title, found, *self.programs, self._figure)

    def __str__(self):
        return self._about


class Published(Group):
    """The published example's five epochs of CIFAR-10 beside ours: time, accuracy and memory.

    A round is a seed. The settings of ours were chosen on a tenth of the training images, which the
    other nine tenths taught; so many examples reached 0.69 there, more than is published.
    """

    needs_data = True
    JOB = (*LAUNCH, "-n", "2", "-s", "2", sys.executable)
    QUICK = ("--network", "fast", "--batch-size", "128", "--pad-size", "1", "--lr", "0.5")
    QUICK += ("--num-examples", "26000")
    SMALL = ("--num-examples", "10000", "--benchmark", "1")

    def setup(self, stack, is_quick=False, data=None):
        self._published = partial(run, [*self.JOB, str(PEERS / "published.py"), data])
        records = [f"--data-{k}={data}/cifar10_{k}.rec" for k in ("train", "val")]
        self._ours = [*self.JOB, "cifar10_dist/cifar10_dist.py", *records, "--num-epochs", "1"]

    def turns(self, found):
        seed = str(len(found.get("published", ())))
        dtype = "bfloat16" if FLAGS & {"avx512_bf16", "amx_bf16"} else "float32"
        quick = [*self._ours, *self.QUICK, "--dtype", dtype, "--seed", seed]
        yield "published", self._published
        yield "default", partial(run, [*self._ours, *self.SMALL])
        yield "quick", partial(run, quick)

    def rows(self, found):
        title = "peak memory of a worker: ours / published"
        yield compared(title, found, "default", "published", "peak_mb")
        pairs = zip(*(figures(found, name, "accuracy") for name in ("quick", "published")))
        if any(ours < theirs for ours, theirs in pairs):
            raise RuntimeError("the fast network did not reach the published accuracy")
        title = "time to the accuracy of five published epochs: published / ours"
        both = (figures(found, name, "last_epoch_s") for name in ("published", "quick"))
        yield Row(title, *both)
        title = "accuracy of the published example after its five epochs"
        theirs = figures(found, "published", "accuracy")
        yield Row(title, theirs, [1.0] * len(theirs))


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


TWO_STEPS = {"batch_size": 128, "steps": 2, "workers": 2, "lines": 1}
FAST_NETWORK = {"network": "fast", "steps": 24, "lines": 6}

GROUPS = {
    "one-process": OneProcess(190),
    "fast": FastOneProcess(50),
    "workers-128": TwoWorkers(70, 128),
    "workers-32": TwoWorkers(80, 32, steps=50, lines=10),
    "workers-fast": TwoWorkers(35, 256, "fast", steps=12, lines=3),
    "start": Pair(
        15,
        "From the command line to the first trained batch, two workers of ResNet-18.",
        "time to the first batch, 2 workers: ours / torchrun",
        {"ours": partial(run, ours(**TWO_STEPS)), "ddp": partial(run, torch(**TWO_STEPS))},
        "first_batch_s",
    ),
    "reading": Pair(
        22,
        "Training with reading and augmentation, beside one repeated batch.",
        "fast network, one process: training on read images / on one repeated batch",
        {
            "read": partial(run, ours(**FAST_NETWORK, options=["--benchmark", "0"])),
            "repeated": partial(run, ours(**FAST_NETWORK)),
        },
    ),
    "published": Published(275),
    "ladder": Ladder(110),
}

"""The groups of `bench.py` between simulated hosts: the bytes on the wire, and two hosts."""

from functools import partial

from comparison import Group, Row, compared, figures
from contenders import HAS_HOROVOD, ONE_THREAD, RING, cluster, ours, run, torch
from growth_model import bytes_a_second, servers_everywhere

FRAMES = 1448 / 1514  # of the bytes that a cable counts: the rest is headers


class Wire(Group):
    """Bytes that all hosts send in a step, over 2 (W - 1) G: what a ring, too, would send."""

    def __init__(self, round_s, workers):
        super().__init__(round_s, rounds=1)
        self._workers = workers

    def setup(self, stack, is_quick=False, data=None):
        hosts = stack.enter_context(cluster(self._workers))
        self.programs = {}
        for steps in (10, 50):
            program = ours(batch_size=16, steps=steps, hosts=self._workers)
            command = hosts.ours(program, self._workers)
            self.programs[f"{steps} steps"] = partial(self._count, hosts, command)

    def rows(self, found):
        more, less = (figures(found, f"{steps} steps", "bytes") for steps in (50, 10))
        sent = [(m - s) / 40 for m, s in zip(more, less)]
        size = 4 * figures(found, "50 steps", "parameters")[0]
        title = f"bytes sent in a step by {self._workers} hosts / 2 (W - 1) G"
        yield Row(title, sent, [2 * (self._workers - 1) * size] * len(sent))

    @staticmethod
    def _count(hosts, command):
        before = hosts.bytes_sent()
        found = run(command)
        return dict(found, bytes=hosts.bytes_sent() - before)


class Link(Group):
    """Two hosts with cables of a rate: ours and DDP, also in float16, Horovod, and the limit."""

    BATCH_SIZE = 128

    def __init__(self, round_s, rate, rounds=2, steps=20, lines=5):
        super().__init__(round_s, rounds)
        self._rate = rate
        self._size = {"batch_size": self.BATCH_SIZE, "steps": steps, "lines": lines}

    def setup(self, stack, is_quick=False, data=None):
        hosts = stack.enter_context(cluster(2, self._rate))
        program = ours(**self._size, hosts=2)
        ddp = torch(**self._size, options=["--channels-last"])
        alone = ours(**self._size, options=["--kv-store", "local"])
        self.programs = {
            "ours": partial(run, hosts.ours(program, 2)),
            "ddp": partial(run, hosts.torch(ddp)),
            "ours in float16": partial(run, hosts.ours([*program, "--gc-type", "fp16"], 2)),
            "ddp in float16": partial(run, hosts.torch([*ddp, "--fp16-hook"])),
            "independent": partial(run, alone, alone, env=ONE_THREAD),
        }
        if HAS_HOROVOD:
            self.programs["ring"] = partial(run, hosts.ours([*program, *RING], 2))

    def rows(self, found):
        title = f"two hosts at {self._rate}, ResNet-18, batch {self.BATCH_SIZE}"
        half, is_fast = "ours in float16", self._rate == "1gbit"
        yield compared(f"{title}: ours / DDP", found, "ours", "ddp", in_page=True)
        what = f"{title}, gradients sent in float16: ours / DDP"
        yield compared(what, found, half, "ddp in float16", in_page=is_fast)
        yield compared(f"{title}, ours: gradients in float16 / in float32", found, half, "ours")
        if "ring" in found:
            yield compared(f"{title}: ours by Horovod / DDP", found, "ring", "ddp")
            yield compared(f"{title}: ours by Horovod / servers", found, "ring", "ours")
        # No step is shorter than its computing, nor than its bytes with their headers.
        size = 4 * figures(found, "ours", "parameters")[0]
        sending_s = servers_everywhere(2, size, FRAMES * bytes_a_second(self._rate))
        steps, computing = (
            [self.BATCH_SIZE / speed for speed in figures(found, name)]
            for name in ("ours", "independent")
        )
        limits = [max(computing_s, sending_s) for computing_s in computing]
        yield Row(f"{title}: time of a step / the limit of computing and cable", steps, limits)


GROUPS = {
    "bytes-2": Wire(25, 2),
    "bytes-3": Wire(35, 3),
    "1gbit": Link(130, "1gbit"),
    # A step takes 4 s, in float16 2 s.
    "100mbit": Link(270, "100mbit", rounds=1, steps=6, lines=2),
}

"""The groups of `bench.py` between two simulated hosts."""

from functools import partial

from comparison import Group, Row, compared, figures
from contenders import HAS_HOROVOD, ONE_THREAD, RING, cluster, ours, run, torch
from growth_model import bytes_a_second, servers_everywhere

FRAMES = 1448 / 1514  # of the bytes that a cable counts: the rest is headers


class Link(Group):
    """Two hosts with cables of a rate: ours and DDP, also in float16, Horovod, and the limit."""

    BATCH_SIZE = 128

    def __init__(self, round_s, rate, steps=20, lines=5):
        super().__init__(round_s)
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
        half = "ours in float16"
        yield compared(f"{title}: ours / DDP", found, "ours", "ddp")
        what = f"{title}, gradients sent in float16: ours / DDP"
        yield compared(what, found, half, "ddp in float16")
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
    "1gbit": Link(130, "1gbit"),
    # A step takes 4 s, in float16 2 s.
    "100mbit": Link(270, "100mbit", steps=6, lines=2),
}

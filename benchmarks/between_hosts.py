"""The groups of `bench.py` between hosts: the bytes on the wire, two hosts, and many."""

from functools import partial

from contenders import ONE_THREAD, RING, has_horovod, ours, run, torch
from growth import run_job
from growth_model import Future, bytes_a_second, fit, in_turn, overlapped, servers_everywhere
from hosts import cluster
from report import Row
from step_rows import SAME

FRAMES = 1448 / 1514  # of the bytes that a cable counts: the rest is headers
SLOW = {"steps": 6, "lines": 2}  # a step takes 4 s, in float16 2 s


def wire(workers):
    """Bytes that all hosts send in a step, over 2 (W - 1) G: what a ring, too, would send."""

    def group(options):
        hosts = options.stack.enter_context(cluster(workers))

        def count(command):
            before = hosts.bytes_sent()
            figures = run(command)
            return dict(figures, bytes=hosts.bytes_sent() - before)

        runs = {
            f"{steps} steps": partial(
                count, hosts.ours(ours(batch_size=16, steps=steps, hosts=workers), workers)
            )
            for steps in (10, 50)
        }

        def rows(found):
            more, less = (found[f"{n} steps"] for n in (50, 10))
            found["sent"] = [{"size": (m["bytes"] - s["bytes"]) / 40} for m, s in zip(more, less)]
            ideal = 2 * (workers - 1) * 4 * more[0]["parameters"]
            found["2 (W - 1) G"] = [{"size": ideal}] * len(more)
            title = f"bytes sent in a step by {workers} hosts / 2 (W - 1) G"
            yield Row(title, "sent", "2 (W - 1) G", "size", 1.08, is_upper_limit=True)

        return runs, rows

    group.__doc__ = wire.__doc__
    return group


def link(rate, batch_size=128, aim=None, limit_aim=None, float16_aim=None, steps=20, lines=5):
    """Two hosts with cables of a rate: ours and DDP, also in float16, Horovod, and the limit."""

    def group(options):
        hosts = options.stack.enter_context(cluster(2, rate))
        size = {"batch_size": batch_size, "steps": steps, "lines": lines}
        program = ours(**size, hosts=2)
        alone = ours(**size, options=["--kv-store", "local"])
        ddp = torch(**size, options=["--channels-last"])
        runs = {
            "ours": partial(run, hosts.ours(program, 2)),
            "ddp": partial(run, hosts.torch(ddp)),
            "ours in float16": partial(run, hosts.ours([*program, "--gc-type", "fp16"], 2)),
            "ddp in float16": partial(run, hosts.torch([*ddp, "--fp16-hook"])),
            "independent": partial(run, alone, alone, env=ONE_THREAD),
        }
        if has_horovod():
            runs["ring"] = partial(run, hosts.ours([*program, *RING], 2))

        def rows(found):
            title = f"two hosts at {rate}, ResNet-18, batch {batch_size}"
            yield Row(f"{title}: ours / DDP", "ours", "ddp", "speed", aim)
            half = "ours in float16"
            what = f"{title}, gradients sent in float16: ours / DDP"
            yield Row(what, half, "ddp in float16", "speed", float16_aim)
            what = f"{title}, ours: gradients in float16 / in float32"
            yield Row(what, half, "ours", "speed")
            for name, other in (("DDP", "ddp"), ("servers", "ours")) if "ring" in found else ():
                yield Row(f"{title}: ours by Horovod / {name}", "ring", other, "speed")
            # No step is shorter than its computing, nor than its bytes with their headers.
            size = 4 * found["ours"][0]["parameters"]
            sending_s = servers_everywhere(2, size, FRAMES * bytes_a_second(rate))
            found["a step"] = [{"step_s": batch_size / run["speed"]} for run in found["ours"]]
            found["limit"] = [
                {"step_s": max(batch_size / run["speed"], sending_s)}
                for run in found["independent"]
            ]
            what = f"{title}: time of a step / the limit of computing and cable"
            yield Row(what, "a step", "limit", "step_s", limit_aim, is_upper_limit=True)

        return runs, rows

    group.__doc__ = link.__doc__
    return group


def many_hosts(options, workers=(1, 2, 4, 8)):
    """Workers that sleep instead of computing, on hosts of their own, beside the limit."""
    most, size = workers[-1], 4 * SAME.elements * SAME.buckets
    hosts = options.stack.enter_context(cluster(most, SAME.rate))
    runs = {f"{w} in turn": partial(run_job, hosts, w, w, 0, SAME) for w in workers}
    runs[f"{most} overlapped"] = partial(run_job, hosts, most, most, 1, SAME)
    exchange = servers_everywhere(most, size, bytes_a_second(SAME.rate))
    limits = {
        "in turn": in_turn(SAME.forward, SAME.backward, exchange),
        "overlapped": overlapped(SAME.forward, SAME.backward, exchange, SAME.buckets),
    }

    def rows(found):
        for way, limit in limits.items():
            found[f"limit {way}"] = [{"step_s": limit}] * len(found[f"{most} {way}"])
            title = f"{most} workers on simulated hosts at {SAME.rate}, {way}: step / limit"
            figures = f"{most} {way}", f"limit {way}", "step_s"
            yield Row(title, *figures, 1.08, is_upper_limit=True)
        together = zip(*(found[f"{w} in turn"] for w in workers))
        found["256 hosts"] = [{"share": extrapolated(workers, runs, size)} for runs in together]
        found["computing"] = [{"share": 1.0}] * len(found["256 hosts"])
        title = "256 hosts at 100 Gbit/s, extrapolated: time of computing / of a step"
        yield Row(title, "256 hosts", "computing", "share", 0.90)

    return runs, rows


def extrapolated(workers, runs, size):
    """Return the efficiency of 256 hosts, by the cost of bytes and messages that was measured."""
    exchanges = [run["step_s"] - SAME.forward - SAME.backward for run in runs]
    of_many = [run["of_many_s"] for run in runs]
    round_trip = runs[workers.index(2)]["number_s"]
    fitted = fit(workers, exchanges, of_many, round_trip, size, bytes_a_second(SAME.rate))
    return Future().efficiency(256, bytes_a_second("100gbit"), fitted)

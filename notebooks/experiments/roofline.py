"""What computing and exchanging take on real devices and links, by their data sheets.

The figures of devices are the makers' (dense, without boost by sparsity); those of links are their
nominal rate each way, and a usual latency between two programs.
"""

from typing import NamedTuple

from growth_model import bytes_of_host, overlapped, servers_everywhere

REACHED = 0.6  # of the peak in float32: assumed, not measured
BUCKETS = 5


class Device(NamedTuple):
    """A GPU: peaks in FLOP/s in float32 and float16, memory in bytes/s and bytes."""

    flops: float
    flops_16: float
    memory_rate: float
    memory: float


class Link(NamedTuple):
    """A cable: bytes/s each way, and the seconds of an empty message."""

    rate: float
    latency: float


class Network(NamedTuple):
    """Weights, and the floating-point operations of an example, forward and backward."""

    weights: float
    flop: float


DEVICES = {
    "T4": Device(8.1e12, 65e12, 320e9, 16e9),
    "V100": Device(15.7e12, 125e12, 900e9, 16e9),
    "RTX 3090": Device(35.6e12, 71e12, 936e9, 24e9),
    "A100": Device(19.5e12, 312e12, 1555e9, 40e9),
}
LINKS = {
    "1 Gbit/s, 1000 km": Link(125e6, 10e-3),
    "1 Gbit/s": Link(125e6, 100e-6),
    "10 Gbit/s": Link(1.25e9, 50e-6),
    "25 Gbit/s": Link(3.125e9, 40e-6),
    "100 Gbit/s": Link(12.5e9, 30e-6),
    "PCIe 3.0 x16": Link(15.75e9, 5e-6),
    "NVLink 2": Link(150e9, 5e-6),
}
NETWORKS = {
    "MobileNet": Network(4.2e6, 3.4e9),
    "ResNet-50": Network(25.6e6, 24.5e9),
    "BERT base": Network(110e6, 65e9),  # 128 words an example
    "VGG-16": Network(138e6, 93e9),
}

LARGE = {  # weights of networks
    "ResNet-50": 25.6e6,
    "VGG-16": 138e6,
    "BERT large": 340e6,
    "GPT-2 XL": 1.56e9,
    "of 7 billion": 7e9,
}


def computing_s(network, device, batch_size):
    """Return the seconds in which a device computes a batch, forward and backward, in float32."""
    return batch_size * network.flop / (REACHED * device.flops)


def exchange_s(network, link, workers):
    """Return the seconds of adding up a network's gradients, with a server on each host."""
    return servers_everywhere(workers, 4 * network.weights, link.rate, link.latency)


def efficiency(network, device, link, workers, batch_size):
    """Return the time of computing over that of a step that sends bucket by bucket."""
    computing = computing_s(network, device, batch_size)
    exchange = exchange_s(network, link, workers)
    return computing / overlapped(computing / 3, computing * 2 / 3, exchange, BUCKETS)


def links(workers):
    """Return a table, head and rows: what links ask of networks that so many workers train.

    *Half* is the size of an array whose bytes take as long as the latencies of its messages; under
    each network stand the milliseconds of its exchange.
    """
    head, rows = ["link", "MB/s", "latency, µs", "half, kB", *(f"{n}, ms" for n in NETWORKS)], []
    for name, link in LINKS.items():
        half = 2 * link.latency * link.rate / bytes_of_host(workers, 1)
        times = (1e3 * exchange_s(network, link, workers) for network in NETWORKS.values())
        facts = f"{link.rate / 1e6:.0f}", f"{1e6 * link.latency:.0f}", f"{half / 1e3:.0f}"
        rows.append([name, *facts, *(f"{ms:.1f}" for ms in times)])
    return head, rows


def training_bytes(weights, states=2):
    """Return the bytes of weights, gradients and optimizer states in float32.

    Parameters
    ----------
    weights : float
    states : int
        Numbers that the optimizer keeps for each weight: Adam 2, SGD with momentum 1.
    """
    return 4 * weights * (1 + 1 + states)


def memory():
    """Return a table, head and rows: what training needs without activations, and how many parts.

    Parts are equal, and each fits into a device.
    """
    sizes = {name: device.memory for name, device in DEVICES.items() if name != "T4"}
    head = ["network", "weights, GB", "with Adam, GB", *(f"devices: {name}" for name in sizes)]
    rows = []
    for name, weights in LARGE.items():
        need = training_bytes(weights)
        parts = (f"{-(-need // size):.0f}" for size in sizes.values())
        rows.append([name, f"{4 * weights / 1e9:.1f}", f"{need / 1e9:.1f}", *parts])
    return head, rows

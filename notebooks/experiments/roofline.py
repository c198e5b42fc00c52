"""What computing and exchanging take on real devices and links, by their data sheets.

The figures of devices are the makers' (dense, without boost by sparsity); those of links are their
nominal rate each way, and a usual latency between two programs.
"""

from typing import NamedTuple

from growth_model import bytes_of_host, overlapped, servers_everywhere

REACHED = 0.6  # of the peak in float32: what a good convolutional network gets
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


def least_batch(network, device, link, workers):
    """Return the batch of one worker whose computing takes as long as the exchange."""
    return exchange_s(network, link, workers) / computing_s(network, device, 1)


def table_of_devices():
    """Print the devices, and how many images/s of ResNet-50 they compute."""
    print("device      TFLOP/s in float32, float16   memory: GB/s, GB   ResNet-50, images/s")
    for name, device in DEVICES.items():
        speed = 1 / computing_s(NETWORKS["ResNet-50"], device, 1)
        flops = f"{device.flops / 1e12:18.1f} {device.flops_16 / 1e12:10.0f}"
        memory = f"{device.memory_rate / 1e9:14.0f} {device.memory / 1e9:5.0f}"
        print(f"{name:11}{flops}{memory}{speed:20.0f}")


def table_of_links(device, workers):
    """Print the links, and what they ask of networks that so many workers train.

    *Half* is the size of an array that is sent for as long as the messages' latency; the rest is
    the batch of one worker at which the exchange takes as long as computing.
    """
    head = f"{'link':17}{'MB/s':>8}{'us':>7}{'half, kB':>10}"
    print(head + "".join(f"{name:>11}" for name in NETWORKS))
    for name, link in LINKS.items():
        half = 2 * link.latency * link.rate / bytes_of_host(workers, 1)
        least = [least_batch(n, DEVICES[device], link, workers) for n in NETWORKS.values()]
        facts = f"{link.rate / 1e6:8.0f}{1e6 * link.latency:7.0f}{half / 1e3:10.1f}"
        print(f"{name:17}{facts}" + "".join(f"{value:11.1f}" for value in least))


def training_bytes(weights, states=2, activations=0, batch_size=0):
    """Return the bytes of training: weights, gradients and optimizer states in float32, and more.

    Parameters
    ----------
    weights : float
    states : int
        Numbers that the optimizer keeps for each weight: Adam 2, SGD with momentum 1.
    activations : float
        Bytes that forward keeps of one example until backward has used them.
    batch_size : int
        Of one device.
    """
    return 4 * weights * (1 + 1 + states) + activations * batch_size


def table_of_memory():
    """Print what training needs without activations, and the least number of equal parts."""
    print("weights, GB:    alone   with Adam   parts on devices of", end="")
    sizes = {name: device.memory for name, device in DEVICES.items() if name != "T4"}
    print("".join(f"{name:>10}" for name in sizes))
    for name, weights in LARGE.items():
        need = training_bytes(weights)
        parts = "".join(f"{-(-need // size):10.0f}" for size in sizes.values())
        print(f"{name:13}{4 * weights / 1e9:8.1f}{need / 1e9:12.1f}{'':22}{parts}")

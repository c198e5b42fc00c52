"""What a host knows about itself: its processors, its address, a free port.

Goes to every host together with `supervisor.py`: standard library only, Python 3.6 or later.
"""

import fcntl
import os
import random
import socket
import struct
import sys


def processors():
    """Return how many processors this process may use, by affinity and by control group."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:
        count = os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="utf-8") as file:
            quota, period = file.read().split()
        count = min(count, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no control group, or "max"
    return count


def machine():
    """Return what tells this machine from others, and from containers on it; None if nothing does.

    It is the same however the machine is called. The kernel draws a boot id each time it starts; a
    machine id (/etc/machine-id) is no help, as copies of a disk share it. Containers and network
    namespaces share the boot id, but not both the network and the numbers of processes. Other
    namespaces do not count: each login may get a mount namespace of its own.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            words = [file.read().strip()]
        return " ".join(words + [os.readlink(f"/proc/self/ns/{kind}") for kind in ("net", "pid")])
    except OSError:
        return None


def has_address(address):
    """Return whether an address is this host's own."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
            probe.bind((address, 0))
        return True
    except OSError:
        return False


def address_toward(other):
    """Return the IPv4 address of this host from which the kernel would send to another one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((other, 9))  # a datagram socket: nothing is sent
        return probe.getsockname()[0]


def address_of(interface):
    """Return the IPv4 address of an interface; OSError if it is not here, or has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return socket.inet_ntoa(fcntl.ioctl(probe.fileno(), 0x8915, request)[20:24])


def own_address(toward, interfaces):
    """Return the IPv4 address of the first interface that is here, or that the kernel would choose.

    `interfaces` are names with commas between them.
    """
    if not interfaces:
        return address_toward(toward)
    for name in interfaces.split(","):
        try:
            return address_of(name)
        except OSError as error:
            problem = error
    raise problem


def interfaces():
    """Return the IPv4 address of each interface that has one, by the interface's name."""
    found = {}
    for _, name in socket.if_nameindex():
        try:
            found[name] = address_of(name)
        except OSError:  # it has none
            pass
    return found


def interface_of(address):
    """Return the name of the interface that has an IPv4 address, or None."""
    return next((name for name, own in interfaces().items() if own == address), None)


def listen(address, wanted):
    """Listen at the port `wanted`, or at a free one; return that socket, and another or None.

    The second one keeps other launchers on this host off the port, as long as it is open.
    """
    for _ in range(100):
        # below the range from which the kernel serves outgoing connections
        port = wanted or random.randrange(15000, 32000)
        listener, claim = socket.socket(), None
        try:
            if sys.platform.startswith("linux"):
                claim = socket.socket(socket.AF_UNIX)  # an abstract name: no file, no trace
                claim.bind(f"\0mxnet-launch-port-{port}")
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(128)
            return listener, claim
        except OSError as error:
            listener.close()
            problem = error
            if wanted:
                break
    raise problem

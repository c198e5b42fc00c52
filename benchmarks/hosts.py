"""Several hosts on this machine, with cables of any rate, and what crosses them."""

import contextlib
import re
import subprocess
import sys

from contenders import PEERS_PYTHON, ROOT, Failed, num_servers

NAME = "bench"


@contextlib.contextmanager
def cluster(hosts, rate=None):
    """Start hosts (Linux, root), and stop them at the end.

    Yields
    ------
    dict
        name: address.
    """
    control("up", "--hosts", str(hosts), *(["--rate", rate] if rate else []))
    try:
        yield {line.split()[0]: line.split()[1] for line in control("status").splitlines()}
    finally:
        control("down")


def control(*words):
    """Call tools/cluster.py, and return what it prints."""
    command = [sys.executable, "tools/cluster.py", "--name", NAME, *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def bytes_sent():
    """Return the bytes that all hosts have sent so far."""
    return sum(map(int, re.findall(r"sent (\d+) bytes", control("status"))))


def ours_on_hosts(program, hosts):
    """Turn a command of `contenders.ours` into one for hosts: a worker and a server on each."""
    folder = ROOT / ".cluster" / NAME
    launch = [
        sys.executable, "tools/launch.py", "-n", str(hosts), "-s", str(num_servers(program, hosts)),
        "-H", str(folder / "hosts"), f"--ssh-option=-F{folder / 'ssh_config'}",
        "--env", "OMP_NUM_THREADS=1",
    ]  # fmt: skip
    return [*launch, "sh", "-c", f"cd {ROOT} && exec {' '.join(program)}"]


def torch_on_hosts(program, addresses):
    """Turn a command of :func:`contenders.torch` into one for each host, started over ssh."""
    config = ROOT / ".cluster" / NAME / "ssh_config"
    first = next(iter(addresses.values()))
    words = " ".join(program[1:])
    script = ""
    for rank, host in enumerate(addresses):
        start = (
            f"cd {ROOT} && OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 {PEERS_PYTHON} "
            f"-m torch.distributed.run --nnodes {len(addresses)} --node-rank {rank} "
            f"--nproc-per-node 1 --master-addr {first} --master-port 29400 {words} --threads 1"
        )
        script += f"ssh -F {config} {host} '{start}' & jobs=\"$jobs $!\"; "
    return ["sh", "-c", f"{script} for job in $jobs; do wait $job || exit 1; done"]

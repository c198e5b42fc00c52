"""Several hosts on this machine, with cables of any rate, and what crosses them."""

import contextlib
import re
import subprocess
import sys

from contenders import PEERS_PYTHON, ROOT, Failed, num_servers


@contextlib.contextmanager
def cluster(count, rate=None, name="bench"):
    """Start hosts (Linux, root), and stop them at the end.

    Yields
    ------
    Hosts
    """
    hosts = Hosts(name)
    hosts.control("down")  # of a measurement that was killed
    hosts.control("up", "--hosts", str(count), *(["--rate", rate] if rate else []))
    try:
        yield hosts
    finally:
        hosts.control("down")


class Hosts:
    """The hosts of tools/cluster.py that have a name in common."""

    def __init__(self, name):
        self._name, self._config = name, ROOT / ".cluster" / name / "ssh_config"

    def control(self, *words):
        """Call tools/cluster.py, and return what it prints."""
        command = [sys.executable, "tools/cluster.py", "--name", self._name, *words]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def bytes_sent(self):
        """Return the bytes that all hosts have sent so far."""
        return sum(map(int, re.findall(r"sent (\d+) bytes", self.control("status"))))

    def ours(self, program, workers, servers=None):
        """Turn a program into a job on the first hosts, a worker on each; as many servers."""
        servers = num_servers(program, workers) if servers is None else servers
        launch = [
            sys.executable, "tools/launch.py", "-n", str(workers), "-s", str(servers),
            "-H", "".join(f"d{i + 1}," for i in range(workers)), f"--ssh-option=-F{self._config}",
            "--env", "OMP_NUM_THREADS=1",
        ]  # fmt: skip
        return [*launch, "sh", "-c", f"cd {ROOT} && exec {' '.join(program)}"]

    def torch(self, program):
        """Turn a command of :func:`contenders.torch` into one for each host, over ssh."""
        hosts = [line.split()[:2] for line in self.control("status").splitlines()]
        words = " ".join(program[1:])
        script = ""
        for rank, (host, _) in enumerate(hosts):
            start = (
                f"cd {ROOT} && OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 {PEERS_PYTHON} "
                f"-m torch.distributed.run --nnodes {len(hosts)} --node-rank {rank} "
                f"--nproc-per-node 1 --master-addr {hosts[0][1]} --master-port 29400 {words} "
                "--threads 1"
            )
            script += f"ssh -F {self._config} {host} '{start}' & jobs=\"$jobs $!\"; "
        return ["sh", "-c", f"{script} for job in $jobs; do wait $job || exit 1; done"]

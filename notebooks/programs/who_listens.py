"""List the addresses and ports on which the processes of this job listen."""

import os

import gluon_dist  # before mxnet, from which no server returns
from gluon_dist.common.failure import exit_with

import mxnet as mx
import psutil


def processes_of_this_job():
    """Yield each process of this job on this host, and its name in the job."""
    yield psutil.Process(os.getppid()), "supervisor"
    for process in psutil.process_iter():
        try:
            variables = process.environ()
        except psutil.Error:  # another user's, or it has ended
            continue
        if variables.get("LAUNCH_JOB") == os.environ["LAUNCH_JOB"]:
            number = variables.get("LAUNCH_WORKER_ID", "")
            yield process, f"{variables['DMLC_ROLE']} {number}".strip()


def main():
    store = mx.kv.create("dist_sync")
    store._barrier()  # all processes of the job run now
    if os.environ["LAUNCH_LOCAL_RANK"] == "0":
        found = {}
        for process, name in processes_of_this_job():
            sockets = [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
            found.setdefault(name, []).extend(f"{c.laddr.ip} port {c.laddr.port}" for c in sockets)
        for name, addresses in sorted(found.items()):
            print(f"{name} listens on: {', '.join(addresses) or 'nothing'}", flush=True)
    store._barrier()


if __name__ == "__main__":
    exit_with(main, "who_listens.py")

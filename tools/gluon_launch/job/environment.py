"""The environment of each process of a job."""

from gluon_dist import contract

from gluon_launch.job.addresses import announced_address


def process_environment(job, process, root, port, address, processors, attempt, interface=None):
    """Return a process's environment variables: those of ps-lite, and a few of the launcher's.

    Without servers they are also Horovod's. The scheduler listens at `root` and `port`; `address`
    is the IPv4 address of the process's host, as the others reach it, `interface` the network
    interface of it; `attempt` says which try this is, from 1.
    """
    neighbours = job.neighbours(process.host)
    env = {"OMP_NUM_THREADS": str(threads(processors, len(neighbours)))}
    env.update(job.env.get(process.role, {}))
    env.update(
        {
            contract.ROLE: process.role,
            contract.ROOT_HOST: root,
            contract.ROOT_PORT: str(port),
            contract.NUM_WORKERS: str(job.count("worker")),
            contract.NUM_SERVERS: str(job.count("server")),
            "DMLC_NODE_HOST": address,
            "DMLC_JOB_CLUSTER": job.way.name,
            contract.JOB: job.id,
            contract.ATTEMPT: str(attempt),
            contract.MAX_RESTARTS: str(job.options.max_restarts),
            contract.GRACE: f"{job.options.grace:g}",
            contract.LOCAL_WORKERS: str(len(neighbours)),
        }
    )
    if process.role == "server" and job.options.ignore_server_errors:
        env[contract.IGNORE_ERRORS] = "1"
    if process.role == "scheduler":
        env["PS_VERBOSE"] = "2"  # tells which node got which rank: see registration.py
    else:
        env["DMLC_NODE_HOST"] = announced_address(address, process.rank)
        before = job.count("worker") if process.role == "server" else 0
        env["DMLC_TASK_ID"] = str(before + process.rank)
    if process.role == "worker":
        env[contract.RANK] = str(process.rank)
        env[contract.LOCAL_RANK] = str(neighbours.index(process))
        if job.backend == "horovod":
            env.update(horovod(job, process, neighbours, root, port, interface))
            env.setdefault("HOROVOD_GLOO_TIMEOUT_SECONDS", f"{gloo_timeout_s(job.options)}")
    env.setdefault("PYTHONFAULTHANDLER", "1")  # so that a stack can be had of one that hangs
    env.setdefault("PYTHONUNBUFFERED", "1")  # so that lines come when they are printed
    return env


def threads(processors, workers):
    """Return how many threads a process gets, on a host with so many workers."""
    return max(1, processors // max(1, workers))


def horovod(job, process, neighbours, root, port, interface):
    """Return the variables by which Horovod's workers know their places and find each other."""
    local_rank = neighbours.index(process)
    machines = dict.fromkeys(job.machine(p.host) for p in job.processes if p.role == "worker")
    across = [machine for machine in machines if len(job.neighbours(machine)) > local_rank]
    env = {
        "HOROVOD_RANK": process.rank,
        "HOROVOD_SIZE": job.count("worker"),
        "HOROVOD_LOCAL_RANK": local_rank,
        "HOROVOD_LOCAL_SIZE": len(neighbours),
        "HOROVOD_CROSS_RANK": across.index(job.machine(process.host)),
        "HOROVOD_CROSS_SIZE": len(across),
        "HOROVOD_HOSTNAME": job.machine(process.host),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": root,
        "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
    }
    if interface:
        env["HOROVOD_GLOO_IFACE"] = interface
    return {name: str(value) for name, value in env.items()}


def gloo_timeout_s(options):
    """Return how long a worker waits for others: longer than the launcher, which names them."""
    return int(options.start_timeout) + 60 if options.start_timeout else 2_000_000

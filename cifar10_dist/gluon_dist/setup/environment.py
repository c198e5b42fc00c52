"""What the launcher tells this process: ``DMLC_*`` and ``LAUNCH_*`` are read here.

``DMLC_*`` are ps-lite's own names, ``LAUNCH_*`` the launcher's; both stand in ``contract.py``.
Horovod's workers may also come from ``horovodrun`` (``HOROVOD_*``) or ``mpirun``. Without any of
these each function gives the answer for a single process. Imports no MXNet. (``startup/`` reads two
variables itself: it runs in every Python of a job, even in Python 2.7.)
"""

import contextlib
import os

from gluon_dist import contract

# By Horovod, Open MPI and MPICH.
SIZE = "HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"
RANK = "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"
LOCAL_SIZE = "HOROVOD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"
LOCAL_RANK = "HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"


def is_launched():
    """Return whether a launcher started this process."""
    return contract.ROOT_HOST in os.environ


def role():
    """Return ``worker``, ``server`` or ``scheduler``; None without a launcher."""
    return os.environ.get(contract.ROLE)


@contextlib.contextmanager
def in_role(role):
    """Give this process another role within a with block."""
    before = os.environ[contract.ROLE]
    os.environ[contract.ROLE] = role
    try:
        yield
    finally:
        os.environ[contract.ROLE] = before


def num_workers():
    """Return the number of workers of this job."""
    return _whole((contract.NUM_WORKERS,), 1)


def root_address():
    """Return host and port at which the scheduler listens."""
    return os.environ[contract.ROOT_HOST], int(os.environ[contract.ROOT_PORT])


def num_ring_workers():
    """Return the number of workers that ``horovodrun`` or ``mpirun`` has started, 1 if neither."""
    return 1 if is_launched() else _whole(SIZE, 1)


def uses_p3():
    """Return whether the job uses P3, MXNet's transport that sends slices by priority."""
    return os.environ.get(contract.TRANSPORT) == "p3"


def num_servers():
    """Return the number of servers of this job."""
    return _whole((contract.NUM_SERVERS,), 1)


def shows_progress():
    """Return whether the launcher draws the bars of all workers on its terminal."""
    return contract.PROGRESS in os.environ


def is_first_worker():
    """Return whether this is worker 0; it needs no kvstore."""
    return _whole((contract.RANK, *RANK), 0) == 0


def local_workers():
    """Return the number of workers on this host, 1 where there are servers only."""
    return _whole((contract.LOCAL_WORKERS, *LOCAL_SIZE), 1) or 1


def local_rank():
    """Return this worker's number among those of its host, from 0."""
    return _whole((contract.LOCAL_RANK, *LOCAL_RANK), 0)


def job_id():
    """Return the id of this job, the same after a restart; empty without a launcher."""
    return os.environ.get(contract.JOB, "")


def is_restarted():
    """Return whether this is a restart of the job by the launcher."""
    return _whole((contract.ATTEMPT,), 1) > 1


def max_restarts():
    """Return how often the launcher may restart this job."""
    return _whole((contract.MAX_RESTARTS,), 0)


def ignores_server_errors():
    """Return whether a server continues after an update that failed."""
    return contract.IGNORE_ERRORS in os.environ


def worker_file():
    """Return the path of the file in which the worker notes its process number, or None."""
    return os.environ.get(contract.PREPARED)


def grace_s():
    """Return the seconds that workers have to save after a request to stop."""
    return float(os.environ.get(contract.GRACE) or contract.SAVE_GRACE_S)


def _whole(names, default):
    """Return the first of these variables that is set."""
    return int(next((os.environ[name] for name in names if os.environ.get(name)), default))

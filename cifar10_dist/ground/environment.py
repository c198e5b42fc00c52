"""What the launcher tells this process: all reading of ``DMLC_*`` and ``LAUNCH_*`` is here.

``DMLC_*`` are ps-lite's own names, ``LAUNCH_*`` those of ``tools/launch.py``. Horovod's workers may
also come from ``horovodrun`` (``HOROVOD_*``) or ``mpirun``. Without any of these each function
gives the answer for a single process. Imported before mxnet.
"""

import os

# By Horovod, Open MPI and MPICH.
SIZE = "HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"
RANK = "HOROVOD_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"
LOCAL_SIZE = "HOROVOD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"
LOCAL_RANK = "HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"


def is_launched():
    """Tell whether a launcher started this process."""
    return "DMLC_PS_ROOT_URI" in os.environ


def num_ring_workers():
    """Return the number of workers that ``horovodrun`` or ``mpirun`` has started, 1 if neither."""
    return 1 if is_launched() else _whole(SIZE, 1)


def uses_p3():
    """Tell whether the launcher chose P3, MXNet's transport that sends slices by priority."""
    return os.environ.get("DMLC_PS_VAN_TYPE") == "p3"


def num_servers():
    """Return the number of servers of this job."""
    return _whole(("DMLC_NUM_SERVER",), 1)


def is_first_worker():
    """Tell whether this is worker 0, before there is a kvstore to ask."""
    return _whole(("LAUNCH_WORKER_ID", *RANK), 0) == 0


def local_workers():
    """Return the number of workers on this host, 1 where there are servers only."""
    return _whole(("LAUNCH_LOCAL_WORKERS", *LOCAL_SIZE), 1) or 1


def local_rank():
    """Return this worker's number among those of its host, from 0."""
    return _whole(("LAUNCH_LOCAL_RANK", *LOCAL_RANK), 0)


def job_id():
    """Return what tells this job from others, also after a restart; empty without a launcher."""
    return os.environ.get("LAUNCH_JOB", "")


def is_restarted():
    """Tell whether the launcher has started this job again."""
    return _whole(("LAUNCH_ATTEMPT",), 1) > 1


def max_restarts():
    """Return how often the launcher would start this job again."""
    return _whole(("LAUNCH_MAX_RESTARTS",), 0)


def grace_s(default):
    """Return the seconds that workers have to save after a request to stop."""
    return float(os.environ.get("LAUNCH_GRACE") or default)


def _whole(names, default):
    """Return the first of these variables that is set."""
    return int(next((os.environ[name] for name in names if os.environ.get(name)), default))

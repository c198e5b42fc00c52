"""What the launcher tells this process: all reading of ``DMLC_*`` and ``LAUNCH_*`` is here.

``DMLC_*`` are ps-lite's own names, ``LAUNCH_*`` those of ``tools/launch.py``. Without a launcher
each function gives the answer for a single process. Imported before mxnet.
"""

import os


def is_launched():
    """Tell whether a launcher started this process."""
    return "DMLC_PS_ROOT_URI" in os.environ


def uses_p3():
    """Tell whether the launcher chose P3, MXNet's transport that sends slices by priority."""
    return os.environ.get("DMLC_PS_VAN_TYPE") == "p3"


def num_servers():
    """Return the number of servers of this job."""
    return _whole("DMLC_NUM_SERVER", 1)


def is_first_worker():
    """Tell whether this is worker 0, before there is a kvstore to ask."""
    return os.environ.get("LAUNCH_WORKER_ID", "0") == "0"


def local_workers():
    """Return the number of workers on this host, 1 where there are servers only."""
    return _whole("LAUNCH_LOCAL_WORKERS", 1) or 1


def local_rank():
    """Return this worker's number among those of its host, from 0."""
    return _whole("LAUNCH_LOCAL_RANK", 0)


def job_id():
    """Return what tells this job from others, also after a restart; empty without a launcher."""
    return os.environ.get("LAUNCH_JOB", "")


def is_restarted():
    """Tell whether the launcher has started this job again."""
    return _whole("LAUNCH_ATTEMPT", 1) > 1


def max_restarts():
    """Return how often the launcher would start this job again."""
    return _whole("LAUNCH_MAX_RESTARTS", 0)


def grace_s(default):
    """Return the seconds that workers have to save after a request to stop."""
    return float(os.environ.get("LAUNCH_GRACE") or default)


def _whole(name, default):
    return int(os.environ.get(name) or default)

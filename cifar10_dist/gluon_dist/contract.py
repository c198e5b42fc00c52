"""What the launcher and this package both know, and nothing else that they share.

Names of environment variables, exit statuses, and what the files of a checkpoint are called. It
imports nothing, so that the launcher can read it with any Python.
"""

VERSION = "1.0.0"  # of the package and of the launcher

# ps-lite's own variables, which the launcher sets for every process.
ROLE = "DMLC_ROLE"  # worker, server or scheduler
NUM_WORKERS = "DMLC_NUM_WORKER"
NUM_SERVERS = "DMLC_NUM_SERVER"
ROOT_HOST = "DMLC_PS_ROOT_URI"  # of the scheduler
ROOT_PORT = "DMLC_PS_ROOT_PORT"
TRANSPORT = "DMLC_PS_VAN_TYPE"  # p3: slices by priority

# The launcher's.
JOB = "LAUNCH_JOB"  # an id, the same in all tries
ATTEMPT = "LAUNCH_ATTEMPT"  # which try this is, from 1
MAX_RESTARTS = "LAUNCH_MAX_RESTARTS"
GRACE = "LAUNCH_GRACE"  # seconds that workers have to save
LOCAL_WORKERS = "LAUNCH_LOCAL_WORKERS"  # workers on this host
LOCAL_RANK = "LAUNCH_LOCAL_RANK"  # this worker's place among them, from 0
RANK = "LAUNCH_WORKER_ID"
IGNORE_ERRORS = "LAUNCH_IGNORE_SERVER_ERRORS"  # of updates
PROGRESS = "LAUNCH_PROGRESS"  # workers show a bar: the launcher draws it on its terminal
PREPARED = "LAUNCH_PREPARED"  # a file: the worker writes its process number there

# Exit statuses.
USAGE = 2  # the command line is wrong
SAVED = 75  # stopped on request after saving: start the job again

SAVE_GRACE_S = 15  # seconds in which workers may save, unless --grace says otherwise

# A checkpoint is PREFIX-TAG with these endings. The manifest names the other files.
MANIFEST_ENDING = ".json"
PARAMS_ENDING = ".params"
MANIFEST_FORMAT = "cifar10_dist checkpoint 1"

"""The second half of `launch.py --help`."""

TEXT = """\
The command begins at the first word that is not an option; everything from there on is its own. One
word is a line for `sh -c`, several are a program and its arguments, passed on as they are. It runs
in every role: as scheduler and as server it never returns from `import mxnet`.

definitions
  scheduler  one process that brings the others together; runs on the first host
  server     keeps a part of the parameters; adds up what the workers push
  worker     trains; worker i has rank i in MXNet, wherever it runs
  supervisor one small process on each host that starts the others there and ends them

hosts
  A line a host: `host[:port] [slots=N] [user=NAME]`, `#` for comments. A host is a name, an address
  or an alias of your ssh configuration. Servers, then workers are dealt out one host after the
  other; --placement fill gives a host as many workers as it has slots before it turns to the next.
  ssh must let you in without asking. Unknown host keys are accepted once, changed ones never.
  --sync-dst-dir copies this folder with rsync, once to each host, without .git, .venv, caches,
  ./data, ./checkpoints, saved networks and *.rec. --sync-exclude adds patterns to these;
  --sync-exclude none drops them.
  Before the start every host is asked, all at once: are Python, the folder, space for the copy and
  the command there, can it reach the scheduler; and has the command's Python MXNet, if it begins
  with one? --check only asks. (A path that --sync-dst-dir may yet copy need not be there.)

environment variables
  set for every process: DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT, DMLC_NUM_WORKER,
    DMLC_NUM_SERVER, DMLC_NODE_HOST, DMLC_JOB_CLUSTER, LAUNCH_JOB (the same in all tries),
    LAUNCH_ATTEMPT (which try this is, from 1), LAUNCH_MAX_RESTARTS and LAUNCH_GRACE (as given),
    LAUNCH_LOCAL_WORKERS (workers on this host); for servers and workers DMLC_TASK_ID (their
    DMLC_NODE_HOST is in octal, which makes the rank); for workers LAUNCH_WORKER_ID (its rank) and
    LAUNCH_LOCAL_RANK (its place among those of its host)
  set unless --env does: OMP_NUM_THREADS (processors of the host / workers on it), PYTHONUNBUFFERED,
    PYTHONFAULTHANDLER
  passed on by ssh: MXNET_*, DMLC_*, PS_*, OMP_*, KMP_*, NCCL_*, LD_LIBRARY_PATH, and what --env,
    --env-worker and --env-server name. Local processes inherit everything but PORT.
  Values never stand on a command line if you give only the NAME. Values of variables whose names
  look secret (TOKEN, PASSWORD, KEY, …) are shown as ***, also where a program prints them.

what happens on failure
  A process fails: all are stopped everywhere, TERM, after 3 s KILL. The last lines on the screen
    say which one, where, how, what it wrote last. A worker that ends with 0 stops nobody; when the
    last one has, the job is done.
  A host is not heard of for 10 s: it counts as lost. Over there the supervisor ends everything when
    it has not heard of the launcher for 10 s; so also when the launcher is killed.
  A process printed a traceback and then does nothing for 10 s: it has failed (MXNet waits for ever
    after an exception). One that ends silently with sys.exit() before the others are done waits
    just so, and cannot be told from one at work: --stall-timeout catches it.
  --start-timeout, --timeout, --stall-timeout: every Python process prints its stacks, then all are
    stopped. Nodes count as started when all have registered with the scheduler.
  TERM, INT (Ctrl-C), HUP to the launcher: the workers get TERM and --grace seconds to save. The job
    ends then, with 75 if all have ended so, also under --max-restarts. A second INT stops at once.
  USR1 is passed on to the workers. TERM or USR1 to a worker, by whoever needs its host: with
    --model-prefix all workers of cifar10_dist.py save after the same step (dist_async: soon) and
    end with 75.
  --max-restarts N: after a failure other than 2 the whole job starts again, up to N times, if it
    ran longer than --min-uptime. A worker that ends with 75 (start me again) is not counted, but if
    that happens twice in a row within --min-uptime the job ends. If a host is away, the restart
    waits for it, up to --start-timeout. Without --max-restarts 75 ends the job, with 75.

exit status
  0 all workers ended with 0      75  stopped on request, with all saved that there was
  2 nothing was started, or a worker calls its command line wrong
  124 a time limit                255 a host could not be reached, or was lost
  otherwise that of the process that failed first, or of the launcher: 128 + n for signal n

ps-lite, which carries the data, neither encrypts nor asks who is there: private networks only.
Ports are opened on the address that routes to the scheduler, on 127.0.0.1 if there is one host.
"""

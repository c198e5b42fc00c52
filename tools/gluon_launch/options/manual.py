"""What stands below the options in `launch.py --help`, and in `--help-all`."""

from gluon_launch.starting.ways import WAYS

MORE = """\
It ends with 0 if all workers did, with 2 if nothing was started, with 75 if they have saved and are
to be started again, else with the status of the process that failed first.
All options, hosts files, batch systems, signals, restarts: {} --help-all
"""

TEXT = (
    """\
The command begins at the first word that is not an option. Everything from there on belongs to the
command. One word is a line for `sh -c`; several are a program and its arguments, passed on as they
are, with variables in front (FOO=1 python …) set. The command runs in every role: a scheduler or
server never returns from `import mxnet`, and what stands before it is run in every role.

definitions
  scheduler  one process that brings the others together; runs on the first host
  server     keeps a part of the parameters; adds up what the workers push; with -s 0 there is none,
             the workers use Horovod, and the scheduler is its rendezvous
  worker     trains; worker i has rank i in MXNet, wherever it runs
  supervisor one small process on each host that starts the others there and ends them

hosts
  One line for each host: `host[:port] [slots=N] [user=NAME]`; `#` starts a comment. A host is a
  name, an address or an alias of your ssh configuration; gpu[01-16,20] are 17 hosts. Files of Open
  MPI and MPICH (host:4 for slots, below 22) are read, too. A machine that stands there under
  several names counts as one host, the first of them. Servers, then workers, are placed on one host
  after the other. --placement fill gives a host as many workers as it has slots before it turns to
  the next.
  ssh must log in without a question. Unknown host keys are accepted once, changed ones never.
  --sync-dst-dir copies this folder with rsync, once to each host, without .git, .venv, caches, DIR
  itself, checkpoints of gluon_dist, and files above --sync-max-size, of which a line tells.
  --sync-exclude adds patterns to these; --sync-exclude none copies all but the large files.
  Before the start all hosts are checked at once: Python, the folder, space for the copy, the
  command, and whether the host reaches the scheduler. A command that begins with a Python needs
  MXNet in that Python. With --sync-dst-dir the command and MXNet are looked for after the copy.
  --check only checks, also whether rsync can copy, and shows what would come with the copy.

ways of starting
"""
    + "".join(way.about for way in WAYS.values())
    + """\
  Refused are options with which they would do something else: job arrays (--array, -t), --output,
    --wait, --test-only and the like.
  Without -H, --launcher ssh also takes the hosts of an allocation: SLURM_JOB_NODELIST, PE_HOSTFILE,
    PBS_NODEFILE, LSB_DJOB_HOSTFILE, LSB_HOSTS.
  The hosts of batch systems must share this folder. Output goes to launch-SYSTEM-ID.out and .err
    here, or in --job-dir.
  A submitted job belongs to the system: if this launcher is killed, gets HUP (a lost login) or has
    no reader (| head), the job goes on. INT (Ctrl-C) or TERM asks it to save and end, a second one
    cancels it. When the system wants the job to end, the workers get TERM and --grace seconds to
    save. A job that then ends with 75, and that nobody cancelled, is queued again, and
    LAUNCH_ATTEMPT counts up (Grid Engine: not at a time limit).
    The job ends if its batch script, or the slurmstepd above it, is killed. If sge_shepherd is
    killed, Grid Engine queues the job again, as after the loss of a host.
  Slurm keeps your environment for the job. Grid Engine gets PATH, LD_LIBRARY_PATH and what ssh
    passes on. It shows them to all users, and so takes no secrets.

environment variables
  set for every process: DMLC_ROLE, DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT, DMLC_NUM_WORKER,
    DMLC_NUM_SERVER, DMLC_NODE_HOST, DMLC_JOB_CLUSTER, LAUNCH_JOB (the same in all tries),
    LAUNCH_ATTEMPT (which try this is, from 1), LAUNCH_MAX_RESTARTS and LAUNCH_GRACE (as given),
    LAUNCH_LOCAL_WORKERS (workers on this host); for servers and workers DMLC_TASK_ID (their
    DMLC_NODE_HOST is in octal, which makes the rank); for workers LAUNCH_WORKER_ID (its rank) and
    LAUNCH_LOCAL_RANK (its place among those of its host); with -s 0 also Horovod's: HOROVOD_RANK,
    _SIZE, _LOCAL_RANK, _LOCAL_SIZE, _CROSS_RANK, _CROSS_SIZE, _HOSTNAME, _CONTROLLER,
    _CPU_OPERATIONS, _GLOO_IFACE, _GLOO_RENDEZVOUS_ADDR, _GLOO_RENDEZVOUS_PORT
  set unless --env does: OMP_NUM_THREADS (processors of the host / workers on it), PYTHONUNBUFFERED,
    PYTHONFAULTHANDLER; with -s 0 HOROVOD_GLOO_TIMEOUT_SECONDS (--start-timeout and a minute more)
  put in front of PYTHONPATH, but not with --no-prepare: a folder of the job's own, with a
    sitecustomize.py. It makes MXNet right in whatever program imports it, as `import gluon_dist`
    does (gluon_dist.explain() lists all of it). LAUNCH_PREPARED names a file in that folder.
  passed on by ssh: MXNET_*, DMLC_*, PS_*, OMP_*, KMP_*, NCCL_*, HOROVOD_*, LD_LIBRARY_PATH, and
    what --env, --env-worker and --env-server name. Local processes inherit everything but PORT.
  DMLC_INTERFACE is taken for --interface. What is set for every process is not taken from your
    environment, and refused in --env.
  If you give only the NAME, the value is on no command line and in no record. Values of variables
    whose names end as a secret's (TOKEN, PASSWORD, KEY, …) are shown as ***, also where a program
    prints them if they have eight characters or more and the command does not contain them. Values
    with a login in them (postgres://me:…@host) are not recorded.

what happens on failure
  A process fails: all processes are stopped on all hosts, with TERM, and after 3 s with KILL. The
    last lines on the screen say which process failed, where, how, and what it wrote last, with the
    cause if that came before. A worker that ends with 0 stops nobody. When the last worker has
    ended so, the job is done.
  An update fails on a server, where MXNet would print the exception and go on: the server has
    failed. With --ignore-server-errors it goes on, and the last lines say how many updates failed.
  A host is silent for 10 s: it counts as lost. Its supervisor ends everything there once the
    launcher has been silent for 10 s, so also after the launcher was killed.
  A worker printed a traceback, began to exit, and does nothing for 10 s: it has failed (MXNet waits
    for ever in its exit after an uncaught exception). A worker that goes on after an exception it
    has caught may be silent for as long as it likes. One that comes to its end with 0 after fewer
    steps than the others is named after 10 s; the job goes on until you or --stall-timeout end it.
  The screen, or the disk of --job-dir, takes no output: the processes wait before they write more.
    All else goes on. At the end, output that nobody takes for 15 s (2 s after a signal) is lost.
  --start-timeout, --timeout, --stall-timeout: every Python process prints its stacks, then all are
    stopped. Of servers and the scheduler the screen shows only what differs from waiting, the logs
    of --job-dir all. The start is over when all processes have registered with the scheduler.
  TERM, INT (Ctrl-C), QUIT (Ctrl-\\), HUP to the launcher: the workers get TERM and --grace seconds
    to save. Then the job ends, also under --max-restarts: with 75 if all workers ended with 75. A
    second INT stops at once. What the launcher was started to ignore (HUP by nohup, INT and QUIT by
    a script with `&`) stays ignored.
  Below a script or a wrapper, the program that has a handler gets the signal, once; its own
    processes do not, nor does what reads its output (tee). Its status is the worker's. What a
    script does after it has the rest of the --grace.
  A command ends with 0 and leaves processes behind: they are ended, and a line says so.
  USR1 is passed on to the workers. TERM or USR1 may also go to one worker, from whoever needs its
    host: all workers of a program with gluon_dist.Checkpoint (cifar10_dist.py: --model-prefix) then
    save after the same step (dist_async: soon) and end with 75.
  --max-restarts N: after a failure other than 2 the whole job starts again, up to N times, if it
    ran longer than --min-uptime. A worker that ends with 75 asks to be started again: this counts
    as a restart, too, and once also within --min-uptime; a second 75 within it ends the job. If a
    host is away, the restart waits for it, up to --start-timeout. Without restarts left, 75 ends
    the job with 75.

exit status
  0    all workers ended with 0
  2    nothing was started, or a worker says that its command line is wrong
  75   stopped on request, after saving what there was to save
  124  a time limit was over
  255  a host could not be reached, was lost, or is another one than was named
  otherwise that of the process that failed first, or 128 + n after signal n to the launcher

ps-lite, which carries the data, neither encrypts nor authenticates: use private networks only. Its
ports are opened on the address that routes to the scheduler; with one host, on 127.0.0.1.
"""
)

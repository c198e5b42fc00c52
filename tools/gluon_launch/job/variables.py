"""Which variables of the user the processes get."""

import re

from gluon_dist import contract

from gluon_launch.job.advice import anything, fitting
from gluon_launch.job.statuses import UsageError

# what training needs of the launching shell's environment on another host
TRAINING = re.compile(r"(MXNET|DMLC|PS|OMP|KMP|NCCL|HOROVOD)_\w+|LD_LIBRARY_PATH")
INTERFACE = [("use --interface", "--interface")]
# What the launcher sets itself for each process, and what to do instead.
OWN = {
    contract.NUM_WORKERS: "use -n",
    contract.NUM_SERVERS: "use -s",
    contract.ROOT_HOST: "use -H",
    contract.ROOT_PORT: "use --port",
    "DMLC_NODE_HOST": INTERFACE,
    "DMLC_JOB_CLUSTER": "use --launcher",
    contract.MAX_RESTARTS: "use --max-restarts",
    contract.GRACE: "use --grace",
    **dict.fromkeys(("DMLC_TASK_ID", contract.ROLE, contract.JOB, contract.ATTEMPT)),
    **dict.fromkeys((contract.RANK, contract.LOCAL_RANK, contract.LOCAL_WORKERS)),
    **dict.fromkeys((contract.PREPARED, contract.PROGRESS)),
    contract.IGNORE_ERRORS: "use --ignore-server-errors",
    "HOROVOD_SIZE": "use -n",
    "HOROVOD_GLOO_IFACE": INTERFACE,
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "use -H",
    "HOROVOD_GLOO_RENDEZVOUS_PORT": "use --port",
    **dict.fromkeys(("HOROVOD_RANK", "HOROVOD_HOSTNAME", "HOROVOD_CONTROLLER")),
    **dict.fromkeys(("HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CPU_OPERATIONS")),
    **dict.fromkeys(("HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE")),
}


def parse(items, environ, knows=anything):
    """Read `NAME`, `NAME=VALUE` and (as published) `NAME:VALUE` into a dict.

    The value of a bare NAME is the one in `environ`.

    Raises
    ------
    UsageError
        A name is not valid, or the launcher sets it itself, or a bare one is not set.
    """
    found = {}
    for item in items:
        match = re.fullmatch(r"([A-Za-z_]\w*)(?:[=:](.*))?", item, re.DOTALL | re.ASCII)
        if not match:
            start = re.split("[=:]", item)[0]
            raise UsageError(f"{start!r} is not the name of a variable")
        name, value = match.groups()
        if name in OWN:
            raise UsageError(f"--env {_own(name, knows)}: the launcher sets it for each process")
        if value is None and name not in environ:
            raise UsageError(f"{name} is not set here; give its value: {name}=…")
        found[name] = environ[name] if value is None else value
    return found


def passed(options, environ, knows=anything):
    """Return the variables that each role gets, {role: {name: value}}; may raise a `UsageError`.

    Of the launcher's environment those for `TRAINING` are passed on, but for its `OWN`; a local
    process inherits the others too. For `knows` see `Way`.
    """
    names = (name for name in environ if TRAINING.fullmatch(name) and name not in OWN)
    common = {name: environ[name] for name in names}
    if options.p3:
        common[contract.TRANSPORT] = "p3"
        common.setdefault("DMLC_PS_WATER_MARK", "10")
    given = env_items(options).items()
    env = {role: {**common, **parse(items, environ, knows)} for role, items in given}
    others = {of_role.get(contract.TRANSPORT) for of_role in env.values()} - {"p3"}
    if options.p3 and others:
        raise UsageError(f"--p3 and DMLC_PS_VAN_TYPE={others.pop()} exclude each other")
    return env


def env_items(options):
    """Return what `--env` and its kind give each role, in order."""
    return {
        "scheduler": options.env,
        "server": [*options.env, *options.env_server],
        "worker": [*options.env, *options.env_worker],
    }


def overridden(environ, knows=anything):
    """Return which variables of the user have no effect, as the launcher sets them; "" for none.

    Those of a launcher that has started this one are not the user's.
    """
    names = [] if contract.JOB in environ else [n for n in OWN if n in environ]
    names = [_own(name, knows) for name in names]
    return f"set by the launcher, not taken from here: {', '.join(names)}" if names else ""


def _own(name, knows):
    advice = OWN[name] and fitting(OWN[name], knows)
    return f"{name} ({advice})" if advice else name

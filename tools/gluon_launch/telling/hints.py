"""What to do about a failure: all that the launcher knows of programs, of MXNet and of gluon_dist.

What belongs to one way of starting is in that way's file. An advice may be a list of parts, each
with what it needs: see `job/advice.py`.
"""

from gluon_launch.job.statuses import KILLED, SAVED, TIMED_OUT, UNREACHABLE

HOW_TO_GO_ON = "it stopped on request and has saved: its last line says how to go on"
# a pattern in the last lines, or None for any; the exit status, or None for any; the advice
HINTS = (
    (r": \w+ led to ", None,
     "does an option choose the host? Else write the name or address that the host itself has"),
    (r"Could not resolve hostname", None,
     [("no such name: the hosts file", None), (", or ~/.ssh/config?", "ssh")]),
    (r"timed out|No route to host|Network is unreachable", UNREACHABLE,
     "is the host up, and in reach?"),
    (r"rsync: (command )?not found|command not found: rsync", None,
     "the host needs rsync: apt-get install rsync"),
    (r"\b(module|ml|spack|conda|mamba|pyenv): (command )?not found|[Rr]un 'conda init'", None,
     "a function of login shells: bash -lc '…', with all of the command in the quotes, or name the "
     "Python of that environment by its path"),
    (r"source: (command )?not found", None,
     "`sh` runs the line, and `source` is bash's: write `. FILE`, or bash -c '…'"),
    (r"python3: (command )?not found|exec: python3", None,
     [("the host needs python3, 3.6 or later, on PATH", None),
      ("; `ssh HOST python3 -V` must find it", "ssh")]),
    (r"(?i)bus error|SIGBUS", None,
     "/dev/shm is full, by which a DataLoader's workers hand over batches (`df /dev/shm` there): "
     "docker run --shm-size=8g; or fewer of these workers, or num_workers=0"),
    (r"No space left on device", None, "the disk is full (`df`), or /dev/shm is"),
    (r"Too many open files", None, "too many processes for this host: raise `ulimit -n`"),
    (r"Resource temporarily unavailable|can't start new thread", None,
     "too many processes there: raise `ulimit -u`"),
    (r"Address already in use|bind failed", None,
     "another program has the port: leave out --port and a free one is taken"),
    (r"could not do what a worker asked for", None,
     "servers take classes of the script if MXNet was prepared (no --no-prepare) and that Python "
     "has cloudpickle; or let the workers update, update_on_kvstore=False"),
    (r"an update failed: |updater_handle.*, which failed", None,
     "MXNet itself prints this exception and goes on, with a weight that may not be updated: mend "
     "the optimizer, or say --ignore-server-errors if that is well"),
    (r"No module named 'gluon_dist'", None,
     "leave out --no-prepare, or install it into that Python"),
    (r"module 'numpy' has no attribute '(bool|int|float|complex|object|str)'", None,
     "leave out --no-prepare, or `import gluon_dist` before mxnet: it puts these names back"),
    (r"lib(gomp|quadmath)\.so\S*: cannot open shared object", None,
     "MXNet needs libraries of the system: apt-get install libgomp1 libquadmath0, or dnf install "
     "libgomp libquadmath; without root, `python -m gluon_dist.setup.libraries` with the job's "
     "Python copies them out of other packages"),
    (r"Possible change in the `batch_size`", None,
     "servers that update know one batch size: leave out --no-prepare, or `import gluon_dist` "
     "before mxnet"),
    (r"terminate called without an active exception", None,
     "a store outlived MXNet: leave out --no-prepare, or `import gluon_dist` before mxnet"),
    (r"Cannot (save|load) states for distributed training|Cannot reset distributed KVStore", None,
     "here the servers have the weights and the optimizer's state: let the workers update, by "
     "update_on_kvstore=False; with Module, or where a library makes the Trainer, by "
     "--env MXNET_UPDATE_ON_KVSTORE=0"),
    (r"No module named '(mxnet|numpy|horovod|gluoncv)'", None,
     "is this the Python you installed into? with --check the launcher shows what each host has"),
    (r"No module named '[^.']+'", None,
     "the program, or a library that it uses, needs this module: pip install it into that Python"),
    (r"MemoryError|Cannot allocate memory|bad_alloc|out of memory", None,
     "memory ran out: a smaller --batch-size, or fewer workers on a host"),
    (r"Check failed: (size == to->Size\(\)|lens->size\(\) == keys)", None,
     "sparse_grad=True does this on a dist store: leave it out"),
    (r"^--(stall|start)-timeout", TIMED_OUT,
     "the stacks above show where each program is; servers that only wait are left out"),
    (None, KILLED, "SIGKILL often means memory ran out: `dmesg | grep -i kill` on that host tells"),
    (None, SAVED, HOW_TO_GO_ON),
    (None, 127, "command not found: give its full path, or put it on PATH"),
    (None, 126, "not executable: chmod +x, or put its interpreter in front"),
    (None, 139, "a crash in native code: its stack is above, if Python could print it"),
)  # fmt: skip
# By what the check of a host found wrong, what to do about it.
FIX = {
    "mxnet": "`make setup` there, and name its .venv/bin/python in the command",
    "horovod": "`make setup HOROVOD=1` there, or leave out -s 0",
    "command": [("give its full path, or put it on PATH", None),
                ("; with ssh that is PATH without a login", "ssh")],
    "login": "a login shell knows it there: bash -lc '…', with all of the command in the quotes",
    "folder": [("make it", None), (", or choose another with --sync-dst-dir", "--sync-dst-dir"),
               (", or bring files with --files", "--files")],
    "network": [("open the port between the hosts", None),
                (", or choose it with --port, --interface", "--interface")],
    "space": "make room there",
    "python": "--no-check starts without",
}  # fmt: skip

# Said of workers that made no dist store, or whose MXNet nothing has made right.
MAY_BE_APART = (
    "no worker has made a dist store in {:g} minutes: if none does, each trains alone, on all "
    "examples (docs/programs.md)"
)
APART = (
    "no worker made a dist store: {} programs ran apart, each on all examples; to train together, "
    'give the Trainer kvstore="dist_sync" and each worker its part: docs/programs.md'
)
UNPREPARED = (
    "{}: MXNet stayed as it is: the command sets PYTHONPATH anew, or its Python does not read it "
    "(-I, -E, -S, older than 3.8); import gluon_dist first in the program, or say --no-prepare"
)

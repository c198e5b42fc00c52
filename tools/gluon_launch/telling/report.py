"""The last thing on the screen: what ended the job, and what to do about it."""

import re
import time

from gluon_launch.job.statuses import SAVED

# a file or a module was not found, or could not be opened
MISSING = re.compile(r"(?i)no module named|no such file|not found|can(not|'t) open")
LONGEST = 400  # characters shown of a line
# a pattern in the last lines, or None for any; the exit status, or None for any; the hint
HINTS = (
    (r"mpirun has detected an attempt to run as root", None,
     "if you mean it: --launcher-option=--allow-run-as-root"),
    (r"Host key verification failed|REMOTE HOST IDENTIFICATION", None,
     "the host's key is not the one you know: if it was reinstalled, ssh-keygen -R HOST"),
    (r"Permission denied \(", None,
     "ssh has no key that this host takes: try `ssh HOST`, then ssh-copy-id or --ssh-option=-i…"),
    (r"no connection: (kex_exchange_identification|Connection (closed|reset) by (?!UNKNOWN))", 255,
     "its ssh server takes no more logins at once: raise MaxStartups in its sshd_config"),
    (r"Connection refused", 255, "no ssh server listens there: is it started, is the port right?"),
    (r"Invalid generic resource", 255,
     "is the number of GPUs that of the whole job (--gpus)? Ask for those of each host: "
     "--gpus-per-node=N"),
    (r": ssh led to ", None,
     "is the ControlPath in your ssh configuration the same for several hosts? It needs %C"),
    (r": (mpirun|srun|qrsh) led to ", None,
     "does an option choose the host? Else write the name or address that the host itself has"),
    (r"Could not resolve hostname", None, "no such name: the hosts file, or ~/.ssh/config?"),
    (r"timed out|No route to host|Network is unreachable", 255, "is the host up, and in reach?"),
    (r"no connection: no answer within", 255,
     "does `ssh HOST true` end by itself? Not if a .bashrc there starts another shell (exec fish): "
     "let it do so only on a terminal, [ -t 0 ] && exec fish"),
    (r"what was sent first has not arrived", None,
     "something else reads the input that ssh passes on: a LocalCommand in ssh's configuration "
     "(--ssh-option=-oPermitLocalCommand=no), or the .bashrc there (`read`, `cat`)"),
    (r"is your shell clean", None,
     "the login there prints something: `ssh HOST true` must print nothing (see its .bashrc)"),
    (r"rsync: (command )?not found|command not found: rsync", None,
     "the host needs rsync: apt-get install rsync"),
    (r"\b(module|ml|spack|conda|mamba|pyenv): (command )?not found|[Rr]un 'conda init'", None,
     "a function of login shells: bash -lc '…', with all of the command in the quotes, or name the "
     "Python of that environment by its path"),
    (r"source: (command )?not found", None,
     "`sh` runs the line, and `source` is bash's: write `. FILE`, or bash -c '…'"),
    (r"python3: (command )?not found|exec: python3", None,
     "the host needs python3, 3.6 or later, on PATH; `ssh HOST python3 -V` must find it"),
    (r"(?i)bus error|SIGBUS", None,
     "/dev/shm is full, by which a DataLoader's workers hand over batches (`df /dev/shm` there): "
     "docker run --shm-size=8g; or fewer of these workers, or num_workers=0"),
    (r"No space left on device", None, "the disk is full (`df`), or /dev/shm is"),
    (r"Too many open files", None, "too many processes for this host: raise `ulimit -n`"),
    (r"Resource temporarily unavailable", None, "too many processes there: raise `ulimit -u`"),
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
    (r"^--(stall|start)-timeout", 124,
     "the stacks above show where each program is; servers that only wait are left out"),
    (None, 137, "SIGKILL often means memory ran out: `dmesg | grep -i kill` on that host tells"),
    (None, SAVED, "it stopped on request and has saved: its last line says how to go on"),
    (None, 127, "command not found: give its full path, or put it on PATH"),
    (None, 126, "not executable: chmod +x, or put its interpreter in front"),
    (None, 139, "a crash in native code: its stack is above, if Python could print it"),
)  # fmt: skip


def hint(text, status, fitting=str):
    """Advice on what to try, or None; see `Way.fitting`."""
    for pattern, of_status, advice in HINTS:
        if of_status in (None, status) and (pattern is None or re.search(pattern, text)):
            fit = fitting(advice)
            if fit:
                return fit
    return None


def shortened(line):
    """A line without its middle, if it is very long: the cause may stand at either end."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 100]} … {line[-97:]}"


def explain(failure, log=None, fitting=str, left_out=None, members=()):
    """The lines that end a job.

    Parameters
    ----------
    failure : Failure
        With `member` set if it was a process that failed.
    log : path or None
        Where its output is kept.
    fitting : function
        See `Way.fitting`.
    left_out : str or None
        What was not copied to the hosts.
    members : list of Member
        All processes: one may have told the cause long before another one failed.
    """
    lines = [str(failure)]
    member, said = failure.member, str(failure)
    if member:
        lines = [failure.subject()]
        if member.ended:
            clock = time.strftime("%H:%M:%S", time.localtime(member.ended))
            ran = member.ended - (member.started or member.ended)
            lines[0] += f", at {clock} after {ran:.1f} s"
        last, is_error = member.said.worth_showing()
        if last:
            where = " on standard error" if is_error else ""
            lines.append(f"its last lines{where}:")
            lines += [f"  {shortened(line)}" for line in last]
            said += "\n".join(last)
        if log:
            lines.append(f"its log: {log}")
    for other in members if failure.status != SAVED else ():
        lack = other.said.lack()
        if lack and lack not in said:
            lines.append(f"{other.process} on {other.process.host} wrote: {shortened(lack)}")
            said += f"\n{lack}"
            break
    advice = hint(said, failure.status, fitting)
    if advice:
        lines.append(f"hint: {advice}")
    if left_out and MISSING.search(said):
        lines.append(f"hint: {left_out}")
    return "\n".join(lines)

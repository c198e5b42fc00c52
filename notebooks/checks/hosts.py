"""The checks of the notebook on one's own hosts."""

import tempfile

from gluon_dist.workers.group import share_gpus

from host_jobs import dry_run, placement

from checks import exercise, fault_of_parts, fault_of_type

# What was kept of a job of four workers on three hosts, and the lines of train.py it names.
STRANGERS_LOG = """\
15:53:06 [launch] d1: scheduler, server 0, worker 2
15:53:06 [launch] d2: worker 0, worker 3
15:53:06 [launch] d3: worker 1
15:53:06 [worker 2 d1] Epoch 1: loss 0.500
15:53:06 [worker 3 d2] Epoch 1: loss 0.500
15:53:06 [worker 0 d2] Epoch 1: loss 0.500
15:53:06 [worker 0 d2] Saving epoch 1
15:53:06 [worker 1 d3] Epoch 1: loss 0.500
15:53:14 [worker 2 d1]   File "ndarray.py", line 2568 in asnumpy
15:53:14 [worker 2 d1]   File "train.py", line 16 in share
15:53:14 [worker 2 d1]   File "train.py", line 27 in main
15:53:14 [worker 1 d3]   File "ndarray.py", line 2568 in asnumpy
15:53:14 [worker 1 d3]   File "train.py", line 16 in share
15:53:14 [worker 1 d3]   File "train.py", line 27 in main
15:53:14 [worker 0 d2]   File "kvstore.py", line 717 in _barrier
15:53:14 [worker 0 d2]   File "train.py", line 21 in save
15:53:14 [worker 0 d2]   File "train.py", line 30 in main
15:53:14 [worker 3 d2]   File "ndarray.py", line 2568 in asnumpy
15:53:14 [worker 3 d2]   File "train.py", line 16 in share
15:53:14 [worker 3 d2]   File "train.py", line 27 in main
15:53:14 [launch] --stall-timeout: no output from any process for 8 s
"""


@exercise("05", 1)
def check_diagnosis(answer):
    """Check ``{"worker": …, "host": …, "line": …, "cause": …}`` against the stranger's log."""
    stacks = [line for line in STRANGERS_LOG.splitlines() if "File" in line]
    by_worker = {}
    for line in stacks:
        by_worker.setdefault(line.split()[2], []).append(line)
    (odd,) = [rows for rows in by_worker.values() if "asnumpy" not in rows[0]]
    words = odd[1].split()
    wanted = {"worker": int(words[2]), "host": words[3][:-1], "line": int(words[7])}
    wanted["cause"] = "a call that only one worker makes"
    hints = {
        "worker": "one worker is at a different line than the rest",
        "host": "the prefix of its lines names the host",
        "line": "the newest call is on top; which is the first line that is not MXNet's own?",
        "cause": "this worker waits for the rest, which are in the next epoch already",
    }
    return fault_of_parts(answer, wanted, hints)


@exercise("05", 2)
def check_hosts(answer):
    """Check ``(text of a hosts file, options)`` with the launcher's dry run."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        return "give two: the text of the hosts file, and a list of options"
    text, options = answer
    fault = fault_of_type(text, "") or fault_of_type(options, [])
    if fault:
        return fault
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".hosts") as file:
            file.write(text)
            file.flush()
            words = (*options, "-H", file.name)
            placed, script = placement(*words), dry_run(*words)
    except Exception as error:
        return f"the launcher says: {error}"
    kinds = {h: [name.split()[0] for name in names] for h, names in placed.items()}
    count = {host: names.count("worker") for host, names in kinds.items()}
    servers = sum(names.count("server") for names in kinds.values())
    if count != {"gpu1": 4, "gpu2": 2}:
        return f"two GPUs for each worker: not with this number of workers: {count}"
    if servers != 2:
        return f"two servers, not {servers}"
    (login,) = [line for line in script if line.startswith("# log in") and "gpu2" in line]
    return "" if "-p 2222 -l alice" in login else "gpu2 needs its port and its user"


@exercise("05", 3)
def check_placement(answer):
    """Check ``{worker: (host, GPUs)}`` with the launcher's dry run and the program's shares."""
    placed = placement("-n", "7", "-s", "4", "-H", "gpu[1-3]")
    for worker in ("worker 5", "worker 6"):
        (host,) = [host for host, names in placed.items() if worker in names]
        workers = [name for name in placed[host] if name.startswith("worker")]
        gpus = list(share_gpus(8, len(workers), workers.index(worker)))
        given = answer.get(worker) if isinstance(answer, dict) else None
        if not given or given[0] != host:
            return f"{worker} starts on another host: deal the servers first"
        if list(given[1]) != gpus:
            return f"{worker}: how many workers share {host}, and which one is it?"
    return ""

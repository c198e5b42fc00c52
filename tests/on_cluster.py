"""Look at the hosts of the cluster from outside: their processes, ports and queues."""

import contextlib
import json
import os
import pathlib
import re
import subprocess

from launching import CLUSTER, entering

# What holds the hosts, and what belongs to a batch system, not to a job.
SPARED = re.compile(
    r"\S+ \S+cluster_host\.py|sshd: .*\[listener\]|slurmctld|: slurmscriptd|slurmd |munged|"
    r"\S*/sge_qmaster|\S*/sge_execd|.* org\.apache\.hadoop\.\S+Manager $"
)


def on_d1(command):
    """Run a command on d1; what it prints."""
    words = [*entering("d1", "/"), "sh", "-c", command]
    return subprocess.run(words, text=True, capture_output=True, timeout=60).stdout.strip()


def processes_of_hosts():
    """The processes of the hosts, by pid, but for what is spared."""
    holders = json.loads((CLUSTER / "state.json").read_text())["holders"]
    spaces = set()
    for pid, _ in holders.values():
        with contextlib.suppress(FileNotFoundError):  # that host was killed
            spaces.add(os.readlink(f"/proc/{pid}/ns/pid_for_children"))
    spaces.discard(os.readlink("/proc/self/ns/pid"))
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            command = command.decode(errors="replace")
            if command and os.readlink(folder / "ns/pid") in spaces:
                found[int(folder.name)] = command
        except OSError:
            continue
    return {pid: command for pid, command in found.items() if not SPARED.match(command)}


def ports():
    """Where somebody listens, on all hosts: (host, port)."""
    holders = json.loads((CLUSTER / "state.json").read_text())["holders"]
    found = set()
    for name, (pid, _) in holders.items():
        for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if state == "0A":
                found.add((name, int(local.split(":")[1], 16)))
    return found


def about(pid, file):
    """What /proc tells about a process; nothing if it has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{file}").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


APPLICATIONS = """python3 -c "
import json, urllib.request
states = 'NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING'
url = 'http://d1:8088/ws/v1/cluster/apps?states=' + states
apps = json.load(urllib.request.urlopen(url))['apps'] or {'app': []}
for app in apps['app']:
    print(app['id'], app['name'], app['state'], app['queue'])
" """


def jobs():
    """What the batch systems have, waiting, running or ending."""
    return on_d1(f"squeue --noheader; qstat; {APPLICATIONS}").splitlines()

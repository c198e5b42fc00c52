"""Grid Engine on the hosts of `cluster.py`: qmaster on d1, execd on all."""

import os
import pathlib
import re
import subprocess
import time

from cluster_batch import cover, start_daemon

NEEDED = {
    "sge_qmaster": "gridengine-master",
    "sge_execd": "gridengine-exec",
    "qsub": "gridengine-client",
}
READY = """qhost | awk '/^d[0-9]/ && $7 != "-"'"""  # it has reported its load
CELL = "var/lib/gridengine/default/common"
SPOOL = "/var/spool/gridengine/qmaster"
PROGRAMS = pathlib.Path("/usr/lib/gridengine")
RESOURCES = pathlib.Path("/usr/share/gridengine/util/resources")
BOOTSTRAP = f"""\
admin_user ubuntu
default_domain none
ignore_fqdn false
spooling_method classic
spooling_lib libspoolc
spooling_params /{CELL};{SPOOL}
binary_path /usr/sbin
qmaster_spool_dir {SPOOL}
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
# What differs from Debian's configuration.
CONFIGURATION = {
    "min_uid": 0,  # `ubuntu` has uid 0 here
    "min_gid": 0,
    "mailer": "/bin/true",
    "execd_params": "INHERIT_ENV=false",
    "load_report_time": "00:00:01",  # the rest is quick for trying out
    "max_unheard": "00:00:30",
    "reschedule_unknown": "00:00:30",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01",
}
# What differs from the scheduler's defaults.
SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": 1,
    "flush_finish_sec": 1,
    "queue_sort_method": "seqno",  # d1 first, however busy this machine is
    "job_load_adjustments": "NONE",
}
PE = """\
pe_name mpi
slots 99999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $round_robin
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""
GPU = """\
name gpu
shortcut gpu
type INT
relop <=
requestable YES
consumable YES
default 0
urgency 0
"""
LIMITS = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")
QUEUE = """\
qname all.q
hostlist {hosts}
seq_no {order}
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
ckpt_list NONE
pe_list mpi
rerun FALSE
slots 8
tmpdir /var/spool/gridengine/tmp
shell /bin/sh
prolog NONE
epilog NONE
shell_start_mode unix_behavior
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:20
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state default
"""
QUEUE += "".join(f"{kind}_{limit} INFINITY\n" for limit in LIMITS for kind in "sh")
HOST = """\
hostname {name}
load_scaling NONE
complex_values gpu=2
load_values NONE
processors 0
reschedule_unknown_list NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""


def write_files(d1, addresses):
    """Write the cell, which all hosts read, and the files that the qmaster reads once."""
    cell = d1 / CELL
    cell.mkdir(parents=True)
    (cell / "bootstrap").write_text(BOOTSTRAP, encoding="utf-8")
    (cell / "act_qmaster").write_text("d1\n", encoding="utf-8")
    debian = pathlib.Path("/usr/share/gridengine/default-configuration").read_text(encoding="utf-8")
    files = {"configuration": changed(debian, CONFIGURATION), "pes/mpi": PE, "complexes/gpu": GPU}
    order = ",".join(["0", *(f"[{name}={i}]" for i, name in enumerate(addresses) if i)])
    files["all.q"] = QUEUE.format(hosts=" ".join(addresses), order=order)
    for name in addresses:
        files[f"exechosts/{name}"] = HOST.format(name=name)
        files[f"adminhosts/{name}"] = files[f"submithosts/{name}"] = f"hostname {name}\n"
    for path, text in files.items():
        file = d1 / "sge" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def changed(text, values):
    """Return a configuration with other values."""
    for key, value in values.items():
        text = re.sub(rf"^{key}\b.*", f"{key} {value}", text, flags=re.M)
    return text


def spool(folder):
    """Make the qmaster's files, as Debian's package does when it is installed."""
    environment = {**os.environ, "SGE_ROOT": "/var/lib/gridengine", "SGE_CELL": "default"}

    def run(program, *arguments):
        subprocess.run([PROGRAMS / program, *arguments], env=environment, check=True)

    os.mkdir(SPOOL)
    run("spoolinit", "classic", "libspoolc", f"/{CELL};{SPOOL}", "init")
    run("spooldefaults", "configuration", folder / "sge" / "configuration")
    run("spooldefaults", "complexes", RESOURCES / "centry")
    run("spooldefaults", "complexes", folder / "sge" / "complexes")
    run("spooldefaults", "usersets", RESOURCES / "usersets")
    run("spooldefaults", "managers", "ubuntu")
    for kind in ("adminhosts", "submithosts", "exechosts", "pes"):
        run("spooldefaults", kind, folder / "sge" / kind)


def scheduler_configuration():
    """Wait until the qmaster answers, and return its scheduler's configuration."""
    while True:
        answer = subprocess.run(
            ["qconf", "-ssconf"], capture_output=True, encoding="utf-8", errors="replace"
        )
        if answer.returncode == 0:
            return answer.stdout
        time.sleep(0.1)


def configure(folder):
    """Tell the qmaster the settings that only `qconf` can make."""
    (folder / "scheduler").write_text(
        changed(scheduler_configuration(), SCHEDULER), encoding="utf-8"
    )
    subprocess.run(["qconf", "-Msconf", folder / "scheduler"], check=True)
    subprocess.run(["qconf", "-Aq", folder / "all.q"], check=True)


def start(folder, name):
    """Start the daemons of one host, inside it."""
    cover("/var/lib/gridengine/default", folder.parent / "d1")
    cover("/var/spool/gridengine", folder)
    if name == "d1":
        spool(folder)
        start_daemon(folder, "sge_qmaster", SGE_ND="1")
        configure(folder / "sge")
    else:
        scheduler_configuration()  # an execd that finds no qmaster waits for long
    os.mkdir("/var/spool/gridengine/execd")
    os.mkdir("/var/spool/gridengine/tmp")  # the /tmp of all hosts is the same
    start_daemon(folder, "sge_execd", SGE_ND="1")

"""Jobs on other hosts, over real ssh: the cluster of `tools/cluster.py`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

from launching import (
    CLUSTER,
    PROGRAMS,
    ROOT,
    Job,
    accuracies,
    cluster,
    launch,
    on_hosts,
    shell,
    why_no_cluster,
)
from on_cluster import processes_of_hosts

TIME_BUDGET_S = 180
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or ""),
]
SUM = "python /home/ubuntu/job/sum_ranks.py"


@pytest.fixture(scope="module", autouse=True)
def hosts():
    cluster("up", "--hosts", "2")
    yield
    cluster("down")


def on_host(name, command):
    return cluster("ssh", name, command, check=False).stdout


def left_on(name):
    """Commands on a host that are not its own."""
    lines = on_host(name, "ps -eww -o args=").splitlines()
    own = ("cluster_host.py", "sshd:", "ps -eww", "sh -c ps")
    return [line for line in lines if not any(word in line for word in own)]


def nothing_left(seconds=3):
    end = time.monotonic() + seconds
    while time.monotonic() < end and (left_on("d1") or left_on("d2")):
        time.sleep(0.1)
    return not left_on("d1") + left_on("d2")


def bytes_of(name):
    (line,) = [line for line in cluster("status").stdout.splitlines() if line.startswith(name)]
    return int(re.search(r"received (\d+)", line)[1])


def test_ranks_placement_and_ports_on_two_hosts(tmp_path):
    """The hosts' addresses end in .9 and .10: as strings they sort the other way round."""
    sync = ("--sync-dst-dir", "/home/ubuntu/job", "--no-check")
    job = Job(tmp_path, "-n", 3, "-s", 2, *on_hosts(), *sync, f"{SUM} --sleep 99", cwd=PROGRAMS)
    for rank, host in enumerate(["d1", "d2", "d1"]):
        job.wait_for(f"[worker {rank} {host}] worker {rank} is rank {rank} of 3, sum 6")
    listening = [line.split()[3] for line in on_host("d2", "ss -Hltn").splitlines()]
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait() == 143
    assert "[launch] d1: scheduler, server 0, worker 0, worker 2" in job.text()
    assert "[launch] d2: server 1, worker 1" in job.text()
    assert len(listening) == 3  # sshd, the server, the worker
    assert all(re.fullmatch(r"10\.77\.\d+\.10:\d+", address) for address in listening)
    assert nothing_left()


@pytest.fixture
def two_names(tmp_path):
    """The arguments that lead to d1, to d1 by its address, and to d2."""
    address = json.loads((CLUSTER / "state.json").read_text())["addresses"]["d1"]
    known = f"--ssh-option=-oUserKnownHostsFile={tmp_path}/known"
    key = f"--ssh-option=-oIdentityFile={CLUSTER}/key"
    return "-H", f"d1,ubuntu@{address},d2", known, key, on_hosts()[2]


def test_a_machine_is_one_host_however_it_is_spelt(tmp_path, two_names):
    """The hosts of the cluster have one kernel, and are two machines none the less."""
    show = shell(other="echo $LAUNCH_LOCAL_RANK of $LAUNCH_LOCAL_WORKERS; exit 0")
    job = launch(tmp_path, "-n", 3, "-s", 3, *two_names, show, cwd="/tmp")
    assert job.status == 0, job.text()
    assert "are the same machine: they count as one host, d1" in job.last_words()
    for worker, place in {"0 d1": "0 of 2", "1 d1": "1 of 2", "2 d2": "0 of 1"}.items():
        assert f"[worker {worker}] {place}" in job.text()
    assert nothing_left()


@pytest.fixture
def one_path_for_all(tmp_path):
    """Options by which all logins go over a connection to d1 that is open already."""
    config = ("-F", f"{CLUSTER}/ssh_config", f"-oControlPath={tmp_path}/path")
    subprocess.run(["ssh", *config, "-oControlMaster=yes", "-fN", "d1"], check=True, timeout=20)
    yield f"--ssh-option=-oControlPath={tmp_path}/path"
    subprocess.run(["ssh", *config, "-O", "exit", "d1"], capture_output=True, timeout=20)


def test_a_connection_to_another_host_is_noticed_before_anything_runs(tmp_path, one_path_for_all):
    job = launch(tmp_path, "-n", 2, *on_hosts(), one_path_for_all, "echo up", cwd=tmp_path)
    assert job.status == 255 and "up" not in job.stdout, job.text()
    assert "d2: ssh led to d1, which does not have its address 10.77." in job.last_words()
    assert "It needs %C" in job.last_words()


def test_a_configuration_for_tunnels_changes_nothing(tmp_path):
    words = ("StdinNull yes", "SessionType none", "ForkAfterAuthentication yes")
    (tmp_path / "config").write_text("\n".join([*words, f"Include {CLUSTER}/ssh_config"]))
    hosts = ("-H", "d1,d2", f"--ssh-option=-F{tmp_path}/config")
    job = launch(tmp_path, "-n", 2, *hosts, "--no-check", "hostname", cwd=tmp_path)
    assert job.status == 0, job.text()
    assert "[worker 1 d2] d2\n" in job.stdout


def test_a_failure_on_one_host_stops_the_others(tmp_path):
    command = shell(worker1="echo $(hostname) is out of luck >&2; exit 9")
    job = launch(tmp_path, "-n", 2, *on_hosts(), "--no-check", command, cwd="/tmp")
    assert job.status == 9
    assert "worker 1 on d2: ended with status 9" in job.last_words()
    assert "d2 is out of luck" in job.last_words()
    assert nothing_left()


def start(tmp_path, *options, command="echo up; exec sleep 60"):
    job = Job(tmp_path, "-n", 2, *on_hosts(), "--no-check", *options, command, cwd="/tmp")
    for i, host in enumerate(["d1", "d2"]):
        job.wait_for(f"[worker {i} {host}] up")
    return job


def test_a_killed_launcher_leaves_nothing_on_the_hosts(tmp_path):
    job = start(tmp_path)
    job.popen.kill()
    job.wait()
    assert nothing_left(6)
    assert not job.left()


def test_a_killed_ssh_client_ends_the_job(tmp_path):
    job = start(tmp_path)
    (pid,) = job.processes("ssh ", " -- d2 ")
    os.kill(pid, signal.SIGKILL)
    assert job.wait(15) == 255
    assert nothing_left()


@pytest.mark.parametrize("whom", ["supervisor", "sshd"])
def test_what_is_killed_on_a_host_ends_the_job(tmp_path, whom):
    job = start(tmp_path)
    pattern = {"supervisor": "[s]tdin.buffer", "sshd": "[s]shd: ubuntu@notty"}[whom]
    on_host("d2", f"kill -9 $(ps -eo pid=,ppid=,args= | grep '{pattern}' | head -n 1 | cut -c1-8)")
    assert job.wait(15) > 0
    assert "d2:" in job.last_words()
    assert nothing_left()


def test_a_cut_host_is_noticed_and_nothing_runs_on(tmp_path):
    job = start(tmp_path)
    cluster("cut", "d2")
    try:
        assert job.wait(20) == 255
        assert "d2: not heard of for 10 s" in job.last_words()
        end = time.monotonic() + 30
        while re.search("sleep|stdin.buffer", " ".join(processes_of_hosts().values())):
            assert time.monotonic() < end  # they are seen without the cable
            time.sleep(0.1)
    finally:
        cluster("mend", "d2")
    assert nothing_left() and not job.left()


def test_no_value_is_seen_on_any_host(tmp_path):
    secret = "kB7-very-secret"
    options = (*on_hosts(), "--no-check", "--env", "TOKEN", "--job-dir", tmp_path / "logs")
    command = "echo have $TOKEN; sleep 3; exit 3"
    job = Job(tmp_path, "-n", 2, *options, command, env={"TOKEN": secret}, cwd="/tmp")
    job.wait_for("[worker 1 d2] have ***")
    seen = on_host("d1", "ps -eww -o args") + on_host("d2", "ps -eww -o args")
    seen += os.popen("ps -eww -o args").read()
    assert job.wait() == 3
    kept = "".join(path.read_text() for path in (tmp_path / "logs").iterdir())
    assert "have" in kept and secret not in seen + kept + job.text()


def test_only_named_variables_and_those_of_training_travel(tmp_path):
    env = {"SOME_OTHER": "x", "MXNET_X": "1", "MINE": "2"}
    show = "echo =$SOME_OTHER=$MXNET_X=$MINE="
    job = launch(
        tmp_path, "-n", 2, *on_hosts(), "--no-check", "--env", "MINE", show, env=env, cwd="/tmp"
    )
    assert "[worker 1 d2] ==1=2=" in job.text()


def test_the_check_is_a_table_with_a_fix(tmp_path):
    job = launch(tmp_path, "-n", 2, *on_hosts(), "--check", SUM, cwd="/tmp")
    assert job.status == 0
    assert re.search(r"d2 +ok +3\.\d+\.\d+ +1\.9\.1 +\d+ +ok +\d+ GiB free +ok", job.last_words())
    job = launch(tmp_path, "-n", 2, *on_hosts(), "--check", "nothing here", cwd=tmp_path)
    assert job.status == 2
    assert "d2: nothing: command not found: give its full path" in job.last_words()


def test_a_python_is_looked_for_in_the_folder_of_the_job(tmp_path):
    """Not in the home that ssh begins in."""
    job = launch(tmp_path, "-n", 2, *on_hosts(), "--check", ".venv/bin/python", "x.py", cwd=ROOT)
    assert job.status == 0, job.text()
    assert re.search(r"d2 +ok +3\.\d+\.\d+ +1\.9\.1 +\d+ +ok", job.last_words())


def test_a_program_that_may_yet_be_copied_need_not_be_there(tmp_path):
    copying = ("-n", 2, *on_hosts(), "--sync-dst-dir", "/home/ubuntu/not-yet", "--check")
    job = launch(tmp_path, *copying, ROOT / ".venv/bin/python", "train.py", cwd=tmp_path)
    assert job.status == 0, job.text()
    assert re.search(r"d2 +ok +3\.\d+\.\d+ +1\.9\.1 +\d+ +ok", job.last_words())
    job = launch(tmp_path, *copying, "/home/ubuntu/not-yet/train.sh", cwd=tmp_path)
    assert job.status == 0, job.text()
    assert re.search(r"d2 +ok +3\.\d+\.\d+ +not asked +\d+ +not asked", job.last_words())
    on_host("d2", "mkdir -p not-yet/env && cp /bin/true not-yet/env/python")  # of an earlier copy
    job = launch(tmp_path, *copying, "env/python", "train.py", cwd=tmp_path)
    assert job.status == 0, job.text()
    job = launch(tmp_path, *copying, "/usr/bin/python3", "train.py", cwd=tmp_path)
    assert job.status == 2
    assert "d1: /usr/bin/python3: No module named 'mxnet'" in job.last_words()


def test_a_copy_may_bring_mxnet_and_the_command(tmp_path):
    """As in the tutorial of old, whose folder has an `mxnet` package in it."""
    (tmp_path / "mxnet").mkdir()
    (tmp_path / "mxnet" / "__init__.py").touch()
    (tmp_path / "mxnet" / "libinfo.py").write_text("__version__ = '1.9.1'")
    (tmp_path / "run.sh").write_text("#!/bin/sh\nexec /usr/bin/python3 -c 'import mxnet'\n")
    (tmp_path / "run.sh").chmod(0o755)
    copying = ("-n", 2, *on_hosts(), "--sync-dst-dir", "whole")
    python = ("/usr/bin/python3", "-c", "import mxnet; print('found')")
    job = launch(CLUSTER, *copying, "--check", *python, cwd=tmp_path)
    assert re.search(r"d2 +ok +\S+ +comes with the copy +\d+ +ok", job.last_words()), job.text()
    job = launch(CLUSTER, *copying, "--check", "./run.sh", cwd=tmp_path)
    assert re.search(r"d2 +ok +\S+ +not asked +\d+ +comes with the copy", job.last_words())
    job = launch(CLUSTER, *copying, "--no-prepare", *python, cwd=tmp_path)
    workers = re.findall(r"\[worker \d d\d\] found", job.text())  # they end the job
    assert job.status == 0 and len(workers) == 2, job.text()


def test_a_command_that_no_copy_brought_is_told_before_the_start(tmp_path):
    copying = ("-n", 2, *on_hosts(), "--sync-dst-dir", "empty")
    job = launch(CLUSTER, *copying, "./gone.sh", cwd=tmp_path)
    assert job.status == 2
    assert "d2: ./gone.sh: command not found" in job.last_words()


def test_a_host_without_mxnet_is_told(tmp_path):
    job = launch(tmp_path, "-n", 2, *on_hosts(), "/usr/bin/python3 train.py", cwd="/tmp")
    assert job.status == 2
    assert "d1: /usr/bin/python3: No module named 'mxnet'" in job.last_words()
    assert "`make setup` there, and name its .venv/bin/python" in job.last_words()


@pytest.mark.parametrize(
    "folder, why",
    [("/proc/x", "cannot write there"), ("/etc/passwd/x", "no such folder|Not a dir")],
)
def test_a_folder_that_cannot_be_written_is_told(tmp_path, folder, why):
    sync = ("--sync-dst-dir", folder)
    job = launch(tmp_path, "-n", 2, *on_hosts(), *sync, SUM, cwd=PROGRAMS)
    assert job.status == 2
    assert re.search(f"d[12].*({why})", job.last_words())


def test_an_rsync_error_is_an_error(tmp_path):
    sync = ("--sync-dst-dir", "/etc/passwd/x", "--no-check")
    job = launch(tmp_path, "-n", 2, *on_hosts(), *sync, SUM, cwd=PROGRAMS)
    assert job.status == 2
    assert re.search("d[12]: rsync ended with status 1?[0-9]: ", job.last_words())


def test_the_check_tells_of_a_greeting_that_rsync_cannot_read(tmp_path):
    on_host("d2", "mkdir -p .ssh; echo 'echo Welcome' > .ssh/rc")
    sync = ("--sync-dst-dir", "/home/ubuntu/not/yet", "--check")
    try:
        job = launch(tmp_path, "-n", 2, *on_hosts(), *sync, "./x.sh", cwd=PROGRAMS)
    finally:
        on_host("d2", "rm .ssh/rc")
    assert job.status == 2, job.text()
    assert re.search("d2: rsync ended with status .* is your shell clean?", job.last_words())
    assert "`ssh HOST true` must print nothing" in job.last_words()
    assert "d1: rsync" not in job.last_words()


def test_the_check_copies_nothing(tmp_path):
    sync = ("--sync-dst-dir", "/home/ubuntu/none/yet", "--check")
    job = launch(tmp_path, "-n", 2, *on_hosts(), *sync, "./x.sh", cwd=PROGRAMS)
    assert job.status == 0, job.text()
    assert "none" not in on_host("d2", "ls")


def test_the_check_tells_that_rsync_is_missing_here(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("ssh", "python3"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    options = (*on_hosts(), "--sync-dst-dir", "job", "--check")
    job = launch(tmp_path, "-n", 2, *options, "./x.sh", env={"PATH": str(tmp_path / "bin")})
    assert job.status == 2
    assert "rsync is not installed here: apt-get install rsync" in job.last_words()


@pytest.mark.parametrize("more", [(), ("--interface", "ib0,eth0")], ids=["routed", "interface"])
def test_a_dry_run_is_pasted_on_each_host(tmp_path, more):
    sync = ("--sync-dst-dir", "pasted here", "--dry-run", "--env", "DB_TOKEN", *more)
    arguments = ("-n", 3, "-s", 1, *on_hosts(), *sync, "python", "sum_ranks.py")
    said = launch(tmp_path, *arguments, env={"DB_TOKEN": "a b"}, cwd=PROGRAMS).stdout
    here, *blocks = re.split(r"(?m)^# (?=d\d: )", said)
    subprocess.run(["bash", "-e"], input=here, text=True, check=True, timeout=30)
    root = json.loads((CLUSTER / "state.json").read_text())["addresses"]["d1"]
    shells = [pasted(b[:2], f"export DB_TOKEN=x TEST_MARK=x root={root}\n# {b}") for b in blocks]
    first, second = (shell.stdout.read() for shell in shells)
    assert [shell.wait(30) for shell in shells] == [0, 0], first + second
    for rank, out in enumerate([second, first, second]):
        assert f"worker {rank} is rank {rank} of 3, sum 6" in out
    assert nothing_left()


def pasted(name, text):
    """A shell on a host that reads this text."""
    tool = (ROOT / "tools/cluster.py", "--name", CLUSTER.name, "ssh")
    command = ["timeout", "90", sys.executable, *tool]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    shell = subprocess.Popen([*command, name, "bash"], **pipes)
    shell.stdin.write(text)
    shell.stdin.close()
    return shell


def test_what_must_not_be_copied_is_not(tmp_path):
    for name in (".git/x", "data/x", "sub/data/x", "a.params", "keep me.py", "skip.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    os.truncate(tmp_path / "a.params", 100_000_001)
    sync = ("--sync-dst-dir", "/home/ubuntu/a b", "--sync-exclude", "*.txt", "--no-check")
    job = launch(CLUSTER, "-n", 2, *on_hosts(), *sync, "ls -A; ls sub", cwd=tmp_path)
    assert job.status == 0
    shown = [line for line in job.out.read_text().splitlines() if line.startswith("[worker 1 d2]")]
    assert [line.split("] ")[1] for line in shown] == ["data", "keep me.py", "sub", "data"]
    assert "leaves out 1 file above 100 MB: a.params (100 MB; see --sync-max-size)" in job.text()


@pytest.mark.parametrize(
    "host, option, why",
    [
        ("d7", None, "Could not resolve hostname"),
        ("d1:2222", None, "Connection refused"),
        ("d1", "-oPreferredAuthentications=password", "Permission denied"),
        ("d1", "-oUserKnownHostsFile={}/wrong", "Host key verification failed"),
    ],
)
def test_who_cannot_be_reached_is_told_with_a_hint(tmp_path, host, option, why):
    """A wrong name, port, key; a changed host key."""
    known = (CLUSTER / "known_hosts").read_text().splitlines()
    swapped = known[0].split()[0] + " " + " ".join(known[1].split()[1:])
    (CLUSTER / "wrong").write_text(swapped + "\n")
    options = [f"--ssh-option={option.format(CLUSTER)}"] if option else []
    hosts = ("-H", f"d2,{host}", *options, *on_hosts()[2:])
    job = launch(tmp_path, "-n", 2, *hosts, "true", cwd="/tmp")
    assert job.status == 255
    assert re.search(rf"d\d: no connection: .*{why}", job.last_words())
    assert "hint: " in job.last_words()


def test_a_new_host_is_accepted_and_a_strict_configuration_respected(tmp_path):
    known = tmp_path / "known"
    hosts = ("-H", "d1,", f"--ssh-option=-oUserKnownHostsFile={known}", *on_hosts()[2:])
    strict = "--ssh-option=-oStrictHostKeyChecking=yes"
    assert launch(tmp_path, "-n", 1, strict, *hosts, "--no-check", "true", cwd="/tmp").status == 255
    assert launch(tmp_path, "-n", 1, *hosts, "--no-check", "true", cwd="/tmp").status == 0
    assert known.read_text()


@pytest.mark.parametrize("limit", [40, 0])
def test_a_restart_waits_for_a_host_that_is_away(tmp_path, limit):
    options = ("--max-restarts", 1, "--min-uptime", 0, "--start-timeout", limit)
    job = start(tmp_path, *options, command="echo up $LAUNCH_ATTEMPT; exec sleep 600")
    cluster("cut", "d2")
    try:
        job.wait_for("waiting for the host", 40)
    finally:
        cluster("mend", "d2")
    job.wait_for("[worker 1 d2] up 2", 30)
    job.popen.send_signal(signal.SIGTERM)
    assert job.wait(10) == 143
    assert nothing_left()


def test_the_launching_machine_needs_no_mxnet(tmp_path):
    plain = tmp_path / "bin"
    plain.mkdir()
    python = "/usr/bin/python3"
    if not os.path.exists(python):
        pytest.skip("no Python of the system's own")
    command = [python, ROOT / "tools" / "launch.py", "-n", "2", *on_hosts(), "--check", "python"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/tmp", timeout=60)
    assert done.returncode == 0


def test_the_published_example_trains_two_epochs_on_two_hosts(tmp_path):
    before = bytes_of("d2")
    sync = ("--sync-dst-dir", "/home/ubuntu/cifar10_dist", "--launcher", "ssh")
    program = "python /home/ubuntu/cifar10_dist/cifar10_dist.py --data synthetic --num-examples 512"
    program += " --network resnet --num-layers 8 --batch-size 64 --num-epochs 2"
    arguments = ("-n", 2, "-s", 2, *on_hosts(), *sync, program)
    job = launch(tmp_path, *arguments, cwd=ROOT / "cifar10_dist", timeout=120)
    assert job.status == 0
    epochs = accuracies(job.text())
    assert [(len(both), len(set(both))) for both in epochs] == [(2, 1), (2, 1)]
    assert sorted(set(re.findall(r"\[worker (\d d\d)\] Epoch 1", job.text()))) == ["0 d1", "1 d2"]
    assert not os.path.exists("/home/ubuntu/cifar10_dist")
    assert bytes_of("d2") - before > 1_000_000  # the gradients crossed the bridge
    assert "shared memory" not in job.text() and nothing_left()


def test_a_copy_that_does_not_fit_is_told_before_the_start(tmp_path):
    (tmp_path / "big").write_bytes(bytes(300_000))
    on_host("d2", "mkdir -p small && mount -t tmpfs -o size=64k small small")
    sync = ("--sync-dst-dir", "/home/ubuntu/small")
    job = launch(CLUSTER, "-n", 1, "-H", "d2,", on_hosts()[2], *sync, "true", cwd=tmp_path)
    assert job.status == 2
    assert "d2: 0.1 MiB free, the copy needs 0.3 MiB: make room there" in job.last_words()
    (tmp_path / "big").write_bytes(bytes(40_000))
    for _ in range(2):  # the second time it is there already
        job = launch(CLUSTER, "-n", 1, "-H", "d2,", on_hosts()[2], *sync, "true", cwd=tmp_path)
        assert job.status == 0, job.text()


def test_a_host_that_cannot_reach_the_scheduler_is_told(tmp_path):
    address = json.loads((CLUSTER / "state.json").read_text())["addresses"]["d1"]
    on_host("d2", f"ip route add prohibit {address}")
    try:
        job = launch(tmp_path, "-n", 2, *on_hosts(), "--check", "true", cwd="/tmp")
    finally:
        on_host("d2", f"ip route del prohibit {address}")
    assert job.status == 2
    assert "d2: " in job.last_words()
    assert "(a firewall?)" in job.last_words() or "Permission denied" in job.last_words()


def test_an_interface_is_looked_up_on_each_host(tmp_path):
    show = shell(other="echo $DMLC_PS_ROOT_URI; exit 0")
    plain = (*on_hosts(), "--no-check", "--interface")
    assert launch(tmp_path, "-n", 2, *plain, "eth0", show, cwd="/tmp").text().count("] 10.77.") == 5
    job = launch(tmp_path, "-n", 2, *plain, "eth7", show, cwd="/tmp")
    assert job.status == 2
    assert "d1: interface eth7: No such device; there are lo, eth0" in job.last_words()
    env = {"DMLC_INTERFACE": "ib0,eth0"}
    job = launch(tmp_path, "-n", 1, "-H", "d2,", *plain[2:-1], show, cwd="/tmp", env=env)
    assert job.text().count("] 10.77.") == 3


@pytest.fixture
def by_ipv6(tmp_path):
    """The arguments that lead to d1, and to d2 by IPv6."""
    state = json.loads((CLUSTER / "state.json").read_text())
    add = ["ip", "-6", "addr", "add", "fd77::1/64", "dev", state["link"], "nodad"]
    subprocess.run(add, check=True)
    on_host("d2", "ip -6 addr add fd77::2/64 dev eth0 nodad")
    on_host("d2", f"$(command -v sshd) -f {CLUSTER}/d2/sshd_config -o ListenAddress=[fd77::2]:22")
    known = f"--ssh-option=-oUserKnownHostsFile={tmp_path}/known"
    key = f"--ssh-option=-oIdentityFile={CLUSTER}/key"
    return "-H", "d1,[fd77::2] user=ubuntu", known, key, on_hosts()[2], "--no-check"


def test_a_host_without_ipv4_is_refused(tmp_path, by_ipv6):
    assert launch(tmp_path, "-n", 2, *by_ipv6, "true", cwd="/tmp").status == 0
    state = json.loads((CLUSTER / "state.json").read_text())
    inside = ["nsenter", f"--net=/proc/{state['holders']['d2'][0]}/ns/net", "ip", "addr"]
    address = (f"{state['addresses']['d2']}/24", "dev", "eth0")
    subprocess.run([*inside, "del", *address], check=True)
    try:
        job = launch(tmp_path, "-n", 2, *by_ipv6, "true", cwd="/tmp")
    finally:
        subprocess.run([*inside, "add", *address], check=True)
    assert job.status == 2
    assert "fd77::2: no IPv4 address that reaches 10.77." in job.last_words()


def test_a_host_without_python_is_told(tmp_path):
    listen = "-o ListenAddress=0.0.0.0:2222 -o SetEnv=PATH=/nowhere"
    on_host("d2", f"$(command -v sshd) -f {CLUSTER}/d2/sshd_config {listen}")
    job = launch(tmp_path, "-n", 1, "-H", "d2:2222,", on_hosts()[2], "true", cwd="/tmp")
    assert job.status == 127
    assert "d2: no connection: " in job.last_words()
    assert "the host needs python3, 3.6 or later" in job.last_words()

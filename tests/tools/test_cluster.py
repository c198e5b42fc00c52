"""Hosts on one machine: they are real, separate, and gone afterwards."""

import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import cluster_network
from cluster_network import CONGESTION_CONTROLS
from launching import CLUSTER, ROOT, cluster, why_no_cluster

TIME_BUDGET_S = 60
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or ""),
]


@pytest.fixture
def hosts():
    yield cluster("up", "--hosts", "2")
    cluster("down")


def traces():
    """What this module has left: processes (pytest names the test in their environment), files."""
    found = [str(CLUSTER)] * CLUSTER.exists()
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if b"PYTEST_CURRENT_TEST=tests/tools/test_cluster.py::" in path.read_bytes():
                found.append((path.parent / "cmdline").read_text())
        except OSError:  # it has ended
            continue
    return found


def state():
    return json.loads((CLUSTER / "state.json").read_text())


def on_host(name, command):
    return cluster("ssh", name, command).stdout.strip()


def test_a_host_has_its_own_name_home_and_processes(hosts):
    assert on_host("d1", "hostname; whoami; pwd") == "d1\nubuntu\n/home/ubuntu"
    on_host("d1", "touch mine")
    assert on_host("d2", "ls") == ""
    assert not os.path.exists("/home/ubuntu/mine")
    assert "pytest" not in on_host("d1", "ps -eo args")
    assert on_host("d1", "command -v python") == str(pathlib.Path(sys.executable).parent / "python")


LOCKED = "(echo 'ubuntu:!:::::::'; cat /etc/shadow) >$0 && mount --bind $0 /etc/shadow"
BELOW_HOME = f"mount -t tmpfs home /home && mkdir /home/own && mount --bind {ROOT} /home/own"


@pytest.mark.parametrize("prepare, root", [(LOCKED, ROOT), (BELOW_HOME, "/home/own")])
def test_a_host_can_be_used_where(prepare, root, tmp_path):
    """The machine has a user ubuntu who is locked, or the project is below /home."""
    tool = f"{sys.executable} tools/cluster.py --name {CLUSTER.name}"
    script = f"{prepare} && cd {root} && {tool} up --hosts 1 && {tool} ssh d1 ls -d {root}/tools"
    command = ["unshare", "--mount", "sh", "-c", script, str(tmp_path / "shadow")]
    try:
        assert subprocess.check_output(command, text=True).splitlines()[-1] == f"{root}/tools"
    finally:
        cluster("down")


def _hold_often(name, holders, met):
    for _ in range(500):
        with cluster_network.Cluster(name).locked():
            with holders.get_lock():
                holders.value += 1
            met.value = max(met.value, holders.value)
            time.sleep(0.0001)
            with holders.get_lock():
                holders.value -= 1


def test_three_calls_at_once_wait_for_each_other(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster_network, "ROOT", tmp_path)
    fork = multiprocessing.get_context("fork")
    holders, met = fork.Value("i", 0), fork.Value("i", 0)
    calls = [fork.Process(target=_hold_often, args=("toy", holders, met)) for _ in range(3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join(30)
    assert [call.exitcode for call in calls] == [0, 0, 0]
    assert met.value == 1  # the file of the lock goes and comes with each call
    assert not (tmp_path / ".cluster").exists()


def test_a_file_in_the_place_of_the_folder_is_told_and_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(cluster_network, "ROOT", tmp_path)
    (tmp_path / ".cluster").mkdir()
    (tmp_path / ".cluster" / "toy").write_text("mine")
    guard = cluster_network.Cluster("toy").locked()
    with pytest.raises(cluster_network.Problem, match="toy is a file, where the cluster"), guard:
        pass
    assert (tmp_path / ".cluster" / "toy").read_text() == "mine"


def test_a_file_that_cannot_be_written_is_one_line():
    (CLUSTER / "lock").mkdir(parents=True)
    try:
        done = cluster("up", check=False)
    finally:
        shutil.rmtree(CLUSTER)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"Is a directory: '{CLUSTER / 'lock'}'" in done.stderr


def test_a_program_that_fails_is_one_line_below_its_own_and_leaves_nothing(tmp_path, monkeypatch):
    keygen = tmp_path / "ssh-keygen"
    real = shutil.which("ssh-keygen")
    keygen.write_text(f'#!/bin/sh\n[ "$6" != d1 ] && exec {real} "$@"\necho no luck >&2\nexit 7\n')
    keygen.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    done = cluster("up", check=False)
    own, said = done.stderr.splitlines()
    assert (done.returncode, own) == (2, "no luck")
    assert "ssh-keygen" in said and "exit status 7" in said
    assert not traces()


def test_up_twice_is_up_once(hosts):
    before = (CLUSTER / "state.json").read_text()
    cluster("up", "--hosts", "2")
    assert (CLUSTER / "state.json").read_text() == before


def test_the_files_work_from_any_folder(hosts, tmp_path):
    command = ["ssh", "-F", CLUSTER / "ssh_config", "-oBatchMode=yes", "d2", "hostname"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == "d2\n"
    assert (CLUSTER / "hosts").read_text() == "d1\nd2\n"


def test_down_leaves_nothing():
    cluster("up", "--hosts", "2")
    link = pathlib.Path("/sys/class/net", state()["link"])
    assert link.exists() and len(traces()) > 3
    cluster("down")
    assert not link.exists() and not traces()


def test_a_host_that_was_killed_is_told_and_leaves_nothing():
    cluster("up", "--hosts", "2")
    holder = state()["holders"]["d1"][0]
    os.kill(holder, signal.SIGKILL)
    while os.path.exists(f"/proc/{holder}/ns/net"):
        time.sleep(0.02)
    lines = cluster("status").stdout.splitlines()
    assert [line.split()[2].rstrip(",") for line in lines] == ["dead", "up"]
    cluster("down")
    assert not traces()


@pytest.mark.parametrize("file", ["lock", "key.pub", "switch.log", "d1.log", "d2.log"])
def test_an_up_that_is_killed_leaves_files_only(file):
    """At the moment when it has made this one."""
    command = [sys.executable, ROOT / "tools" / "cluster.py", "--name", CLUSTER.name, "up"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not (CLUSTER / file).exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    end = time.monotonic() + 30
    while traces() != [str(CLUSTER)]:
        assert time.monotonic() < end, traces()
        time.sleep(0.05)
    cluster("down")
    assert not traces()


def test_clusters_that_start_at_once_live_side_by_side():
    tool = [sys.executable, str(ROOT / "tools" / "cluster.py"), "--name"]
    others = [[*tool, f"{CLUSTER.name}-{number}"] for number in range(3)]
    starting = [subprocess.Popen([*other, "up", "--hosts", "1"], stdout=-3) for other in others]
    try:
        assert [process.wait(60) for process in starting] == [0] * 3
        asked = [subprocess.check_output([*one, "ssh", "d1", "hostname -I"]) for one in others]
        assert len(set(asked)) == 3
    finally:
        for other in others:
            subprocess.run([*other, "down"], check=True)
    assert not traces()


def test_what_is_left_of_a_cluster_takes_no_cable_of_another(hosts):
    """As after a reboot: the files tell of processes that are gone."""
    link = state()["link"]
    other = ROOT / ".cluster" / f"{CLUSTER.name}-old"
    other.mkdir()
    left = {"holders": {"switch": [1, "long ago"]}, "addresses": {}, "rate": None, "link": link}
    (other / "state.json").write_text(json.dumps(left))
    down = [sys.executable, str(ROOT / "tools" / "cluster.py"), "--name", other.name, "down"]
    subprocess.run(down, check=True)
    assert not other.exists()
    assert on_host("d2", "hostname") == "d2"


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")
def test_who_called_sudo_can_log_in(monkeypatch):
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    cluster("up", "--hosts", "1")
    try:
        assert (CLUSTER / "key").stat().st_uid == 65534
        if not all(folder.stat().st_mode & 1 for folder in CLUSTER.parents):
            return  # nobody reaches this checkout, whoever owns the files
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        ssh = [*nobody, "ssh", "-F", CLUSTER / "ssh_config", "d1", "hostname"]
        assert subprocess.check_output(ssh, text=True).strip() == "d1"
    finally:
        cluster("down")


def test_a_cut_host_is_out_of_reach_until_mended(hosts):
    address = state()["addresses"]["d2"]
    once = f"timeout 3 bash -c 'exec 3<>/dev/tcp/{address}/22' 2>/dev/null"
    in_the_end = f"for i in $(seq 20); do {once} && echo yes && exit; sleep 0.2; done; echo no"
    assert on_host("d1", in_the_end) == "yes"
    cluster("cut", "d2")
    assert on_host("d1", f"{once} && echo yes || echo no") == "no"
    assert "d2" in cluster("status").stdout and " cut," in cluster("status").stdout
    cluster("mend", "d2")
    assert on_host("d1", in_the_end) == "yes"


@pytest.mark.may_skip("a kernel need not have CUBIC")
def test_hosts_share_cables_as_nearly_every_linux_host_does_whatever_the_machine_has(hosts):
    if "cubic" not in CONGESTION_CONTROLS.read_text().split():
        pytest.skip("this kernel has no CUBIC")
    for host in ("d1", "d2"):
        seen = on_host(host, "ss --tcp --info --no-header --oneline state established sport = 22")
        assert seen and all(" cubic " in line for line in seen.splitlines()), seen


def test_the_rate_of_the_cables_is_kept():
    cluster("up", "--hosts", "1", "--rate", "40mbit")
    try:
        began = time.monotonic()
        on_host("d1", "head -c 10000000 /dev/zero")  # 80 megabits
        assert time.monotonic() - began > 1.5
    finally:
        cluster("down")


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["ssh", "d1"], "no host 'd1' is up"),
        (["cut", "d9"], "no host 'd9' is up"),
        (["up", "--hosts", "0"], "--hosts 0: 1 to 200"),
        (["up", "--rate", "quick"], "quick"),
        (["up", "--name", "d1"], "--name 'd1'"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, why):
    done = cluster(*arguments, check=False)
    assert done.returncode == 2
    assert why in done.stderr.splitlines()[-1]
    assert not traces()

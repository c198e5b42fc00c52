"""Hosts on one machine: they are real, separate, and gone afterwards."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cluster_network import CONGESTION_CONTROLS
from launching import CLUSTER, ROOT, cluster, why_no_cluster

TIME_BUDGET_S = 60
SHARES = "cluster"  # modules with the same word run one after the other
pytestmark = pytest.mark.skipif(why_no_cluster() is not None, reason=why_no_cluster() or "")


@pytest.fixture
def hosts():
    yield cluster("up", "--hosts", "2")
    cluster("down")


def traces():
    """What a cluster of the tests would leave: interfaces, processes, files."""
    links = subprocess.check_output(["ip", "-o", "link"], text=True)
    processes = subprocess.check_output(["ps", "-eo", "stat=,args="], text=True).splitlines()
    living = [line for line in processes if not line.startswith("Z")]
    found = [line for line in links.splitlines() if "mxc" in line]
    found += [line for line in living if "cluster_host" in line or "sshd: " in line]
    return found + [str(CLUSTER)] * CLUSTER.exists()


def on_host(name, command):
    return cluster("ssh", name, command).stdout.strip()


def test_a_host_has_its_own_name_home_and_processes(hosts):
    assert on_host("d1", "hostname; whoami; pwd") == "d1\nubuntu\n/home/ubuntu"
    on_host("d1", "touch mine")
    assert on_host("d2", "ls") == ""
    assert not os.path.exists("/home/ubuntu/mine")
    assert "pytest" not in on_host("d1", "ps -eo args")
    assert on_host("d1", "command -v python") == str(pathlib.Path(sys.executable).parent / "python")


def test_up_twice_is_up_once(hosts):
    before = (CLUSTER / "state.json").read_text()
    cluster("up", "--hosts", "2")
    assert (CLUSTER / "state.json").read_text() == before


def test_the_files_work_from_any_folder(hosts, tmp_path):
    command = ["ssh", "-F", CLUSTER / "ssh_config", "-oBatchMode=yes", "d2", "hostname"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True) == "d2\n"
    assert (CLUSTER / "hosts").read_text() == "d1\nd2\n"


def test_down_leaves_nothing():
    before = traces()
    cluster("up", "--hosts", "2")
    assert len(traces()) > len(before)
    cluster("down")
    assert traces() == before


def test_a_host_that_was_killed_is_told_and_leaves_nothing():
    before = traces()
    cluster("up", "--hosts", "2")
    holders = json.loads((CLUSTER / "state.json").read_text())["holders"]
    os.kill(holders["d1"][0], signal.SIGKILL)
    while os.path.exists(f"/proc/{holders['d1'][0]}/ns/net"):
        time.sleep(0.02)
    lines = cluster("status").stdout.splitlines()
    assert [line.split()[2].rstrip(",") for line in lines] == ["dead", "up"]
    cluster("down")
    assert traces() == before


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.5, 0.7])
def test_a_killed_up_leaves_nothing(after_s):
    before = traces()
    command = [sys.executable, ROOT / "tools" / "cluster.py", "--name", "test", "up"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 3
    while set(traces()) - {str(CLUSTER)} - set(before) and time.monotonic() < end:
        time.sleep(0.05)
    done = after_s > 0.5 and (CLUSTER / "state.json").exists()  # it may have been faster
    assert done or set(traces()) - {str(CLUSTER)} <= set(before)
    cluster("down")
    assert traces() == before


def test_two_clusters_live_side_by_side(hosts):
    other = [sys.executable, str(ROOT / "tools" / "cluster.py"), "--name", "test2"]
    subprocess.run([*other, "up", "--hosts", "1"], check=True, stdout=subprocess.DEVNULL)
    try:
        there = subprocess.check_output([*other, "ssh", "d1", "cat /etc/hosts"], text=True)
        assert there.split("\n")[1] != on_host("d1", "cat /etc/hosts").split("\n")[1]
    finally:
        subprocess.run([*other, "down"], check=True)
    assert on_host("d2", "hostname") == "d2"


def test_what_is_left_of_a_cluster_takes_no_cable_of_another(hosts):
    """As after a reboot: the files tell of processes that are gone."""
    link = json.loads((CLUSTER / "state.json").read_text())["link"]
    other = ROOT / ".cluster" / "test3"
    other.mkdir()
    left = {"holders": {"switch": [1, "long ago"]}, "addresses": {}, "rate": None, "link": link}
    (other / "state.json").write_text(json.dumps(left))
    down = [sys.executable, str(ROOT / "tools" / "cluster.py"), "--name", "test3", "down"]
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
    address = json.loads((CLUSTER / "state.json").read_text())["addresses"]["d2"]
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
        assert 1.5 < time.monotonic() - began < 15  # a busy machine took 5.6
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
    before = traces()
    done = cluster(*arguments, check=False)
    assert done.returncode == 2
    assert why in done.stderr.splitlines()[-1]
    assert traces() == before

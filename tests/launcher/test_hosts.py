"""Hosts files, right and wrong; where processes go; which addresses they use."""

import os
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gluon_launch.job import hostlist
from gluon_launch.job.addresses import (
    ELSEWHERE,
    announced_address,
    announced_rank,
    scheduler_address,
)
from gluon_launch.job.hosts import Host, parse_host, read_hosts
from gluon_launch.job.job import distribute
from gluon_launch.job.statuses import UsageError
from gluon_launch.watching.registration import Registration

TIME_BUDGET_S = 10

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,20}", fullmatch=True)
hosts = st.builds(
    Host, names, st.none() | st.integers(22, 65535), st.integers(1, 4096), st.none() | names
)


def written(host):
    """A host as one would write it."""
    port = f":{host.port}" if host.port else ""
    user = f" user={host.user}" if host.user else ""
    return f"{host.name}{port} slots={host.slots}{user}"


@given(hosts)
def test_a_host_is_read_as_it_was_written(host):
    assert parse_host(written(host)) == host


@given(st.text(max_size=60))
def test_any_text_is_a_host_or_a_mistake(text):
    try:
        host = parse_host(text or " x y")
    except UsageError:
        return
    words = [host.name, host.user or "a"]
    assert not any(word.startswith("-") or set(word) & set(" ;|&$`'\"<>\\\n*?()") for word in words)


def test_a_file_may_have_comments_ports_slots_users_and_a_host_twice(tmp_path):
    text = "\ufeff# all\n\nd1 # first\nme@d2:2222\r\n[fd00::7]:22 slots=4 user=ubuntu\nd1"
    (tmp_path / "hosts").write_text(text)
    d1, d2, d3 = Host("d1"), Host("d2", 2222, user="me"), Host("fd00::7", 22, 4, "ubuntu")
    assert read_hosts(str(tmp_path / "hosts")) == [d1, d2, d3, d1]


def test_hosts_are_read_from_the_command_line():
    assert read_hosts("d1,d2:23") == [Host("d1"), Host("d2", 23)]
    many = [f"gpu-node-{number:03}.cluster.example.com" for number in range(20)]
    assert read_hosts(",".join(many)) == [Host(name) for name in many]  # no name of a file


OPEN_MPI = """\
/* all
   of them */
d1 slots=4 max_slots=8
d2 slots = 2 max-slots=4 // two sockets
me@d3 count=2 slots_max=2 sockets=1 cores-per-socket=4 cpu-set=0,1
d4 cpu=3 user_name=me
d5\tmax_cpu=5
^d6
d6
"""


def test_a_hosts_file_of_open_mpi_is_read_in_its_whole_form(tmp_path):
    (tmp_path / "hosts").write_text(OPEN_MPI)
    d1, d2, d3 = Host("d1", slots=4), Host("d2", slots=2), Host("d3", slots=2, user="me")
    d4, d5 = Host("d4", slots=3, user="me"), Host("d5", slots=5)
    assert read_hosts(str(tmp_path / "hosts")) == [d1, d2, d3, d4, d5]


def test_a_hosts_file_of_mpich_has_slots_after_a_colon(tmp_path):
    (tmp_path / "hosts").write_text("d1:4\nd2:2 binding=user:0,1\nd3:22\n[fd00::7]:8\n")
    d1, d2, d3 = Host("d1", slots=4), Host("d2", slots=2), Host("d3", 22)
    assert read_hosts(str(tmp_path / "hosts")) == [d1, d2, d3, Host("fd00::7", slots=8)]


def test_ranges_in_brackets_are_hosts_in_a_file_and_on_the_command_line(tmp_path):
    (tmp_path / "hosts").write_text("d[1-2,7].a.net:23 slots=2\n[fd00::7]\n")
    few = [Host(f"d{number}.a.net", 23, 2) for number in (1, 2, 7)]
    assert read_hosts(str(tmp_path / "hosts")) == [*few, Host("fd00::7")]
    names = [host.name for host in read_hosts("d[1-2,7],[fd00::7],e1")]
    assert names == ["d1", "d2", "d7", "fd00::7", "e1"]
    assert [h.name for h in read_hosts("d[08-10]")] == ["d08", "d09", "d10"]


LISTS = "d[1-4,7],e[08-12]x[1-2] d[1-010] [1-3] d[1-3,2] d[01-3] d[097-100] d1-2 d[001-3]"


@pytest.mark.skipif(not shutil.which("scontrol"), reason="Slurm is not installed")
def test_a_list_is_what_slurm_makes_of_it(tmp_path):
    (tmp_path / "c").write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=localhost\n")
    show = ["scontrol", "show", "hostnames", LISTS.replace(" ", ",")]
    env = {**os.environ, "SLURM_CONF": str(tmp_path / "c")}
    names = subprocess.run(show, env=env, check=True, capture_output=True, text=True, timeout=20)
    assert [host.name for host in read_hosts(LISTS.replace(" ", ","))] == names.stdout.split()


@given(st.text("d1-9,[]:", max_size=20))
def test_any_list_is_short_or_a_mistake(text):
    try:
        assert len(hostlist.expand(text)) <= hostlist.MOST
    except UsageError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "line, why",
    [
        ("d1 slots=x", "slots must be a whole number from 1 to 4096"),
        ("d1 slots=0", "slots must be"),
        ("d1:0", "the port must be"),
        ("d1:x", "the port must be"),
        ("d1:", "the port must be"),
        ("-oProxyCommand=x", "is not a host name"),
        ("d1;reboot", "is not a host name"),
        ("$(reboot)", "is not a host name"),
        ("d1 user=a;b", "letters, digits"),
        ("d1 user=-l", "letters, digits"),
        ("d1 slot=2", "is not known"),
        ("d1 slots=1 slots=2", "given twice"),
        ("fd00::7", "stands in brackets"),
        ("d0 slots=2", "is on"),
        ("d1 slots=4 max_slots=2", "max_slots=2 is less than slots=4"),
        ("d1:4 slots=4", "slots is given twice"),
        ("+n0", "is not a host name"),
        ("d[4-1]", "'4-1' in brackets is no number and no range"),
        ("d[1,]", "'' in brackets"),
        ("d[1-2", "a bracket is missing"),
        ("d1]", "a bracket is missing"),
        ("d[1-99999999]", "more than 10000 hosts"),
        ("d[1-999]e[1-999]", "more than 10000 hosts"),
        ("[10.0.0.7]", "in brackets is no number"),
        ("[fd00::7::1]", "is not an IPv6 address"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, line, why):
    file = tmp_path / "hosts"
    file.write_text(f"d0\n\n{line}\n")
    with pytest.raises(UsageError, match=why) as caught:
        read_hosts(str(file))
    assert str(caught.value).startswith(f"{file}:3: {line!r}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"# none\n\n", b"\xff\xfe\0d"])
def test_a_file_without_hosts_is_a_mistake(tmp_path, content):
    file = tmp_path / "hosts"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"no hosts in it|not a text file"):
        read_hosts(str(file))


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 9))
def test_round_robin_is_the_published_placement(num_workers, num_servers, num_hosts):
    hosts = [Host(f"h{i}") for i in range(num_hosts)]
    scheduler, *others = distribute(num_workers, num_servers, hosts)
    assert scheduler.host == hosts[0]
    for i, process in enumerate(others):  # servers, then workers, as the old launcher dealt them
        assert process.host == hosts[i % num_hosts]
        assert process.name == (f"server-{i}" if i < num_servers else f"worker-{i - num_servers}")


def test_fill_gives_a_host_as_many_workers_as_it_has_slots():
    hosts = [Host("a", slots=2), Host("b"), Host("c", slots=4)]
    processes = distribute(4, 2, hosts, "fill")
    assert [p.host.name for p in processes if p.role == "worker"] == ["a", "a", "b", "c"]
    assert [p.host.name for p in processes if p.role == "server"] == ["a", "b"]
    with pytest.raises(UsageError, match="8 workers, but the hosts have 7 slots"):
        distribute(8, 1, hosts, "fill")


@given(st.lists(st.ip_addresses(v=4), min_size=1, max_size=30))
def test_announced_addresses_sort_by_rank_for_any_addresses(addresses):
    """ps-lite sorts by the announced address as a string, highest first."""
    addresses = [str(a) for a in addresses if not str(a).startswith("0.")]
    announced = [announced_address(a, rank) for rank, a in enumerate(addresses)]
    assert sorted(announced, reverse=True) == announced
    assert [announced_rank(a) for a in announced] == list(range(len(addresses)))


@pytest.mark.parametrize(
    "reached, address, toward",
    [
        (["10.0.0.9", "10.0.0.10"], "10.0.0.9", None),
        (["10.0.0.9", "fd00::2"], "10.0.0.9", None),
        (["fd00::1", "10.0.0.10"], "fd00::1", "10.0.0.10"),
        (["fd00::1", "fd00::2"], "fd00::1", ELSEWHERE),
        (["127.0.0.1", "10.0.0.10"], "127.0.0.1", "10.0.0.10"),
        (["127.0.0.1", "127.0.0.1"], "127.0.0.1", None),
        (["::1", "127.0.0.1"], "::1", ELSEWHERE),
        (["d1", "d1", "d2"], "d1", "d2"),  # two containers on d1: 127.0.1.1, as it knows itself
        (["d1", "d1"], "d1", "d1"),
    ],
)
def test_the_scheduler_has_an_address_that_all_can_use(reached, address, toward):
    assert scheduler_address(reached) == (address, toward)


def test_parts_of_the_lines_that_ps_lite_writes_are_known():
    """Two of its threads may write at once: then a line comes in pieces."""
    begin = "[12:17:36] ../3rdparty/ps-lite/src/van.cc:394: ? => 9. Meta: request=0, "
    end = "timestamp=0, control={ cmd=ADD_NODE, node={ role=worker, id=9, ip=0177.00.00.01 } }"
    for part in (begin + end, begin, end):
        assert Registration().take(part)
    assert not Registration().take("a line of the program: request=0")
    nodes = Registration()
    assert not nodes.take("")  # before ps-lite has said anything, it is the program's
    assert nodes.take(
        "ps-lite/src/van.cc:1: ? => 1. cmd=ADD_NODE, node={ role=worker, ip=0177.00.00.01, }"
    )
    assert nodes.take("")


@pytest.mark.parametrize("node, wrong", [(9, []), (11, ["worker-0"])])
def test_a_node_that_was_given_another_rank_than_its_own_is_named(node, wrong):
    nodes = Registration()
    where = "role=worker, ip=0177.00.00.01, port=9"
    assert nodes.take(f"ps-lite/src/van.cc:1: assign rank={node} to node {where}")
    assert nodes.wrong() == wrong

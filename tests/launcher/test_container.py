"""What YARN runs in a container: it calls back, and becomes a supervisor. Here without YARN."""

import json
import secrets
import socket
import subprocess
import sys

import pytest

from gluon_launch.remote.bootstrap import LOADER, REMOTE
from gluon_launch.remote.container import agree

TIME_BUDGET_S = 10
WAITING = 30  # orders, one for each second that it came late


def reports(folder, archives=(), links=(), closed=""):
    """What a container tells a launcher that knows its key, up to the end of the connection."""
    key = secrets.token_hex(32)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        values = ["127.0.0.1"], listener.getsockname()[1], key, list(archives), dict(links)
        call = f"main({', '.join(map(repr, values))})\n"
        (folder / "script.py").write_text((REMOTE / "container.py").read_text() + "\n\n" + call)
        command = f"exec {sys.executable} -I script.py {closed}"
        with subprocess.Popen(["sh", "-c", command], cwd=folder) as process:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                connection.settimeout(10)
                assert agree(connection, bytes.fromhex(key), b"launcher", b"container")
                orders = b'{"order": "beat"}\n' * WAITING + b'{"order": "leave"}\n'
                connection.sendall(LOADER.encode() + orders)
                said = [json.loads(line) for line in lines if line.strip()]
            return said, process.wait(10)


@pytest.mark.parametrize("closed", ["", "<&-"])
def test_it_becomes_a_supervisor_also_without_a_standard_input(tmp_path, closed):
    """YARN's LinuxContainerExecutor closes it."""
    said, status = reports(tmp_path, closed=closed)
    assert [report["report"] for report in said] == ["ready", "leaving", "done"]
    assert (said[1]["why"], status) == ("it was told to", 0)


def test_it_tells_of_an_archive_that_cannot_be_unpacked(tmp_path):
    (tmp_path / "a.zip").write_text("no archive\n")
    said, _ = reports(tmp_path, archives=["a.zip"])
    assert [report["report"] for report in said] == ["leaving"]
    assert "a.zip" in said[0]["why"]


def test_it_tells_of_a_name_that_is_taken(tmp_path):
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").touch()
    said, _ = reports(tmp_path, links={"b.py": "a.py"})
    assert [report["report"] for report in said] == ["leaving"]
    assert "b.py" in said[0]["why"]

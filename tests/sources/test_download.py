"""Downloads from a real server on this machine."""

import errno
import functools
import hashlib
import http.server
import io
import json
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

from gluon_dist.common.errors import UsageError

import pytest

from sources import download
from sources.addresses import CIFAR10, Collection
from sources.download import DownloadError

TIME_BUDGET_S = 10
FILES = {"a.bin": b"first" * 1000, "b.bin": b"second" * 1000}


def sha1(data):
    return hashlib.sha1(data).hexdigest()


def archive(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def server(tmp_path):
    """A web server for the files of a folder, which writes down what was asked of it."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_request(self, *args):
            asked.append(self.path)

        def log_error(self, *args):
            pass

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{httpd.server_port}", asked
        httpd.shutdown()
        thread.join()


def collection(data, *urls):
    files = {name: sha1(content) for name, content in FILES.items()}
    return Collection("Tiny", files, urls, "tiny.tar.gz", sha1(data))


def start_fetch(folder, collection):
    argv = [sys.executable, "tests/programs/fetch_tiny.py", str(folder), json.dumps(collection)]
    return subprocess.Popen(argv, cwd=Path(__file__).resolve().parents[2])


def names(folder):
    return sorted(p.name for p in Path(folder).iterdir() if not p.name.startswith(".lock"))


def test_a_wrong_checksum_is_said_and_the_next_address_tried(server, tmp_path, capsys):
    folder, url, _ = server
    good = archive({f"tiny/{name}": data for name, data in FILES.items()})
    for place, content in ("good", good), ("bad", good[:-1] + b"x"):
        (folder / place).mkdir()
        (folder / place / "tiny.tar.gz").write_bytes(content)
    tiny = collection(good, f"{url}/bad", f"{url}/none", f"{url}/good")
    assert download.fetch(tmp_path / "data", tiny) == tmp_path / "data"
    assert {n: (tmp_path / "data" / n).read_bytes() for n in FILES} == FILES
    said = capsys.readouterr().err
    assert "bad/tiny.tar.gz: wrong SHA-1" in said and "none/tiny.tar.gz: File not found" in said
    assert names(tmp_path / "data") == sorted(FILES)


def test_four_processes_at_once_download_once(server, tmp_path):
    folder, url, asked = server
    good = archive(FILES)
    (folder / "tiny.tar.gz").write_bytes(good)
    sums = {name: sha1(data) for name, data in FILES.items()}
    tiny = ["Tiny", sums, [url], "tiny.tar.gz", sha1(good)]
    started = [start_fetch(tmp_path / "data", tiny) for _ in range(4)]
    assert [p.wait(timeout=60) for p in started] == [0] * 4
    assert asked == ["/tiny.tar.gz"]


def test_workers_that_waited_for_a_failed_download_do_not_try_again(server, tmp_path):
    _, url, asked = server
    tiny = collection(b"", f"{url}/none")
    for _ in range(2):
        with pytest.raises(DownloadError, match="no address gave Tiny"):
            download.fetch(tmp_path / "data", tiny)
    assert asked == ["/none/tiny.tar.gz"]


def test_a_download_that_is_killed_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = start_fetch(tmp_path / "data", ["Tiny", {"a.bin": ""}, [url]])
        with listener.accept()[0] as connection:
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"half")
            process.kill()
            process.wait(timeout=60)
    assert names(tmp_path / "data") == []


def test_on_a_disk_without_locks_each_process_downloads_for_itself(server, tmp_path, monkeypatch):
    """As on Lustre without its option for locks."""

    def no_lock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    folder, url, _ = server
    (folder / "tiny.tar.gz").write_bytes(archive(FILES))
    monkeypatch.setattr(download.fcntl, "flock", no_lock)
    tiny = collection((folder / "tiny.tar.gz").read_bytes(), url)
    assert download.fetch(tmp_path / "data", tiny) == tmp_path / "data"
    assert names(tmp_path / "data") == ["a.bin", "b.bin"]


def test_files_at_hand_that_cannot_be_read_are_the_users_mistake(tmp_path, monkeypatch):
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)  # root may read everything
    with pytest.raises(UsageError, match=r"--data-dir .*a.bin: Permission denied"):
        download.fetch(tmp_path, collection(b"", "http://127.0.0.1:1"))


def test_files_at_hand_are_taken_without_asking_anyone(tmp_path):
    place = tmp_path / "data" / "tiny-bin"
    place.mkdir(parents=True)
    for name, data in FILES.items():
        (place / name).write_bytes(data)
    assert download.fetch(tmp_path / "data", collection(b"", "http://127.0.0.1:1")) == place


def test_a_damaged_file_at_hand_is_named_and_not_used(tmp_path, capsys):
    for name in FILES:
        (tmp_path / name).write_bytes(b"damaged")
    assert download.find_files(tmp_path, collection(b"")) is None
    assert "a.bin: wrong SHA-1, not used" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../c.bin", "/tmp/c.bin", "x/../../c.bin"])
def test_an_archive_cannot_write_outside_of_the_folder(server, tmp_path, name):
    folder, url, _ = server
    bad = archive({**FILES, name: b"evil"})
    (folder / "tiny.tar.gz").write_bytes(bad)
    sums = {**collection(bad).files, "c.bin": sha1(b"evil")}
    tiny = Collection("Tiny", sums, (url,), "tiny.tar.gz", sha1(bad))
    inside = tmp_path / "in" / "side"
    assert download.fetch(inside, tiny) == inside
    assert names(inside) == ["a.bin", "b.bin", "c.bin"]
    assert not [path for path in tmp_path.rglob("c.bin") if path.parent != inside]
    assert not Path("/tmp/c.bin").exists()


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"secret")
    with tarfile.open(tmp_path / "x.tar", "w") as tar:
        link = tarfile.TarInfo("a.bin")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        tar.addfile(link)
    with pytest.raises(KeyError):
        download.unpack((tmp_path / "x.tar").read_bytes(), ["a.bin"])


def test_a_mirror_is_asked_first(monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://mirror/")
    first, second, *_ = CIFAR10.addresses_of("x")
    assert first == "http://mirror/gluon/dataset/cifar10/x"
    assert second == f"{CIFAR10.urls[0]}/x"


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        download.fetch(tmp_path / "file" / "data", collection(b"", "http://127.0.0.1:1"))


def test_single_files_are_kept_as_they_come(server, tmp_path, capsys):
    folder, url, asked = server
    for place in "bad", "good":
        (folder / place).mkdir()
        for name, data in FILES.items():
            (folder / place / name).write_bytes(data if place == "good" else b"garbage")
    sums = {name: sha1(data) for name, data in FILES.items()}
    tiny = Collection("Tiny", sums, (f"{url}/bad", f"{url}/good"))
    for _ in range(2):
        assert download.fetch(tmp_path / "data", tiny) == tmp_path / "data"
    assert {n: (tmp_path / "data" / n).read_bytes() for n in FILES} == FILES
    assert f"bad/a.bin: wrong SHA-1 {sha1(b'garbage')}" in capsys.readouterr().err
    assert asked == [f"/{place}/{name}" for name in FILES for place in ("bad", "good")]

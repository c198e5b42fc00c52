"""Downloads from a real server on this machine."""

import errno
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from process.failure import UsageError
from sources import download
from sources.download import Collection, DownloadError

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
    argv = [sys.executable, "tests/programs/fetch_tiny.py", str(tmp_path / "data")]
    sums = {name: sha1(data) for name, data in FILES.items()}
    argv.append(json.dumps(["Tiny", sums, [url], "tiny.tar.gz", sha1(good)]))
    root = Path(__file__).resolve().parents[2]
    started = [subprocess.Popen(argv, cwd=root) for _ in range(4)]
    assert [p.wait(timeout=60) for p in started] == [0] * 4
    assert asked == ["/tiny.tar.gz"]


def test_workers_that_waited_for_a_failed_download_do_not_try_again(server, tmp_path):
    _, url, asked = server
    tiny = collection(b"", f"{url}/none")
    for _ in range(2):
        with pytest.raises(DownloadError, match="no address gave Tiny"):
            download.fetch(tmp_path / "data", tiny)
    assert asked == ["/none/tiny.tar.gz"]


def test_what_a_killed_download_left_is_removed(server, tmp_path):
    folder, url, _ = server
    (folder / "tiny.tar.gz").write_bytes(archive(FILES))
    for name in (".download-abcd", ".part-efgh"):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".part-of-another-host").write_bytes(b"half")
    tiny = collection((folder / "tiny.tar.gz").read_bytes(), url)
    assert download.fetch(tmp_path, tiny) == tmp_path
    assert names(tmp_path) == [".part-of-another-host", "a.bin", "b.bin", "served"]


def test_on_a_disk_without_locks_each_process_downloads_for_itself(server, tmp_path, monkeypatch):
    """As on Lustre without its option for locks."""

    def no_lock(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    folder, url, _ = server
    (folder / "tiny.tar.gz").write_bytes(archive(FILES))
    monkeypatch.setattr(download.fcntl, "flock", no_lock)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / ".part-of-another").write_bytes(b"half")
    tiny = collection((folder / "tiny.tar.gz").read_bytes(), url)
    assert download.fetch(tmp_path / "data", tiny) == tmp_path / "data"
    assert names(tmp_path / "data") == [".part-of-another", "a.bin", "b.bin"]


def test_files_at_hand_that_cannot_be_read_are_the_users_mistake(tmp_path, monkeypatch):
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)

    def refuse(path, is_gzip):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(download, "_sha1", refuse)  # root may read everything
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


@pytest.mark.parametrize("name", ["../a.bin", "/tmp/a.bin", "x/../../a.bin"])
def test_an_archive_that_would_leave_the_folder_is_refused_whole(tmp_path, name):
    inside = tmp_path / "in" / "side"
    inside.mkdir(parents=True)
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(archive({**FILES, name: b"evil"}))
    with pytest.raises(DownloadError, match="leaves the folder"):
        download.unpack(bad, inside, {n: sha1(d) for n, d in FILES.items()})
    assert names(inside) == []


def test_a_missing_or_wrong_member_leaves_no_file_of_that_name(tmp_path):
    path = tmp_path / "x.tar.gz"
    path.write_bytes(archive({"a.bin": FILES["a.bin"], "b.bin": b"wrong"}))
    with pytest.raises(DownloadError, match=r"b.bin has the wrong SHA-1"):
        download.unpack(path, tmp_path, {n: sha1(d) for n, d in FILES.items()})
    with pytest.raises(DownloadError, match=r"c.bin is not in it"):
        download.unpack(path, tmp_path, {"c.bin": ""})
    assert names(tmp_path) == ["a.bin", "x.tar.gz"]


def test_a_folder_that_cannot_be_written_is_the_users_mistake(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        download.fetch(tmp_path / "file" / "data", collection(b"", "http://127.0.0.1:1"))


def test_single_files_are_kept_packed_and_checked_by_what_is_inside(server, tmp_path, capsys):
    folder, url, asked = server
    for place, level in ("bad", None), ("good", 1):
        (folder / place).mkdir()
        for name, data in FILES.items():
            packed = gzip.compress(data, level) if level else b"garbage"
            (folder / place / f"{name}.gz").write_bytes(packed)
    sums = {name: sha1(data) for name, data in FILES.items()}
    tiny = Collection("Tiny", sums, (f"{url}/bad", f"{url}/good"))
    for _ in range(2):
        assert download.fetch(tmp_path / "data", tiny) == tmp_path / "data"
    assert names(tmp_path / "data") == ["a.bin.gz", "b.bin.gz"]
    assert gzip.decompress((tmp_path / "data" / "b.bin.gz").read_bytes()) == FILES["b.bin"]
    assert "bad/a.bin.gz: wrong SHA-1 of no gzip file" in capsys.readouterr().err
    assert asked == [f"/{place}/{name}.gz" for name in FILES for place in ("bad", "good")]

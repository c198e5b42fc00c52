"""The digits of the notebooks: downloaded and checked, or those of scikit-learn."""

import dataclasses
import functools
import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

import digits
from sources.addresses import Collection

TIME_BUDGET_S = 10
IMAGES = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
LABELS = np.array([7, 3], np.uint8)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A server with two images to train on and two to test on; its folder."""
    folder, sums = tmp_path / "server", {}
    folder.mkdir()
    for name in digits.MNIST.files:
        images = "images" in name
        content = bytes(16 if images else 8) + (IMAGES if images else LABELS).tobytes()
        sums[name] = hashlib.sha1(content).hexdigest()
        (folder / name).write_bytes(gzip.compress(content))
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        urls = ("http://127.0.0.1:9", f"http://127.0.0.1:{httpd.server_port}")
        monkeypatch.setattr(digits, "MNIST", Collection("MNIST", sums, urls))
        yield folder
        httpd.shutdown()


def without_server(monkeypatch):
    nobody = dataclasses.replace(digits.MNIST, urls=("http://127.0.0.1:9",))
    monkeypatch.setattr(digits, "MNIST", nobody)


def test_mnist_is_downloaded_once(server, tmp_path, monkeypatch):
    first = digits.load_digits(tmp_path / "mnist")
    without_server(monkeypatch)
    again = digits.load_digits(tmp_path / "mnist")
    for loaded in first, again:
        assert loaded.name == "MNIST"
        assert (loaded.train_images == IMAGES).all() and (loaded.test_labels == LABELS).all()
    names = {path.name for path in (tmp_path / "mnist").iterdir()} - {".lock"}
    assert names == set(digits.MNIST.files)


@pytest.mark.parametrize("harm", [b"", b"garbage", None])
def test_a_broken_file_is_named_and_the_small_digits_are_taken(
    server, tmp_path, capsys, monkeypatch, harm
):
    folder = tmp_path / "mnist"
    digits.load_digits(folder)
    file = folder / next(iter(digits.MNIST.files))
    file.write_bytes(file.read_bytes()[:50] if harm is None else harm)
    without_server(monkeypatch)
    assert digits.load_digits(folder).name == "scikit-learn digits"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"No MNIST ({file}: wrong SHA-1, not used; http://127.0.0.1:9/")


def test_files_that_somebody_packed_again_are_taken(server, tmp_path, monkeypatch):
    for file in server.iterdir():
        again = gzip.compress(gzip.decompress(file.read_bytes()), compresslevel=1, mtime=7)
        assert again != file.read_bytes()
        (tmp_path / file.name).write_bytes(again)
    without_server(monkeypatch)
    assert digits.load_digits(tmp_path).name == "MNIST"


def test_a_broken_file_is_downloaded_again(server, tmp_path):
    folder = tmp_path / "mnist"
    digits.load_digits(folder)
    (folder / next(iter(digits.MNIST.files))).write_bytes(b"garbage")
    assert digits.load_digits(folder).name == "MNIST"


def test_a_server_that_gives_something_else_leaves_no_file(server, tmp_path):
    for file in server.iterdir():
        file.write_bytes(gzip.compress(b"not these"))
    assert digits.load_digits(tmp_path / "mnist").name == "scikit-learn digits"
    assert not list((tmp_path / "mnist").glob("*.gz"))


def test_the_small_digits_look_like_mnist(monkeypatch, tmp_path):
    without_server(monkeypatch)
    _, train_images, train_labels, test_images, test_labels = digits.load_digits(tmp_path)
    assert len(train_images) + len(test_images) == 1797
    for images, labels in (train_images, train_labels), (test_images, test_labels):
        assert images.shape == (len(labels), 28, 28) and images.dtype == np.uint8
        assert set(labels) == set(range(10))
    assert train_images.min() == 0 and train_images.max() == 255

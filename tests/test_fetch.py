"""Downloads: whole and checked, or one line and no file."""

import dataclasses
import hashlib
import io
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from command import assert_refused
from neuralmjp import fetch as module
from neuralmjp.errors import InputError
from neuralmjp.fetch import SOURCES, Source, fetch
from neuralmjp.io import read


def stand_in(n_frames=100, n_series=3) -> bytes:
    file = io.BytesIO()
    rng = np.random.default_rng(0)
    np.savez(file, *rng.uniform(-np.pi, np.pi, (n_series, n_frames, 2)).astype(np.float32))
    return file.getvalue()


CONTENT = stand_in()


@pytest.fixture
def source():
    """A server on this machine: the file itself, one cut short, one that is not there, one that never ends."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/missing":
                self.send_error(404)
                return
            self.send_response(200)
            if self.path != "/endless":
                self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            if self.path == "/endless":
                self.wfile.write(CONTENT * 50)
            self.wfile.write(CONTENT[: len(CONTENT) // 2] if self.path == "/short" else CONTENT)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    yield Source(f"{url}/file", len(CONTENT), hashlib.md5(CONTENT).hexdigest(), (100, 2), 3)
    server.shutdown()
    server.server_close()
    thread.join()


def at(source: Source, page: str) -> Source:
    return dataclasses.replace(source, url=source.url.replace("/file", page))


def test_the_file_arrives_whole(source, tmp_path):
    shares = []
    sha256 = fetch("adp", tmp_path / "adp.npz", source=source, progress=lambda _, share: shares.append(share))
    assert (tmp_path / "adp.npz").read_bytes() == CONTENT
    assert sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert shares[-1] == 1
    assert read(tmp_path / "adp.npz").lengths.tolist() == [100, 100, 100]


REFUSED = {
    "cut short": (lambda s: at(s, "/short"), "cut short after|broke off"),
    "not there": (lambda s: at(s, "/missing"), "the server answers 404"),
    "endless": (lambda s: at(s, "/endless"), "not the file that its catalogue describes|broke off"),
    "checksum": (lambda s: dataclasses.replace(s, md5="0" * 32), "other checksum"),
    "shapes": (lambda s: dataclasses.replace(s, shape=(99, 2)), r"does not hold 3 arrays of shape \(99, 2\)"),
    "arrays": (lambda s: dataclasses.replace(s, n_series=2), "does not hold 2 arrays"),
}


@pytest.mark.parametrize(("changed", "what"), REFUSED.values(), ids=REFUSED)
def test_nothing_is_left_of_a_bad_one(source, tmp_path, changed, what):
    out = tmp_path / "adp.npz"
    out.write_text("what was there before")
    with pytest.raises(InputError, match=what) as caught:
        fetch("adp", out, source=changed(source))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["adp.npz"]
    assert out.read_text() == "what was there before"


def test_no_network(run, tmp_path, monkeypatch):
    with socket.socket() as taken:  # a port at which nobody listens
        taken.bind(("127.0.0.1", 0))
        nobody = dataclasses.replace(SOURCES["adp"], url=f"http://127.0.0.1:{taken.getsockname()[1]}/x.npz")
        monkeypatch.setitem(module.SOURCES, "adp", nobody)
        assert_refused(run("fetch", "adp", "--out", "adp.npz"), "cannot be reached", "is this machine online?")
    assert not list(tmp_path.iterdir())


def test_command(run, source, tmp_path, monkeypatch):
    monkeypatch.setitem(module.SOURCES, "adp", source)
    ended = run("fetch", "adp", "--out", "adp.npz")
    assert (ended.status, ended.err) == (0, "")
    assert hashlib.sha256(CONTENT).hexdigest() in ended.out
    assert_refused(run("fetch", "adp", "--out", "adp.csv"), "is an .npz file")
    assert_refused(run("fetch", "sdp", "--out", "x.npz"), "no data set 'sdp'; there is adp")
    assert_refused(run("fetch", "adp", "--out", "no/folder/x.npz"), "cannot be written")


def test_what_the_catalogue_says_fits_together():
    """Three arrays in single precision, and a little for names."""
    known = SOURCES["adp"]
    numbers = 4 * known.n_series * known.shape[0] * known.shape[1]
    assert 0 < known.n_bytes - numbers < 1000

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A few files of a wheel are read where it lies, on an index of this machine."""

import contextlib
import functools
import http.server
import os
import pathlib
import threading
from collections.abc import Iterator

import pytest

import releases
import remote_wheel
import stock_wheel
from build_error import BuildError
from fakes import make_zip

MEMBER = "tensorflow/__init__.py"
LARGE = 1 << 20


class Index(http.server.SimpleHTTPRequestHandler):
    """Serves files as package indexes do: parts of them, if asked for."""

    sent = 0
    parts = True

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        path = pathlib.Path(self.translate_path(self.path))
        if wanted is None or not self.parts or path.is_dir():
            with contextlib.suppress(BrokenPipeError):  # the client wants no more
                super().do_GET()
            return
        data = path.read_bytes()
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(data) - int(last)
        end = min(int(last) + 1 if first and last else len(data), len(data))
        Index.sent += end - start
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(data[start:end])


@pytest.fixture
def index(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An index with one wheel, which is a release's."""
    folder = tmp_path / "index" / "tensorflow"
    folder.mkdir(parents=True)
    name = "tensorflow-9.9.0-cp311-cp311-any.whl"
    files: dict[str, str | bytes] = {
        "tensorflow/large.bin": os.urandom(LARGE),
        MEMBER: "import os\n",
    }
    digest = stock_wheel.sha256_of(make_zip(folder / name, files))
    page = f'<html><body><a href="{name}#sha256={digest}">{name}</a></body></html>'
    (folder / "index.html").write_text(page)
    monkeypatch.setitem(releases.RELEASES, "9.9.0", releases.Release("any", {"cp311": digest}))
    monkeypatch.setenv("TFMS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Index, "sent", 0)
    handler = functools.partial(Index, directory=str(tmp_path / "index"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def read(index: str, tag: str = "cp311") -> bytes:
    with remote_wheel.opened(tag, "9.9.0", index) as wheel:
        return wheel.read(MEMBER)


def test_reads_a_file_and_not_the_rest(index: str) -> None:
    assert read(index) == b"import os\n"
    assert 0 < Index.sent < LARGE / 2


def test_reads_the_cache_if_the_wheel_is_there(index: str, tmp_path: pathlib.Path) -> None:
    digest = releases.RELEASES["9.9.0"].sha256["cp311"]
    cached = stock_wheel.cache_folder() / "wheels" / digest
    cached.mkdir(parents=True)
    make_zip(cached / stock_wheel.wheel_name("cp311", "9.9.0"), {MEMBER: "cached\n"})
    assert read(index) == b"cached\n"
    assert Index.sent == 0


def test_the_index_must_know_the_pinned_hash(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(releases.RELEASES, "9.9.0", releases.Release("any", {"cp311": "0" * 64}))
    with pytest.raises(BuildError, match=r"but 0{64} is pinned in build/releases\.py"):
        read(index)


def test_a_failure_says_what_else_to_do(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Index, "parts", False)
    for url in (index, f"{index}elsewhere/", "http://127.0.0.1:9/"):
        with pytest.raises(BuildError, match="stock_wheel.py fetch --release 9.9.0"):
            read(url)

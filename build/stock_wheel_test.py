# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fakes
import stock_wheel
from build_error import BuildError
from releases import BASE, RELEASES

SCRIPT = pathlib.Path(stock_wheel.__file__)
# pip's stand-in unpacks a part of the wheel, and waits.
PIP = """
import pathlib, tempfile, time
pathlib.Path(tempfile.mkdtemp(prefix="pip-"), "part").touch()
time.sleep(60)
"""
# Runs prepare, with another hash pinned.
PREPARE = """
import pathlib, sys
import stock_wheel
from releases import BASE, RELEASES
RELEASES[BASE].sha256["cp311"] = sys.argv[1]
stock_wheel.prepare("cp311", pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
"""


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache that has a small cp311 wheel, and its hash pinned."""
    folder = tmp_path / "cache"
    expected = hashlib.sha256(fakes.make_wheel(tmp_path).read_bytes()).hexdigest()
    (folder / "wheels" / expected).mkdir(parents=True)
    (tmp_path / fakes.STOCK_NAME).rename(folder / "wheels" / expected / fakes.STOCK_NAME)
    monkeypatch.setitem(RELEASES[BASE].sha256, "cp311", expected)
    monkeypatch.setenv("TFMS_CACHE", str(folder))
    return folder


def make_patches(tmp_path: pathlib.Path) -> pathlib.Path:
    patches = tmp_path / "patches"
    patches.mkdir()
    (patches / "series").write_text("one.patch\n")
    name = "tensorflow/__init__.py"
    hunk = "@@ -1,1 +1,2 @@\n import os\n+import sys\n"
    (patches / "one.patch").write_text(f"--- a/{name}\n+++ b/{name}\n{hunk}")
    return patches


def test_a_downloaded_wheel_with_the_wrong_hash_stays_out_of_the_cache(
    cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, pinned = RELEASES[BASE].sha256["cp311"], "1" * 64
    monkeypatch.setitem(RELEASES[BASE].sha256, "cp312", pinned)
    monkeypatch.setattr(stock_wheel, "download", lambda *given: fakes.make_wheel(given[3]))
    with pytest.raises(BuildError, match=f"SHA-256 {known}, but {pinned} is pinned"):
        stock_wheel.fetch("cp312", cache)
    assert not list((cache / "wheels" / pinned).iterdir())


def test_no_network_is_one_error_that_says_what_to_do(tmp_path: pathlib.Path) -> None:
    environment = dict(os.environ, TFMS_CACHE=str(tmp_path), PIP_NO_INDEX="1")
    environment.pop("PIP_FIND_LINKS", None)
    environment["PIP_CONFIG_FILE"] = os.devnull
    command = [sys.executable, str(SCRIPT), "fetch", "--python", "cp312"]
    result = fakes.run(command, environment)
    assert result.returncode == 1
    assert result.stderr.startswith("error: pip could not download tensorflow==2.21.0 for cp312:")
    assert "Check the network" in result.stderr
    assert "Traceback" not in result.stderr


def test_no_disk_tells_how_much_is_needed(
    cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(tmp_path))(100, 90, 10)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(BuildError, match="GB free; unpacking .* takes .*GB"):
        stock_wheel.prepare("cp311", make_patches(tmp_path), tmp_path / "out")


def test_prepare_makes_what_bazel_needs(cache: pathlib.Path, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    stock_wheel.prepare("cp311", make_patches(tmp_path), out)
    assert (out / "include/tensorflow/core/a.h").read_text() == "#define A\n"
    assert (out / "lib/libtensorflow_cc.so.2").is_symlink()
    assert (
        (out / "patched/tensorflow/__init__.py").read_text().startswith("import os\nimport sys\n")
    )
    description = json.loads((out / "stock.json").read_text())
    assert (out / description["wheel"]).is_file()
    # It would make Bazel take the folder for a package.
    assert not list(out.rglob("BUILD.bazel"))


def test_unpacks_once(cache: pathlib.Path, tmp_path: pathlib.Path) -> None:
    patches = make_patches(tmp_path)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        stock_wheel.prepare("cp311", patches, tmp_path / name)
        marker = next((cache / "unpacked").iterdir()) / "marker"
        assert marker.exists() == (name == "second")
        marker.touch()


def cached(cache: pathlib.Path) -> pathlib.Path:
    return cache / "wheels" / RELEASES[BASE].sha256["cp311"] / fakes.STOCK_NAME


def test_a_wheel_that_a_user_puts_into_the_cache_is_verified_too(cache: pathlib.Path) -> None:
    wheel = cached(cache)
    good = wheel.read_bytes()
    for content in (good + b"more", good[:-1] + b"!"):
        wheel.write_bytes(content)
        with pytest.raises(BuildError, match=r"SHA-256 \w+, but \w+ is pinned"):
            stock_wheel.fill_cache("cp311", BASE)
    wheel.write_bytes(good)
    assert stock_wheel.fill_cache("cp311", BASE)[0] == wheel


def test_a_wheel_is_hashed_once(cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []
    original = stock_wheel.sha256_of

    def sha256_of(path: pathlib.Path) -> str:
        hashed.append(path)
        return original(path)

    monkeypatch.setattr(stock_wheel, "sha256_of", sha256_of)
    for _ in range(2):
        stock_wheel.fetch("cp311", cache)
    assert hashed == [cached(cache)]
    os.utime(cached(cache), (1, 1))
    stock_wheel.fetch("cp311", cache)
    assert len(hashed) == 2


def test_what_was_unpacked_of_another_wheel_is_not_used(cache: pathlib.Path) -> None:
    """A version before this one took any file of the cache for the wheel."""
    unpacked = stock_wheel.fill_cache("cp311", BASE)[1]
    (unpacked / "marker").touch()
    stock_wheel.fill_cache("cp311", BASE)
    # The wheel is older than what was unpacked: it is of this wheel.
    assert (unpacked / "marker").exists()
    content = cached(cache).read_bytes()
    cached(cache).unlink()
    cached(cache).write_bytes(content)
    stock_wheel.fill_cache("cp311", BASE)
    assert not (unpacked / "marker").exists()
    assert (unpacked / "lib/libtensorflow_cc.so.2").is_file()
    assert [path.name for path in unpacked.parent.iterdir()] == [unpacked.name]


def test_what_killed_runs_have_left_is_deleted_and_nothing_else(cache: pathlib.Path) -> None:
    left = [cache / "unpacked/partial-a1b2", cache / "tensorflow-multistream-download-a1b2"]
    others = [cache / "partial-a1b2", cache / "tmpa1b2"]  # the cache's folder may be anybody's
    for folder in (*left, *others):
        (folder / "include").mkdir(parents=True)
    stock_wheel.fetch("cp311", cache)
    assert not any(folder.exists() for folder in left)
    assert all(folder.exists() for folder in others)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_incomplete(tmp_path: pathlib.Path, number: int) -> None:
    (tmp_path / "modules/pip").mkdir(parents=True)
    (tmp_path / "modules/pip/__init__.py").touch()
    (tmp_path / "modules/pip/__main__.py").write_text(PIP)
    cache = tmp_path / "cache"
    variables = {"TFMS_CACHE": str(cache), "PYTHONPATH": str(tmp_path / "modules")}
    variables["PIP_NO_INDEX"] = "1"  # should the stand-in not be found
    command = [sys.executable, str(SCRIPT), "fetch", "--python", "cp312"]
    environment = {**os.environ, **variables}
    # Under nohup the process would ignore SIGHUP, as is right there.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        process = subprocess.Popen(command, env=environment)
    finally:
        signal.signal(number, before)
    with process:
        end = time.monotonic() + 30
        while not list(cache.glob("*/pip-*/part")):
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert sorted(path.name for path in cache.iterdir()) == ["lock", "wheels"]


@pytest.mark.parametrize(
    ("chosen", "base", "expected"),
    [
        ("/a", "/b", "/a"),
        ("a", "/b", str(SCRIPT.parent.parent / "a")),
        ("", "/b", "/b/tensorflow-multistream"),
        ("", "b", "/home/of/.cache/tensorflow-multistream"),
        ("", "", "/home/of/.cache/tensorflow-multistream"),
    ],
)
def test_the_cache_is_an_absolute_path(
    chosen: str, base: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"TFMS_CACHE": chosen, "XDG_CACHE_HOME": base, "HOME": "/home/of"}.items():
        monkeypatch.setenv(name, value)
    assert str(stock_wheel.cache_folder()) == expected


def test_sources_are_utf_8_whatever_the_locale_is(
    cache: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    patches, out = make_patches(tmp_path), tmp_path / "out"
    patch = patches / "one.patch"
    patch.write_text(patch.read_text().replace("import sys", "# Łódź"), encoding="utf-8")
    out.mkdir()
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", PREPARE, RELEASES[BASE].sha256["cp311"], str(patches)]
    environment = {**os.environ, **ascii_only, "PYTHONPATH": str(SCRIPT.parent)}
    done = fakes.run([*command, str(out)], environment)
    assert done.returncode == 0, done.stderr
    text = (out / "patched/tensorflow/__init__.py").read_bytes().decode()
    assert text.startswith("import os\n# Łódź\n")

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import os
import pathlib
import shutil
import sys

import pytest

import fakes
import stock_wheel
from build_error import BuildError
from releases import BASE, RELEASES

SCRIPT = pathlib.Path(stock_wheel.__file__)


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

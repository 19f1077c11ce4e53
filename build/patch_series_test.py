# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import zipfile

import pytest

import check_patches
import fakes
import patch_porting
import patch_series
from build_error import BuildError

GOOD = """\
Say what it is for.

--- a/tensorflow/__init__.py
+++ b/tensorflow/__init__.py
@@ -3,2 +3,3 @@
 # Do not remove this line.
+import loader
 import pywrap
"""


@pytest.fixture
def patches(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "0001-load.patch").write_text(GOOD)
    (folder / "series").write_text("# in this order\n0001-load.patch\n")
    return folder


@pytest.fixture
def wheel(tmp_path: pathlib.Path) -> pathlib.Path:
    return fakes.make_wheel(tmp_path)


def apply(patches: pathlib.Path, wheel: pathlib.Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        return patch_series.apply_series(patches, archive)


def test_error_names_patch_file_and_hunk(patches: pathlib.Path, wheel: pathlib.Path) -> None:
    hunk = "@@ -6,1 +7,1 @@\n-from api import stream\n+from api import streams\n"
    (patches / "0001-load.patch").write_text(GOOD + hunk)
    with pytest.raises(BuildError) as error:
        apply(patches, wheel)
    message = str(error.value)
    assert "0001-load.patch" in message
    assert "tensorflow/__init__.py" in message
    assert "hunk 2" in message
    assert "'from api import stream'" in message
    assert "'from api import config'" in message


def test_does_not_apply_a_hunk_elsewhere_but_tells_where(
    patches: pathlib.Path, wheel: pathlib.Path
) -> None:
    (patches / "0001-load.patch").write_text(GOOD.replace("-3,2 +3,3", "-2,2 +2,3"))
    with pytest.raises(BuildError, match="hunk 1 .*\n.* at line 3:"):
        apply(patches, wheel)


def test_patch_of_another_release_applies_where_its_lines_are_if_that_is_one_place(
    patches: pathlib.Path, wheel: pathlib.Path
) -> None:
    expected = apply(patches, wheel)
    other = patches.parent / "other"
    other.mkdir()
    (other / "series").write_text("../patches/0001-load.patch\n")
    moved = GOOD.replace("-3,2 +3,3", "-2,2 +2,3")
    (patches / "0001-load.patch").write_text(moved)
    assert apply(other, wheel) == expected
    (patches / "0001-load.patch").write_text(moved.replace("Do not remove", "Remove"))
    with pytest.raises(BuildError, match=r"0001-load.patch does not apply"):
        apply(other, wheel)


def test_file_that_is_not_in_the_wheel(patches: pathlib.Path, wheel: pathlib.Path) -> None:
    (patches / "0001-load.patch").write_text(GOOD.replace("__init__", "missing"))
    with pytest.raises(BuildError, match=r"0001-load.patch changes tensorflow/missing.py"):
        apply(patches, wheel)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ("# none\n", r"0001-load.patch is not in .*series"),
        ("0001-load.patch\n0009-gone.patch\n", "names 0009-gone.patch, which is not in"),
        ("0001-load.patch\n0001-load.patch\n", "names 0001-load.patch more than once"),
        (None, "series is missing"),
    ],
)
def test_series_that_does_not_match_the_folder(
    patches: pathlib.Path, series: str | None, message: str
) -> None:
    (patches / "series").unlink()
    if series is not None:
        (patches / "series").write_text(series)
    with pytest.raises(BuildError, match=message):
        patch_series.read_series(patches)


@pytest.mark.parametrize(
    "text",
    [
        "no diff at all\n",
        GOOD.replace("a/tensorflow/__init__.py", "/dev/null"),
        GOOD.replace("@@ -3,2 +3,3 @@", "@@ two @@"),
        GOOD.replace("-3,2 +3,3", "-3,9 +3,9"),
    ],
)
def test_broken_patch_is_named(text: str) -> None:
    with pytest.raises(BuildError, match="broken.patch"):
        patch_series.parse_patch("broken.patch", text)


def test_check_rejects_a_change_that_is_not_python(
    patches: pathlib.Path, wheel: pathlib.Path
) -> None:
    with zipfile.ZipFile(wheel) as stock:
        assert check_patches.check(stock, patches) == ["tensorflow/__init__.py"]
        (patches / "0001-load.patch").write_text(GOOD.replace("+import loader", "+import"))
        with pytest.raises(BuildError, match="line 4, is not Python"):
            check_patches.check(stock, patches)


TWICE = "def f():\n  x\ndef g():\n  x\n"


@pytest.mark.parametrize(
    ("old", "text", "places"),
    [
        (TWICE.replace("x", "y", 1), "new\n" + TWICE, "3, 5"),
        (TWICE, TWICE.replace("  x\ndef", "  y\ndef"), "4"),  # the place that is left is another
        (TWICE, "a\nb\n" + TWICE, "4, 6"),  # the copy at the old line is another one
    ],
)
def test_a_hunk_with_several_places_is_not_ported(old: str, text: str, places: str) -> None:
    patch = "--- a/file.py\n+++ b/file.py\n@@ -4,1 +4,2 @@\n   x\n+hook\n"
    (hook,) = patch_series.parse_patch("0001-it.patch", patch)
    moved, (problem,) = patch_porting.move(hook, old, text)
    assert moved == text
    assert f"in several places: in the new release at {places}" in str(problem)

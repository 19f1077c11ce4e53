# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""scripts/patches.py changes a series only into one that applies."""

import pathlib
import sys
import zipfile
from collections.abc import Callable

import pytest

import check_patches
import patches
import remote_wheel
import stock_wheel
from build_error import run_main
from fakes import make_zip
from releases import BASE

OLD = "".join(f"x{i} = {i}\n" for i in range(1, 21))
FIRST = """Adds a line.

--- a/tensorflow/a.py
+++ b/tensorflow/a.py
@@ -10,2 +10,3 @@
 x10 = 10
+added = 1
 x11 = 11
"""
SECOND = FIRST.replace(" x11 = 11", " added = 1").replace("+added = 1", "+more = 2")

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def series(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository with two patches of a wheel of two files."""
    monkeypatch.setattr(patches, "ROOT", tmp_path)
    folder = tmp_path / "patches" / BASE
    folder.mkdir(parents=True)
    (folder / "0001-first.patch").write_text(FIRST)
    (folder / "0002-second.patch").write_text(SECOND)
    (folder / "series").write_text("0001-first.patch\n0002-second.patch\n")
    wheel = make_zip(tmp_path / "stock.whl", {"tensorflow/a.py": OLD, "tensorflow/b.py": OLD})
    monkeypatch.setattr(patches, "fetch", lambda tag, release: wheel)
    monkeypatch.setattr(check_patches, "PATCHES", folder.parent)
    monkeypatch.setattr(stock_wheel, "fetch", lambda tag, cache, release: wheel)
    monkeypatch.setattr(remote_wheel, "opened", lambda tag, release: zipfile.ZipFile(wheel))
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs it; returns its exit status and what it printed."""

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["patches.py", *map(str, arguments)])
        status = 0
        try:
            run_main(patches.main)
        except SystemExit as end:
            status = int(end.code or 0)
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def contents(folder: pathlib.Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in folder.iterdir() if file.is_file()}


@pytest.mark.usefixtures("series")
def test_check_counts(command: Command) -> None:
    name = stock_wheel.wheel_name("cp311")
    said = f"2 patches apply to {name} and change 1 files\n"
    assert command("--python", "cp311", "check") == (0, said)


def test_what_was_not_edited_is_made_again_as_it_was(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    before = contents(series)
    (series / "source").mkdir()
    assert command("edit", "0001-first.patch", tmp_path / "work")[0] == 0
    assert command("refresh", tmp_path / "work")[0] == 0
    assert contents(series) == before


def test_an_edit_goes_into_the_patch(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    assert command("edit", "0002-second.patch", tmp_path / "work")[0] == 0
    before = tmp_path / "work" / "before" / "tensorflow" / "a.py"
    assert "added = 1" in before.read_text()  # of the first one
    file = tmp_path / "work" / "after" / "tensorflow" / "a.py"
    file.write_text(file.read_text().replace("x20 = 20\n", "x20 = 21\n"))
    status, said = command("refresh", tmp_path / "work")
    assert status == 0 and "2 hunks" in said
    text = (series / "0002-second.patch").read_text()
    assert text.startswith("Adds a line.\n\n--- a/") and "+x20 = 21\n" in text and "x18" not in text
    assert command("check")[0] == 0


def test_a_series_stays_as_it_is_where_a_change_would_break_it(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    before = contents(series)
    status, said = command("drop", "0001-first.patch")
    assert status == 1 and "0002-second.patch does not apply" in said
    command("edit", "0001-first.patch", tmp_path / "work")
    file = tmp_path / "work" / "after" / "tensorflow" / "a.py"
    file.write_text(file.read_text().replace("added = 1\n", "added = 2\n"))
    status, said = command("refresh", tmp_path / "work")
    assert status == 1 and "0002-second.patch does not apply" in said
    assert contents(series) == before


def test_new_and_drop(series: pathlib.Path, command: Command, tmp_path: pathlib.Path) -> None:
    before = contents(series)
    work, name = tmp_path / "work", "0003-third.patch"
    assert command("new", name, work, "tensorflow/b.py", "--says", "Changes b.")[0] == 0
    assert command("refresh", work)[0] == 1  # nothing differs
    file = work / "after" / "tensorflow" / "b.py"
    file.write_text("x0 = 0\n" + file.read_text())
    assert command("refresh", work)[0] == 0
    assert (series / name).read_text().startswith("Changes b.\n\n--- a/tensorflow/b.py\n")
    assert (series / "series").read_text().endswith(f"{name}\n")
    assert command("drop", name)[0] == 0
    assert contents(series) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["edit", "0009-no.patch", "work"], "The series has no 0009-no.patch"),
        (["refresh", "nowhere"], "nowhere is not a folder that"),
        (["new", "third", "work", "tensorflow/b.py", "--says", "x"], "third is no name"),
        (["new", "0001-first.patch", "work", "tensorflow/b.py", "--says", "x"], "is no name"),
        (["edit", "0001-first.patch", "."], "is there already"),
    ],
)
def test_what_is_wrong_is_named(
    series: pathlib.Path,
    command: Command,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(series)
    status, said = command(*arguments)
    assert status == 1 and message in said
    assert contents(series) == before


def test_files_that_come_or_go_are_refused(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    before = contents(series)
    after = tmp_path / "work" / "after" / "tensorflow"
    command("edit", "0001-first.patch", tmp_path / "work")
    (after / "c.py").write_text("c = 1\n")
    assert "c.py is new" in command("refresh", tmp_path / "work")[1]
    (after / "c.py").unlink()
    (after / "a.py").unlink()
    assert "a.py is gone" in command("refresh", tmp_path / "work")[1]
    assert contents(series) == before


def test_port_writes_what_applies_and_shows_the_rest(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    wheel = make_zip(tmp_path / "new.whl", {"tensorflow/a.py": "new = 0\n" + OLD})
    assert command("port", "--to", "9.0.0", "--wheel", wheel)[0] == 0
    assert contents(series.parent / "9.0.0") == {
        "series": f"../{BASE}/0001-first.patch\n../{BASE}/0002-second.patch\n"
    }
    apart = tmp_path / "apart"  # where no other release's patches are
    assert command("port", "--to", "9.0.0", "--wheel", wheel, "--out", apart)[0] == 0
    assert "@@ -11,2 +11,3 @@" in (apart / "0001-first.patch").read_text()
    assert (apart / "series").read_text() == (series / "series").read_text()
    make_zip(wheel, {"tensorflow/a.py": OLD.replace("x11 = 11", "x11 = 12")})
    status, said = command("port", "--to", "9.0.0", "--wheel", wheel, "--out", tmp_path / "out")
    assert status == 1 and "0 of 2 hunks apply to 9.0.0" in said
    assert "x11 = 12" in said and "the new release has, from line 10" in said
    assert command("port", "--to", "9.0.0", "--wheel", wheel)[0] == 1  # it is there


def test_port_names_the_release_whose_patch_does_the_same(
    series: pathlib.Path, command: Command, tmp_path: pathlib.Path
) -> None:
    wheel = tmp_path / "new.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tensorflow/a.py", OLD)
    old = contents(series)
    (series / "0001-first.patch").write_text(FIRST.replace("+added", "+joined"))
    (series / "0002-second.patch").write_text(SECOND.replace(" added", " joined"))
    other = series.parent / "8.0.0"
    series.rename(other)
    series.mkdir()
    for name, text in old.items():
        (series / name).write_text(text)
    assert command("--release", "8.0.0", "port", "--to", "9.0.0", "--wheel", wheel)[0] == 0
    series_file = (series.parent / "9.0.0" / "series").read_text()
    assert series_file == "../8.0.0/0001-first.patch\n../8.0.0/0002-second.patch\n"

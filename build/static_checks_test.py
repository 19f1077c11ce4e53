# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The checks that run before any test are one list, for CI and for the hook of a commit."""

import pathlib
import sys

import pytest

import static_checks
from build_error import BuildError
from static_checks import CHECKS, Check

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = Check("lines", ("wc", "-l"), r".*\.txt", True, "Fewer lines.")
WHOLE = Check("whole", ("wc", "all"), r".*\.(txt|c)", False, "Fewer words.")


def test_check_that_takes_files_gets_only_those_it_looks_at() -> None:
    ran = static_checks.commands([LINES], ["a.txt", "b.c", "d/e.txt"], [], "")
    assert ran == [(LINES, ["wc", "-l", "a.txt", "d/e.txt"])]


def test_check_of_everything_runs_whole_if_one_file_concerns_it() -> None:
    assert static_checks.commands([WHOLE], ["b.c"], [], "") == [(WHOLE, ["wc", "all"])]


def test_check_that_no_file_concerns_does_not_run() -> None:
    assert static_checks.commands([LINES, WHOLE], ["b.h"], ["a.txt"], "") == []


def test_without_files_all_of_the_repository_are_checked() -> None:
    ran = static_checks.commands([LINES], None, ["a.txt", "b.txt"], "")
    assert ran == [(LINES, ["wc", "-l", "a.txt", "b.txt"])]


def test_patches_of_the_python_that_is_asked_for_are_checked() -> None:
    ((_, command),) = static_checks.commands(CHECKS, ["patches/2.21.0/series"], [], "cp313")
    assert command == [sys.executable, "build/check_patches.py", "--all", "--python=cp313"]


def test_each_check_looks_at_a_file_of_the_repository() -> None:
    files = static_checks.repository_files(ROOT)
    assert all(static_checks.concerned(check, files) for check in CHECKS)


def test_a_source_above_500_lines_is_named_and_so_is_one_that_need_not_be_allowed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_checks, "_LONGER", {"b.cc": "why", "d.cc": "why"})
    for name, lines in {"a.py": 500, "b.cc": 501, "c.h": 501, "d.cc": 500}.items():
        (tmp_path / name).write_text("\n" * lines)
    found = static_checks.too_long(["a.py", "b.cc", "c.h", "d.cc"], tmp_path)
    assert [line.split(":")[0] for line in found] == ["c.h", "d.cc"]


def test_files_are_found_without_git_and_what_is_built_is_not(tmp_path: pathlib.Path) -> None:
    for name in ("a.py", "build/b.py", "dist/c.py", ".venv/d.py", "bazel-bin/e.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert static_checks.repository_files(tmp_path) == ["a.py", "build/b.py"]


def run(monkeypatch: pytest.MonkeyPatch, checks: tuple[Check, ...], *arguments: str) -> None:
    monkeypatch.setattr(static_checks, "CHECKS", checks)
    monkeypatch.setattr("sys.argv", ["static_checks.py", *arguments])
    static_checks.main()


def test_every_failed_check_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good, worse = (
        Check(name, (sys.executable, "-c", f"raise SystemExit({status})"), ".*", False, hint)
        for name, status, hint in [("bad", 1, "Be good."), ("good", 0, ""), ("worse", 2, "Stop.")]
    )
    with pytest.raises(BuildError, match=r"^bad failed\. Be good\.\nworse failed\. Stop\.$"):
        run(monkeypatch, (bad, good, worse))
    run(monkeypatch, (bad, good, worse), "good")


def test_unknown_check_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, (LINES,), "nothing")
    assert ended.value.code == 2
    assert "unknown check 'nothing'. Allowed: lines." in capsys.readouterr().err

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The checks that run before any test are one list, for CI and for the hook of a commit."""

import pathlib
import sys

import pytest

import static_checks
from build_error import BuildError
from static_checks import CHECKS, Check, commands

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = Check("lines", ("wc", "-l"), r".*\.txt", "Fewer lines.")
WHOLE = Check("whole", ("wc", "all"), r".*\.(txt|c)", "Fewer words.", takes_files=False)


def test_check_gets_the_files_that_it_looks_at_or_runs_whole_if_there_are_some() -> None:
    files = ["a.txt", "b.h", "d/e.txt"]
    assert commands([LINES], files) == [(LINES, ["wc", "-l", "a.txt", "d/e.txt"])]
    assert commands([LINES, WHOLE], ["b.c"]) == [(WHOLE, ["wc", "all"])]
    assert commands([LINES, WHOLE], ["b.h"]) == []


def test_each_check_looks_at_a_file_of_the_repository() -> None:
    files = static_checks.repository_files(ROOT)
    assert all(check.concerned(files) for check in CHECKS)


def test_a_source_above_500_lines_and_a_readme_above_150_are_named(tmp_path: pathlib.Path) -> None:
    for name, lines in {"a.py": 500, "b.h": 501, "README.md": 151}.items():
        (tmp_path / name).write_text("\n" * lines)
    found = static_checks.too_long(["a.py", "b.h", "README.md"], tmp_path)
    assert [line.split(":")[0] for line in found] == ["b.h", "README.md"]


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
        Check(name, (sys.executable, "-c", f"raise SystemExit({status})"), ".*", hint, False)
        for name, status, hint in [("bad", 1, "Be good."), ("good", 0, ""), ("worse", 2, "Stop.")]
    )
    with pytest.raises(BuildError, match=r"^bad failed\. Be good\.\nworse failed\. Stop\.$"):
        run(monkeypatch, (bad, good, worse))
    run(monkeypatch, (bad, good, worse), "good")

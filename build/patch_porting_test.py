# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patches are moved where their lines are, and shown where a person has to look."""

from __future__ import annotations

import pytest

import patch_porting
import patch_series

OLD = "".join(f"line {i}\n" for i in range(1, 41))
PATCH = """What it does.

--- a/file.py
+++ b/file.py
@@ -10,2 +10,3 @@
 line 10
+first
 line 11
@@ -30,3 +31,3 @@
 line 30
-line 31
+second
 line 32
"""


def changes(text: str = PATCH) -> patch_series.FilePatch:
    (change,) = patch_series.parse_patch("0001-it.patch", text)
    return change


def test_moves_with_the_lines_around() -> None:
    text = "new\n" * 7 + OLD.replace("line 20\n", "")
    moved, problems = patch_porting.move(changes(), OLD, text)
    assert not problems
    assert moved == text.replace("line 10\n", "line 10\nfirst\n").replace("line 31\n", "second\n")


def test_a_file_that_is_the_same_is_changed_as_the_patch_says() -> None:
    twice = OLD + OLD
    moved, problems = patch_porting.move(changes(), twice, twice)
    assert not problems and moved == patch_series.apply_file_patch(changes(), twice)


def test_does_not_choose_among_several_places() -> None:
    moved, problems = patch_porting.move(changes(), OLD, "new\n" + OLD + OLD)
    assert moved.count("first") == 0
    assert "in several places: in the new release at 11, 51" in str(problems[0])


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n  x\ndef g():\n  y\n",  # the one place that is left is another one
        "a\nb\ndef f():\n  x\ndef g():\n  x\n",  # the copy at the old line is another one
    ],
)
def test_lines_that_the_old_release_has_twice_have_no_place(text: str) -> None:
    old = "def f():\n  x\ndef g():\n  x\n"
    hook = changes("--- a/file.py\n+++ b/file.py\n@@ -4,1 +4,2 @@\n   x\n+hook\n")
    moved, problems = patch_porting.move(hook, old, text)
    assert moved == text and len(problems) == 1


def test_shows_what_is_most_like_lines_that_are_gone() -> None:
    moved, problems = patch_porting.move(
        changes(), OLD, OLD.replace("line 31\n", "line 31 # new\n")
    )
    assert "first" in moved and "second" not in moved
    (problem,) = problems
    assert (problem.line, problem.text) == (30, ("line 30\n", "line 31 # new\n", "line 32\n"))
    said = str(problem)
    for part in ("0001-it.patch: file.py, @@ -30,3", "second", "line 31 # new", "from line 30"):
        assert part in said


def test_later_patches_are_moved_on_top_of_earlier_ones() -> None:
    second = changes("--- a/file.py\n+++ b/file.py\n@@ -11,1 +11,2 @@\n first\n+more\n")
    moved, problems = patch_porting.move_series(
        {"1.patch": ("One.\n\n", [changes()]), "2.patch": ("Two.\n\n", [second])},
        lambda path: OLD if path == "file.py" else None,
        lambda path: "new\n" + OLD if path == "file.py" else None,
    )
    assert not problems
    assert moved["1.patch"].startswith("One.\n\n--- a/file.py")
    assert "+more" in moved["2.patch"] and "+first" not in moved["2.patch"]


def test_a_file_that_is_gone_is_a_problem_for_each_hunk() -> None:
    moved, problems = patch_porting.move_series(
        {"1.patch": ("One.\n", [changes()])}, lambda _: OLD, lambda _: None
    )
    assert not moved
    assert ["no such file" in str(problem) for problem in problems] == [True, True]

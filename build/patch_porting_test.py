# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patches are moved where their lines are, and shown where a person has to look."""

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

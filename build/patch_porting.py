# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Moves patches to the files of another TensorFlow release.

A hunk goes where its lines are, if they are once in the old release's file and once in the new
one's. Otherwise a person has to look: a hook that lands in the wrong place is a wrong hook. What
was not moved is shown beside the text of the new release that is most like it.
"""

import dataclasses
import difflib
import pathlib
from collections.abc import Mapping, Sequence

from patch_series import FilePatch, Hunk, Read, apply_file_patch, places


@dataclasses.dataclass(frozen=True)
class Problem:
    """A hunk that was not moved."""

    file_patch: FilePatch  # the changes that it is one of
    hunk: Hunk  # the one that was not moved
    why: str  # in words
    line: int  # number, from 1, of the first line of `text`; 0 if there is no such text
    text: tuple[str, ...]  # lines of the new release that are most like it

    def __str__(self) -> str:
        lines = [f"{self.file_patch.patch}: {self.file_patch.path}, {self.hunk.header}: {self.why}"]
        lines += ["  the patch changes"]
        lines += [f"    {line.rstrip()}" for line in self.hunk.old]
        lines += ["  into"]
        lines += [f"    {line.rstrip()}" for line in self.hunk.new]
        if self.line:
            lines += [f"  the new release has, from line {self.line}"]
            lines += [f"    {line.rstrip()}" for line in self.text]
        return "\n".join(lines)


def unified(path: str, before: str, after: str) -> str:
    """Returns a unified diff of a file, with one line of context; empty if nothing differs."""
    old, new = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", n=1))


def move(file_patch: FilePatch, old: str, text: str) -> tuple[str, list[Problem]]:
    """Applies hunks, made for the text `old`, to another one; a problem for each that cannot."""
    if text == old:
        return apply_file_patch(file_patch, text, may_move=True), []
    lines, old_lines = text.splitlines(keepends=True), old.splitlines(keepends=True)
    problems: list[Problem] = []
    changes: list[tuple[int, Hunk]] = []
    after = 0  # hunks keep their order
    for hunk in file_patch.hunks:
        found, old_found = places(hunk, lines), places(hunk, old_lines)
        if len(found) == len(old_found) == 1 and found[0] > after:
            changes.append((found[0] - 1, hunk))
            after = found[0] - 1 + len(hunk.old)
            continue
        if not found:
            why = "its lines are not in the new release"
        elif len(found) > 1 or len(old_found) > 1:
            shown = ", ".join(map(str, found))
            why = f"its lines are in several places: in the new release at {shown}"
        else:
            why = "its lines come before those of an earlier hunk"
        line, like = _most_like(lines, hunk)
        problems.append(Problem(file_patch, hunk, why, line, like))
    for place, hunk in reversed(changes):
        lines[place : place + len(hunk.old)] = hunk.new
    return "".join(lines), problems


def move_series(
    patches: Mapping[str, tuple[str, Sequence[FilePatch]]], read_old: Read, read: Read
) -> tuple[dict[str, str], list[Problem]]:
    """Moves patches (name: description and changes) from one release's files, each on those before.

    Returns the text of each patch that is left, by its file's name, and what could not be moved.
    """
    old_texts: dict[str, str] = {}
    texts: dict[str, str] = {}
    moved: dict[str, str] = {}
    problems: list[Problem] = []
    for name, (description, changes) in patches.items():
        changed = ""
        for change in changes:
            old = old_texts[change.path] if change.path in old_texts else read_old(change.path)
            before = texts[change.path] if change.path in texts else read(change.path)
            if old is None or before is None:
                problems += [
                    Problem(change, hunk, "the new release has no such file", 0, ())
                    for hunk in change.hunks
                ]
                continue
            after, more = move(change, old, before)
            problems += more
            changed += unified(change.path, before, after)
            texts[change.path] = after
            old_texts[change.path] = apply_file_patch(change, old, may_move=True)
        if changed:
            moved[pathlib.PurePath(name).name] = description + changed
    return moved, problems


def _most_like(lines: Sequence[str], hunk: Hunk) -> tuple[int, tuple[str, ...]]:
    """The number, from 1, and the lines of the part of a file that is most like a hunk's."""
    count = len(hunk.old)

    def likeness(at: int) -> float:
        texts = "".join(lines[at : at + count]), "".join(hunk.old)
        return difflib.SequenceMatcher(None, *texts, autojunk=False).ratio()

    where = max(range(max(1, len(lines) - count + 1)), key=likeness)
    if likeness(where) < 0.5:
        return 0, ()
    return where + 1, tuple(lines[where : where + count])

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Applies the patches of a series to TensorFlow's files, exactly or not at all.

patch(1) would look for a hunk's lines elsewhere in the file and put up with
differences. A hook that lands a few lines off is a wrong hook, so here every
context and removed line must be where its hunk says.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import zipfile
from collections.abc import Sequence

from build_error import BuildError

_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclasses.dataclass(frozen=True)
class Hunk:
    """One change of a patch.

    Args:
      header: its `@@` line, for messages.
      first_line: number, from 1, of the first old line.
      old: context and removed lines, line ends included.
      new: context and added lines, line ends included.
    """

    header: str
    first_line: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FilePatch:
    """What one patch does to one file.

    Args:
      patch: name of the patch file.
      path: the changed file, relative to the wheel's root.
      hunks: the changes, first to last.
    """

    patch: str
    path: str
    hunks: tuple[Hunk, ...]


def read_series(folder: pathlib.Path) -> list[str]:
    """Lists a folder's patches in the order in which they apply.

    Args:
      folder: holds the patches and a file `series`, one patch a line.

    Returns:
      Names of patch files.

    Raises:
      BuildError: `series` is missing, names a patch that is not there or names one twice, or a
        patch file is not in `series`.
    """
    series = folder / "series"
    if not series.is_file():
        raise BuildError(f"{series} is missing.\nIt lists the patches to apply, one a line.")
    lines = (line.split("#")[0].strip() for line in series.read_text().splitlines())
    names = [line for line in lines if line]
    for name in names:
        if not (folder / name).is_file():
            raise BuildError(f"{series} names {name}, which is not in {folder}.")
        if names.count(name) > 1:
            raise BuildError(f"{series} names {name} more than once.")
    for patch in sorted(folder.glob("*.patch")):
        if patch.name not in names:
            raise BuildError(
                f"{patch.name} is not in {series}.\n"
                "Add a line where it applies, or delete the patch."
            )
    return names


def parse_patch(name: str, text: str) -> list[FilePatch]:
    """Reads a unified diff.

    Args:
      name: the patch's name, for messages.
      text: the diff; lines before the first `---` line describe it and are skipped.

    Returns:
      One entry for each file it changes.

    Raises:
      BuildError: it is not a unified diff of existing files.
    """
    lines = text.splitlines(keepends=True)
    patches: list[FilePatch] = []
    at = 0
    while at < len(lines):
        if not (lines[at].startswith("--- ") and at + 1 < len(lines)):
            at += 1
            continue
        if not lines[at + 1].startswith("+++ "):
            at += 1
            continue
        path = _stripped_path(name, lines[at], lines[at + 1])
        at += 2
        hunks = []
        while at < len(lines) and lines[at].startswith("@@"):
            hunk, at = _parse_hunk(name, path, lines, at)
            hunks.append(hunk)
        if not hunks:
            raise BuildError(f"{name}: no hunk for {path}.")
        patches.append(FilePatch(name, path, tuple(hunks)))
    if not patches:
        raise BuildError(f"{name} is not a unified diff: it has no '---' and '+++' lines.")
    return patches


def places(hunk: Hunk, lines: Sequence[str]) -> list[int]:
    """Finds the lines of a hunk.

    Args:
      hunk: whose old lines are wanted.
      lines: of the file.

    Returns:
      The number, from 1, of the first of them wherever they are; empty if the hunk has none.
    """
    size = len(hunk.old)
    return [
        at + 1
        for at in range(len(lines) - size + 1)
        if hunk.old and tuple(lines[at : at + size]) == hunk.old
    ]


def apply_file_patch(file_patch: FilePatch, text: str) -> str:
    """Applies one patch to one file.

    Args:
      file_patch: the changes.
      text: the file as it is.

    Returns:
      The file as changed.

    Raises:
      BuildError: a line is not what the patch says; names patch, file and hunk.
    """
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    done = 0
    for number, hunk in enumerate(file_patch.hunks, start=1):
        start = hunk.first_line - 1
        found = tuple(lines[start : start + len(hunk.old)])
        if start < done or found != hunk.old:
            raise BuildError(_mismatch(file_patch, number, hunk, lines))
        result += lines[done:start]
        result += hunk.new
        done = start + len(hunk.old)
    return "".join(result + lines[done:])


def apply_series(folder: pathlib.Path, stock: zipfile.ZipFile) -> dict[str, str]:
    """Applies a whole series.

    Args:
      folder: holds the patches and their `series`.
      stock: the stock wheel.

    Returns:
      The changed files' text, by path in the wheel.

    Raises:
      BuildError: see read_series, parse_patch and apply_file_patch; or a patch names a file that
        the wheel does not have.
    """
    changed: dict[str, str] = {}
    for name in read_series(folder):
        for file_patch in parse_patch(name, (folder / name).read_text()):
            path = file_patch.path
            if path not in changed and path not in stock.NameToInfo:
                raise BuildError(
                    f"{name} changes {path}, which is not in the stock wheel.\n"
                    "Correct the path in the patch; after a/ and b/ it begins at the wheel's root."
                )
            text = changed[path] if path in changed else stock.read(path).decode()
            changed[path] = apply_file_patch(file_patch, text)
    return changed


def _stripped_path(name: str, old: str, new: str) -> str:
    old_path, new_path = (line[4:].split("\t")[0].strip() for line in (old, new))
    if not (old_path.startswith("a/") and new_path.startswith("b/")):
        raise BuildError(
            f"{name}: '{old_path}' and '{new_path}' must begin with a/ and b/; "
            "a patch changes files, it does not add or delete them."
        )
    if old_path[2:] != new_path[2:]:
        raise BuildError(f"{name}: {old_path} and {new_path} are not the same file.")
    return new_path[2:]


def _parse_hunk(name: str, path: str, lines: list[str], at: int) -> tuple[Hunk, int]:
    header = lines[at].rstrip("\n")
    match = _HUNK_HEADER.match(header)
    if not match:
        raise BuildError(f"{name}: {path}: '{header}' is no hunk header.")
    old_count, new_count = (int(match[i] or 1) for i in (2, 4))
    old: list[str] = []
    new: list[str] = []
    at += 1
    while len(old) < old_count or len(new) < new_count:
        line = lines[at] if at < len(lines) else ""
        kind, content = line[:1], line[1:]
        if line == "\n":  # An editor took the blank of an empty context line.
            kind, content = " ", "\n"
        if kind not in (" ", "-", "+"):
            raise BuildError(f"{name}: {path}: hunk '{header}' is shorter than its header says.")
        if kind != "+":
            old.append(content)
        if kind != "-":
            new.append(content)
        at += 1
    if (len(old), len(new)) != (old_count, new_count):
        raise BuildError(f"{name}: {path}: hunk '{header}' is longer than its header says.")
    # With no old lines the header gives the line after which the new ones go.
    first_line = int(match[1]) + (1 if old_count == 0 else 0)
    return Hunk(header, first_line, tuple(old), tuple(new)), at


def _mismatch(file_patch: FilePatch, number: int, hunk: Hunk, lines: list[str]) -> str:
    where = f"{file_patch.patch} does not apply: {file_patch.path}, hunk {number} ({hunk.header})"
    start = hunk.first_line - 1
    for offset, expected in enumerate(hunk.old):
        at = start + offset
        found = lines[at] if at < len(lines) else None
        if found != expected:
            shown = "the end of the file" if found is None else repr(found.rstrip("\n"))
            detail = f"line {at + 1} should be {expected.rstrip()!r} but is {shown}."
            break
    else:
        detail = "it overlaps the hunk before it."
    found_at = places(hunk, lines)
    hint = (
        f"The hunk's lines are at line {', '.join(map(str, found_at))}: correct its header."
        if found_at
        else "Make the patch again against the stock wheel's file."
    )
    return f"{where}: {detail}\n{hint}"

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Applies the patches of a series to TensorFlow's files, exactly or not at all.

patch(1) would look for a hunk's lines elsewhere in the file and put up with
differences. A hook that lands a few lines off is a wrong hook, so here every
context and removed line must be where its hunk says. Only a patch that was made
for other files (those of another release, or TensorFlow's sources) may find its
lines elsewhere, if they are at one place.
"""

import dataclasses
import pathlib
import re
import zipfile
from collections.abc import Callable, Sequence

from build_error import BuildError

_HUNK_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

# Gives a file's text by its path; None if there is no such file.
Read = Callable[[str], str | None]


@dataclasses.dataclass(frozen=True)
class Hunk:
    """One change of a patch, with the line ends of its lines."""

    header: str  # its `@@` line, for messages
    first_line: int  # number, from 1, of the first old line
    old: tuple[str, ...]  # context and removed lines
    new: tuple[str, ...]  # context and added lines


@dataclasses.dataclass(frozen=True)
class FilePatch:
    """What the patch file named `patch` does to the file at `path`, first hunk to last."""

    patch: str
    path: str
    hunks: tuple[Hunk, ...]


@dataclasses.dataclass
class Applied:
    """What a series does to files."""

    # The changed files' text, by path.
    changed: dict[str, str] = dataclasses.field(default_factory=dict)
    # For each hunk that is elsewhere than its header says, where it is and where that was.
    moved: list[str] = dataclasses.field(default_factory=list)
    # For each file that could not be read, the first patch that changes it.
    absent: dict[str, str] = dataclasses.field(default_factory=dict)


def read_series(folder: pathlib.Path) -> list[str]:
    """Lists a folder's patches in the order in which they apply.

    The folder has a file `series`, one patch a line. A patch of another release is named with that
    release's folder, as ../2.21.0/0001-what-for.patch.
    """
    series = folder / "series"
    if not series.is_file():
        raise BuildError(f"{series} is missing.\nIt lists the patches to apply, one a line.")
    lines = (line.split("#")[0].strip() for line in series.read_text(encoding="utf-8").splitlines())
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
    """Reads what a unified diff does to each file; lines before the first `---` describe it."""
    lines = text.splitlines(keepends=True)
    patches: list[FilePatch] = []
    at = 0
    while at + 1 < len(lines):
        if not (lines[at].startswith("--- ") and lines[at + 1].startswith("+++ ")):
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
    """Finds a hunk's old lines in a file: the number, from 1, of the first of them wherever."""
    size = len(hunk.old)
    return [
        at + 1
        for at in range(len(lines) - size + 1)
        if hunk.old and tuple(lines[at : at + size]) == hunk.old
    ]


def apply_file_patch(file_patch: FilePatch, text: str, may_move: bool = False) -> str:
    """Applies one patch to the text of a file; an error names patch, file and hunk.

    With `may_move` a hunk whose lines are not where its header says goes where they are, if that is
    one place.
    """
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    done = 0
    for number, hunk in enumerate(file_patch.hunks, start=1):
        start = place_of(hunk, lines, may_move) - 1
        found = tuple(lines[start : start + len(hunk.old)])
        if start < done or found != hunk.old:
            raise BuildError(_mismatch(file_patch, number, hunk, lines))
        result += lines[done:start]
        result += hunk.new
        done = start + len(hunk.old)
    return "".join(result + lines[done:])


def place_of(hunk: Hunk, lines: Sequence[str], may_move: bool) -> int:
    """Says at which line, from 1, a hunk is to be applied: see apply_file_patch."""
    found = places(hunk, lines) if may_move else []
    return found[0] if len(found) == 1 else hunk.first_line


def apply_patches(
    folder: pathlib.Path, read: Read, *, may_move: bool = False, before: str = ""
) -> Applied:
    """Applies a series, in memory, to the files that `read` gives; others are left out.

    `may_move` is as for apply_file_patch, and on for a patch of another release. The patch
    `before`, and what comes after it, is not applied.
    """
    result = Applied()
    for name in read_series(folder):
        if name == before:
            break
        moves = may_move or "/" in name
        for file_patch in parse_patch(name, (folder / name).read_text(encoding="utf-8")):
            path = file_patch.path
            text = result.changed[path] if path in result.changed else read(path)
            if text is None:
                result.absent.setdefault(path, name)
                continue
            result.changed[path] = apply_file_patch(file_patch, text, moves)
            lines = text.splitlines(keepends=True)
            result.moved += [
                f"{path}: line {place}, not {hunk.first_line}"
                for hunk in file_patch.hunks
                if (place := place_of(hunk, lines, moves)) != hunk.first_line
            ]
    return result


def text_in(wheel: zipfile.ZipFile) -> Read:
    """Returns what reads the files of a wheel."""
    return lambda path: wheel.read(path).decode() if path in wheel.NameToInfo else None


def apply_series(folder: pathlib.Path, stock: zipfile.ZipFile) -> dict[str, str]:
    """Applies a whole series to a stock wheel's files; returns their text by path in the wheel."""
    applied = apply_patches(folder, text_in(stock))
    for path, name in applied.absent.items():
        raise BuildError(
            f"{name} changes {path}, which is not in the stock wheel.\n"
            "Correct the path in the patch; after a/ and b/ it begins at the wheel's root."
        )
    return applied.changed


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
    for at, expected in enumerate(hunk.old, start=hunk.first_line - 1):
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

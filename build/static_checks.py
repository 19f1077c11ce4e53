# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs what is checked before any test: style, types, patches, links.

    python3 build/static_checks.py [--python cp312] [--files FILE ...] [CHECK ...]

This is the one list of these checks: scripts/test.sh runs all of them, the hook of
.pre-commit-config.yaml those that look at the files of a commit. The tools are those of
build/requirements-dev.txt, in .venv.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_BIN = pathlib.PurePath(".venv/bin")
# Of .gitignore, at the repository's root.
_NOT_OURS = (".venv", "bazel-", "dist", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache")


@dataclasses.dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
      name: in the command line.
      command: to run at the repository's root.
      files: a regular expression for the paths, relative to the root, that it looks at.
      takes_files: whether it can look at some of them; if not, it looks at all of them always.
      hint: what to do if it fails.
    """

    name: str
    command: tuple[str, ...]
    files: str
    takes_files: bool
    hint: str


_RUFF = str(_BIN / "ruff")
CHECKS = (
    Check(
        "ruff",
        (_RUFF, "check", "--quiet"),
        r".*\.py",
        True,
        "Correct the lines named above; .venv/bin/ruff check --fix does some by itself.",
    ),
    Check(
        "ruff-format",
        (_RUFF, "format", "--check", "--quiet"),
        r".*\.py",
        True,
        "Run .venv/bin/ruff format.",
    ),
    Check(
        "mypy",
        (str(_BIN / "mypy"), "--no-error-summary", "build", "examples", "benchmarks", "tensorflow"),
        r".*\.py|pyproject\.toml",
        # What calls a changed function may be in any other file.
        False,
        "Correct the lines named above.",
    ),
    Check(
        "clang-format",
        (str(_BIN / "clang-format"), "--dry-run", "-Werror"),
        r"(tensorflow|build)/.*\.(h|cc)",
        True,
        "Run .venv/bin/clang-format -i on the files named above.",
    ),
    Check(
        "dockerfile",
        (str(_BIN / "hadolint"), "--failure-threshold", "info"),
        r"(.*/)?Dockerfile",
        True,
        "Correct the lines named above, or say in a comment why a rule is ignored.",
    ),
    Check(
        "patches",
        (sys.executable, "build/check_patches.py", "--all"),
        r"patches/.*|build/(check_patches|patch_series|remote_wheel|source_tree|stock_wheel)\.py",
        False,
        "The error above names patch, file and hunk.",
    ),
    Check(
        "lengths",
        (sys.executable, "build/static_checks.py", "--lengths"),
        r".*\.(py|cc|h|lds|bzl|sh|BUILD|bazel)|build/Dockerfile",
        True,
        "Divide the files named above by what each part answers.",
    ),
    Check(
        "links",
        (sys.executable, "build/check_links.py"),
        r".*\.md|tensorflow/.*/base/options\.(h|cc)|docs/.*",
        False,
        "The error above names page and line: correct the link, or say there what is missing.",
    ),
)
_MOST_LINES = 500
# Files that may be longer, with the reason.
_LONGER: dict[str, str] = {}


def too_long(files: Sequence[str], root: pathlib.Path) -> list[str]:
    """Finds sources of more than 500 lines.

    Args:
      files: paths relative to the repository's root.
      root: the repository.

    Returns:
      A line for each that is longer, and for each that is allowed to be and is not.
    """
    found = []
    for file in files:
        lines = len((root / file).read_text().splitlines())
        if (lines > _MOST_LINES) != (file in _LONGER):
            found.append(f"{file}: {lines} lines; at most {_MOST_LINES}, or else in _LONGER")
    return found


def concerned(check: Check, files: Sequence[str]) -> list[str]:
    """Finds what a check has to look at.

    Args:
      check: the check.
      files: paths relative to the repository's root.

    Returns:
      Those of them that it looks at.
    """
    return [file for file in files if re.fullmatch(check.files, file)]


def commands(
    checks: Sequence[Check], files: Sequence[str] | None, all_files: Sequence[str], python: str
) -> list[tuple[Check, list[str]]]:
    """Says which commands check files.

    Args:
      checks: which of the checks.
      files: to be checked, relative to the repository's root; None for all.
      all_files: all files of the repository.
      python: the tag of the wheel whose patches are checked; empty for the usual one.

    Returns:
      For each check that looks at one of the files, the check and its command.
    """
    found = []
    for check in checks:
        wanted = concerned(check, all_files if files is None else files)
        if not wanted:
            continue
        command = [*check.command, *(wanted if check.takes_files else [])]
        if check.name == "patches" and python:
            command.append(f"--python={python}")
        found.append((check, command))
    return found


def repository_files(root: pathlib.Path) -> list[str]:
    """Lists the files that are in the repository, or are new and not ignored.

    Args:
      root: the repository, or a copy of it without Git's folder, as in an image.

    Returns:
      Their paths, relative to it.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    names = set(listed.stdout.split("\0"))
    if listed.returncode:
        names = {
            path.relative_to(root).as_posix()
            for folder in root.iterdir()
            if not folder.name.startswith(_NOT_OURS)
            for path in [folder, *folder.rglob("*")]
        }
    return sorted(
        name for name in names if (root / name).is_file() and not (root / name).is_symlink()
    )


def run_checks(checks: Sequence[Check], files: Sequence[str] | None, python: str) -> None:
    """Runs checks, all of them even if one fails.

    Args:
      checks: which.
      files: to be checked, relative to the repository's root; None for all.
      python: as for commands.

    Raises:
      BuildError: names those that failed, and says what to do.
    """
    failed = []
    wanted = commands(checks, files, repository_files(_ROOT), python)

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    with concurrent.futures.ThreadPoolExecutor() as threads:
        ended = threads.map(run, [command for _, command in wanted])
        for (check, _), done in zip(wanted, ended, strict=True):
            print(f"{check.name} ...\n{done.stdout}", end="", flush=True)
            if done.returncode:
                failed.append(f"{check.name} failed. {check.hint}")
    if failed:
        raise BuildError("\n".join(failed))


def main() -> None:
    """Runs what the command line says."""
    names = [check.name for check in CHECKS]
    parser = command_line(__doc__)
    parser.add_argument("--python", metavar="TAG", default="", help="whose patches, such as cp312")
    parser.add_argument("--lengths", metavar="FILE", nargs="+", help="the check of that name")
    parser.add_argument("--files", metavar="FILE", nargs="*", help="check only these [all]")
    parser.add_argument("checks", metavar="CHECK", nargs="*", help=f"of {', '.join(names)} [all]")
    options = parser.parse_args()
    if options.lengths:
        if found := too_long(options.lengths, _ROOT):
            raise BuildError("\n".join(found))
        return
    for name in options.checks:
        if name not in names:
            parser.error(f"unknown check '{name}'. Allowed: {', '.join(names)}.")
    wanted = [check for check in CHECKS if not options.checks or check.name in options.checks]
    files = (
        None
        if options.files is None
        else [
            str((pathlib.Path.cwd() / file).resolve().relative_to(_ROOT)) for file in options.files
        ]
    )
    run_checks(wanted, files, options.python)


if __name__ == "__main__":
    run_main(main)

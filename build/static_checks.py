# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs what is checked before any test: style, types, patches, the documentation's site.

    python3 build/static_checks.py [--python cp312] [--files FILE ...] [CHECK ...]

This is the one list of these checks: scripts/test.sh runs all of them, the hook of
.pre-commit-config.yaml those that look at the files of a commit. The tools are those of
build/requirements-dev.txt, in .venv.
"""

import concurrent.futures
import dataclasses
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence

from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of .gitignore, at the repository's root.
_NOT_OURS = (".venv", "bazel-", "dist", ".git", ".mypy_cache", ".pytest_cache", ".ruff_cache")


@dataclasses.dataclass(frozen=True)
class Check:
    """One check."""

    name: str  # in the command line
    command: tuple[str, ...]  # to run at the repository's root
    files: str  # a regular expression for the paths, relative to the root, that it looks at
    hint: str  # what to do if it fails
    # Whether it can look at some of them; if not, it looks at all of them always.
    takes_files: bool = True

    def concerned(self, files: Sequence[str]) -> list[str]:
        """Returns those of some files that the check looks at."""
        return [file for file in files if re.fullmatch(self.files, file)]


_LINES = "Correct the lines named above"
CHECKS = (
    Check(
        "ruff",
        (".venv/bin/ruff", "check", "--quiet"),
        r".*\.py",
        f"{_LINES}; .venv/bin/ruff check --fix does some by itself.",
    ),
    Check(
        "ruff-format",
        (".venv/bin/ruff", "format", "--check", "--quiet"),
        r".*\.py",
        "Run .venv/bin/ruff format.",
    ),
    Check(
        "mypy",
        (".venv/bin/mypy", "--no-error-summary", "build", "examples", "benchmarks", "tensorflow"),
        r".*\.py|pyproject\.toml",
        f"{_LINES}.",
        # What calls a changed function may be in any other file.
        takes_files=False,
    ),
    Check(
        "clang-format",
        (".venv/bin/clang-format", "--dry-run", "-Werror"),
        r"(tensorflow|build|examples)/.*\.(h|cc)",
        "Run .venv/bin/clang-format -i on the files named above.",
    ),
    Check(
        "dockerfile",
        (".venv/bin/hadolint", "--failure-threshold", "info"),
        r"(.*/)?Dockerfile",
        f"{_LINES}, or say in a comment why a rule is ignored.",
    ),
    Check(
        "patches",
        (sys.executable, "build/check_patches.py", "--all"),
        r"patches/.*|build/(check_patches|patch_series|remote_wheel|source_tree|stock_wheel)\.py",
        "The error above names patch, file and hunk.",
        takes_files=False,
    ),
    Check(
        "lengths",
        (sys.executable, "build/static_checks.py", "--lengths"),
        r".*\.(py|cc|h|lds|bzl|sh|BUILD|bazel)|build/Dockerfile|README\.md",
        "Divide the files named above by what each part answers.",
    ),
    Check(
        "site",
        ("scripts/docs.sh",),
        r".*\.md|docs/.*|build/site_pages\.py",
        "The warning above names page and link.",
        takes_files=False,
    ),
)
_MOST_LINES = 500
# Files that may be longer, or must be shorter, with the reason.
_OTHER_LINES = {"README.md": 150}  # what is read in a minute; docs/ has the rest


def too_long(files: Sequence[str], root: pathlib.Path) -> list[str]:
    """Returns a line for each of the files, relative to the root, that has too many lines."""
    found = []
    for file in files:
        lines = len((root / file).read_text(encoding="utf-8").splitlines())
        most = _OTHER_LINES.get(file, _MOST_LINES)
        if lines > most:
            found.append(f"{file}: {lines} lines; at most {most}")
    return found


def commands(
    checks: Sequence[Check], files: Sequence[str], python: str = ""
) -> list[tuple[Check, list[str]]]:
    """Pairs each check that looks at one of the files with its command.

    Files are relative to the repository's root. `python` is the tag of the wheel whose patches are
    checked; empty for the usual one.
    """
    found = []
    for check in checks:
        if wanted := check.concerned(files):
            command = [*check.command, *(wanted if check.takes_files else [])]
            if check.name == "patches" and python:
                command.append(f"--python={python}")
            found.append((check, command))
    return found


def repository_files(root: pathlib.Path) -> list[str]:
    """Lists the files that are in the repository, or are new and not ignored.

    The root may be that of a copy of the repository without Git's folder, as in an image.
    """
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
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


def run_checks(checks: Sequence[Check], files: Sequence[str], python: str) -> None:
    """Runs checks of files, all of them even if one fails; the arguments are those of commands."""
    failed = []
    wanted = commands(checks, files, python)

    def run(command: list[str]) -> subprocess.CompletedProcess[str]:
        out = subprocess.PIPE
        return subprocess.run(
            command, cwd=_ROOT, stdout=out, stderr=subprocess.STDOUT, text=True, check=False
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
    files = repository_files(_ROOT)
    if options.files is not None:
        files = [str(pathlib.Path(file).resolve().relative_to(_ROOT)) for file in options.files]
    wanted = [check for check in CHECKS if not options.checks or check.name in options.checks]
    run_checks(wanted, files, options.python)


if __name__ == "__main__":
    run_main(main)

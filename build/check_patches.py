# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks the patches against the stock wheels.

    python3 build/check_patches.py [--python cp312] [--release 2.20.0 | --all]

Every patch must be in the series and apply exactly, and every changed file must still be Python.
Of the patches of TensorFlow's sources, where a release has such, only those of files that the wheel
has too can be checked without the sources (scripts/patches.py check --source FOLDER).
"""

import concurrent.futures
import pathlib
import zipfile

import patch_series
import remote_wheel
import source_tree
import stock_wheel
from build_error import BuildError, command_line, run_main
from releases import BASE, release_named

PATCHES = pathlib.Path(__file__).resolve().parent.parent / "patches"


def check(wheel: zipfile.ZipFile, patches: pathlib.Path) -> list[str]:
    """Applies a series to an open stock wheel's files, in memory, and lists the changed files."""
    changed = patch_series.apply_series(patches, wheel)
    _check_python(patches, changed)
    return list(changed)


def check_source(wheel: zipfile.ZipFile, series: pathlib.Path, name: str) -> patch_series.Applied:
    """Applies a series of source patches to those of the files that a wheel has, in memory.

    `name` is the wheel's, for errors; what is `absent` then is what the wheel does not have.
    """
    read = source_tree.read_from_wheel(wheel)
    applied = patch_series.apply_patches(series, read, may_move=True)
    other = source_tree.check_texts(series, read)
    if applied.moved or other:
        raise BuildError(
            f"{series}: {(other or applied.moved)[0]} is not {name}'s text.\n"
            "Make the patch and its row of checked.csv of that."
        )
    _check_python(series, {path: t for path, t in applied.changed.items() if path.endswith(".py")})
    return applied


def _check_python(patches: pathlib.Path, changed: dict[str, str]) -> None:
    for path, text in changed.items():
        try:
            compile(text, path, "exec")
        except SyntaxError as error:
            raise BuildError(
                f"With the patches in {patches} applied, {path}, line {error.lineno}, is not "
                f"Python: {error.msg}."
            ) from error


def describe_source(applied: patch_series.Applied, what: str) -> str:
    """Says what a series of source patches did to a wheel's files, or to a tree."""
    return (
        f"source patches apply to {len(applied.changed)} files of {what}"
        f" ({len(applied.moved)} hunks moved); it does not have {len(applied.absent)}"
    )


def check_releases(tag: str, release: str = "") -> None:
    """Checks the patches of one release, or of all if "", and prints a line for each."""
    folders = sorted(path.parent for path in PATCHES.glob(f"{release or '*'}/series"))

    def checked(folder: pathlib.Path) -> list[str]:
        if folder.name == BASE:  # of which the rest is needed, too
            stock_wheel.fetch(tag, stock_wheel.cache_folder(), folder.name)
        name = stock_wheel.wheel_name(tag, folder.name)
        count = len(patch_series.read_series(folder))
        with remote_wheel.opened(tag, folder.name) as wheel:
            changed = check(wheel, folder)
            lines = [f"{count} patches apply to {name} and change {len(changed)} files"]
            if (folder / "source").is_dir():
                lines.append(describe_source(check_source(wheel, folder / "source", name), name))
        return lines

    with concurrent.futures.ThreadPoolExecutor() as threads:  # most of it is waiting
        for lines in threads.map(checked, folders):
            print(*lines, sep="\n")


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--python", metavar="TAG", default=stock_wheel.default_tag())
    parser.add_argument("--release", default=BASE, help=f"of TensorFlow; default: {BASE}")
    parser.add_argument("--all", action="store_true", help="each release that has patches")
    options = parser.parse_args()
    release_named(options.release)
    check_releases(options.python, "" if options.all else options.release)


if __name__ == "__main__":
    run_main(main)

# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Checks the patches against the stock wheels.

    python3 build/check_patches.py [--python cp312] [--release 2.20.0 | --all]

Every patch must be in the series and apply exactly, and every changed file must still be Python.
"""

from __future__ import annotations

import concurrent.futures
import pathlib
import zipfile

import patch_series
import remote_wheel
import stock_wheel
from build_error import BuildError, command_line, run_main
from releases import BASE, release_named

PATCHES = pathlib.Path(__file__).resolve().parent.parent / "patches"


def check(wheel: zipfile.ZipFile, patches: pathlib.Path) -> list[str]:
    """Applies a series to a wheel's files, in memory.

    Args:
      wheel: the stock wheel, open.
      patches: folder of the series.

    Returns:
      The files that it changes.

    Raises:
      BuildError: a patch is wrong; names it, the file and the hunk.
    """
    changed = patch_series.apply_series(patches, wheel)
    for path, text in changed.items():
        try:
            compile(text, path, "exec")
        except SyntaxError as error:
            raise BuildError(
                f"With the patches in {patches} applied, {path}, line {error.lineno}, is not "
                f"Python: {error.msg}."
            ) from error
    return list(changed)


def check_releases(tag: str, release: str = "") -> None:
    """Checks the patches of one release, or of all, and prints a line for each.

    Args:
      tag: the Python of the wheels, such as "cp312".
      release: such as "2.20.0"; "" for all.

    Raises:
      BuildError: see check, and remote_wheel.opened.
    """
    folders = sorted(path.parent for path in PATCHES.glob(f"{release or '*'}/series"))

    def checked(folder: pathlib.Path) -> str:
        if folder.name == BASE:  # of which the rest is needed, too
            stock_wheel.fetch(tag, stock_wheel.cache_folder(), folder.name)
        with remote_wheel.opened(tag, folder.name) as wheel:
            changed = check(wheel, folder)
        count = len(patch_series.read_series(folder))
        name = stock_wheel.wheel_name(tag, folder.name)
        return f"{count} patches apply to {name} and change {len(changed)} files"

    with concurrent.futures.ThreadPoolExecutor() as threads:  # most of it is waiting
        for line in threads.map(checked, folders):
            print(line)


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

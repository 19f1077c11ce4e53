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
"""Checks the patches against the stock wheel.

    python3 build/check_patches.py [--python cp312] [--release 2.20.0] [--patches FOLDER]

Every patch must be in the series and apply exactly, and every changed file must still be Python.
"""

from __future__ import annotations

import pathlib
import zipfile

import patch_series
import stock_wheel
from build_error import BuildError, command_line, run_main
from releases import BASE

PATCHES = pathlib.Path(__file__).resolve().parent.parent / "patches"


def check(wheel: pathlib.Path, patches: pathlib.Path) -> list[str]:
    """Applies a series to a wheel's files, in memory.

    Args:
      wheel: the stock wheel.
      patches: folder of the series.

    Returns:
      The files that it changes.

    Raises:
      BuildError: a patch is wrong; names it, the file and the hunk.
    """
    with zipfile.ZipFile(wheel) as archive:
        changed = patch_series.apply_series(patches, archive)
    for path, text in changed.items():
        try:
            compile(text, path, "exec")
        except SyntaxError as error:
            raise BuildError(
                f"With the patches in {patches} applied, {path}, line {error.lineno}, is not "
                f"Python: {error.msg}."
            ) from error
    return list(changed)


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--python", metavar="TAG", default=stock_wheel.default_tag())
    parser.add_argument("--release", default=BASE, help=f"of TensorFlow; default: {BASE}")
    parser.add_argument("--patches", type=pathlib.Path, help="default: those of the release")
    options = parser.parse_args()
    wheel = stock_wheel.fetch(options.python, stock_wheel.cache_folder(), options.release)
    patches = options.patches or PATCHES / options.release
    changed = check(wheel, patches)
    count = len(patch_series.read_series(patches))
    print(f"{count} patches apply to {wheel.name} and change {len(changed)} files")


if __name__ == "__main__":
    run_main(main)

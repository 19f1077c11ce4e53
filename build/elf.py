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
"""What readelf says of a shared library."""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Iterator

from build_error import BuildError


def readelf(library: pathlib.Path, *options: str) -> Iterator[list[str]]:
    """Runs readelf.

    Args:
      library: an ELF file.
      *options: what to show, such as "--dynamic".

    Yields:
      The words of each line.

    Raises:
      BuildError: there is no readelf, or it cannot read the file.
    """
    try:
        process = subprocess.Popen(
            ["readelf", "--wide", *options, library],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError as error:
        raise BuildError("There is no readelf.\nInstall it: apt-get install binutils.") from error
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            yield line.split()
    if process.returncode != 0:
        raise BuildError(f"readelf cannot read {library}: it is not there, or is no ELF file.")


def global_symbol(words: list[str]) -> tuple[str, bool] | None:
    """Reads a line of `--dyn-syms`.

    Args:
      words: the line's.

    Returns:
      The symbol's name, without its version, and whether the library defines it; None for a line
      that has no global symbol.
    """
    if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK"):
        return None
    return words[7].partition("@")[0], words[6] != "UND"

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What readelf says of a shared library."""

import os
import pathlib
import subprocess
from collections.abc import Iterator

from build_error import BuildError


def readelf(library: pathlib.Path, *options: str) -> Iterator[list[str]]:
    """Runs readelf with options such as "--dynamic" and yields the words of each line."""
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
    """The name without version in a line of `--dyn-syms`, and whether it is defined; or None."""
    if len(words) < 8 or words[4] not in ("GLOBAL", "WEAK"):
        return None
    return words[7].partition("@")[0], words[6] != "UND"

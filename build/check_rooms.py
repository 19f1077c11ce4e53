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
"""Checks that the rooms of the runtime see only those below them.

    python3 build/check_rooms.py [--bazel bazelisk] [--option=--repo_env=TFMS_PYTHON=cp312]

Every room must leave its visibility to rooms.bzl, and the build must refuse both ways upward: a
dependency on a room above, and an include without one. It must also refuse the process's options
where they are passed.
"""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Sequence

from build_error import BuildError, command_line, run_main

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_RUNTIME = "tensorflow/core/common_runtime/multistream"
# Everybody's, in tests.
_TESTING = "testing"


def rooms_open_to_all(runtime: pathlib.Path) -> list[str]:
    """Looks for rooms that say themselves who may use them.

    Args:
      runtime: the folder that has the rooms.

    Returns:
      The names of those whose package's visibility is not that of rooms.bzl.
    """
    builds = {build.parent.name: build.read_text() for build in runtime.glob("*/BUILD.bazel")}
    return sorted(
        room
        for room, text in builds.items()
        if room != _TESTING and f'default_visibility = users_of("{room}")' not in text
    )


def check_refused(target: str, because: Sequence[str], bazel: Sequence[str]) -> None:
    """Tries to build what must not build.

    Args:
      target: its label.
      because: Bazel's or the compiler's words, one of which must be in the output.
      bazel: the command, with its options.

    Raises:
      BuildError: it builds, or fails for another reason.
    """
    ended = subprocess.run([*bazel, target], cwd=_ROOT, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        raise BuildError(
            f"{target} builds, and must not: a room of the runtime sees what it must not. "
            f"See {_RUNTIME}/rooms.bzl."
        )
    output = ended.stdout + ended.stderr
    if not any(words in output for words in because):
        raise BuildError(f"{target} fails, but not because of the rooms:\n{output[-2000:]}")


def main() -> None:
    """Runs what the command line says."""
    parser = command_line(__doc__)
    parser.add_argument("--bazel", default="bazel", help="the command [bazel]")
    parser.add_argument("--option", action="append", default=[], help="of `bazel build`")
    options = parser.parse_args()
    open_rooms = rooms_open_to_all(_ROOT / _RUNTIME)
    if open_rooms:
        raise BuildError(
            f"{_RUNTIME}/{open_rooms[0]}/BUILD.bazel: its default_visibility must be "
            f'users_of("{open_rooms[0]}"), of rooms.bzl.'
        )
    build = [options.bazel, "build", *options.option]
    check_refused(f"//{_RUNTIME}/util:refused_dependency", ["is not visible from"], build)
    check_refused(f"//{_RUNTIME}/executor:refused_options", ["is not visible from"], build)
    check_refused(
        f"//{_RUNTIME}/util:refused_include",
        ["undeclared inclusion", "stream_group.h: No such file"],
        build,
    )


if __name__ == "__main__":
    run_main(main)

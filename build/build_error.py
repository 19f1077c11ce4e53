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
"""The one kind of failure that the build reports to its user."""

from __future__ import annotations

import sys
from collections.abc import Callable


class BuildError(Exception):
    """Says what is wrong and, after a line break, what to do about it."""


def run_main(main: Callable[[], None]) -> None:
    """Runs a program and turns a BuildError into one message and exit status 1.

    Args:
      main: the program.

    Raises:
      SystemExit: with status 1, if `main` raised a BuildError.
    """
    try:
        main()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)

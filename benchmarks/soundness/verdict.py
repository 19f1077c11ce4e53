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
"""What a program that verifies results says at its end, and with which status it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable


def status_of(problems: Iterable[str]) -> int:
    """Prints what is wrong, on standard error.

    Args:
        problems: a line for each.

    Returns:
        The exit status: 1 if there is any, or else 0.
    """
    status = 0
    for problem in problems:
        print(f"WRONG: {problem}", file=sys.stderr, flush=True)
        status = 1
    return status


def end(status: int) -> None:
    """Ends the process at once: Python's own clean-up would wait for threads of TensorFlow's."""
    sys.stdout.flush()
    os._exit(status)

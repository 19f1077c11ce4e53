# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The last output and the exit status of a program that verifies results."""

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

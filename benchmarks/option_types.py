# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Types of command line options."""

import argparse
from collections.abc import Callable


def whole(low: int, high: int) -> Callable[[str], int]:
    """Makes a parser of an option that takes a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return value

    return parse


def wholes(low: int, high: int) -> Callable[[str], list[int]]:
    """Makes a parser of an option that takes such numbers, with commas between them."""
    parse = whole(low, high)
    return lambda text: [parse(word) for word in text.split(",")]

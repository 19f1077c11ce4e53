# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the programs of this folder share: types of options, emulated GPUs, the verdict."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

TIMES_MEAN_NOTHING = "the GPU is emulated on the CPU: results count, times mean nothing"


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


def wholes(low: int, high: int) -> Callable[[str], tuple[int, ...]]:
    """Makes a parser of an option that takes such numbers, with commas between them."""
    parse = whole(low, high)
    return lambda text: tuple(parse(word) for word in text.split(","))


def above_zero(text: str) -> float:
    """Parses an option that takes a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def names_of(allowed: Iterable[str]) -> Callable[[str], list[str]]:
    """Makes a parser of an option that takes some of these names, with commas between them."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in allowed]:
            raise argparse.ArgumentTypeError(
                f"there is no {unknown[0]!r}; there are {', '.join(allowed)}"
            )
        return names

    return parse


def gpus_are_emulated() -> bool:
    """Tells whether this process's environment asks for emulated GPUs."""
    return os.environ.get("TF_MULTI_STREAM_EMULATED_GPUS", "").strip() not in ("", "0")


def verdict(problems: Iterable[str]) -> int:
    """Prints a line for each problem; returns the exit status: 1 if there is any, or else 0."""
    status = 0
    for problem in problems:
        print(f"WRONG: {problem}", file=sys.stderr, flush=True)
        status = 1
    return status


def verdict_of(found: Mapping[str, Any], slow: str) -> int:
    """Prints what a program has found, a line of JSON; returns the exit status.

    `found` has the results that were `wrong`, and what has `grown`; `slow` says what is too slow.
    Slowness and growth count on a GPU only.
    """
    print(json.dumps(found), flush=True)
    problems = [f"{found['wrong']} results were wrong"] if found["wrong"] else []
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    else:
        problems += [problem for problem in (slow, found["grown"]) if problem]
    return verdict(problems)


def end(status: int) -> None:
    """Ends the process at once: Python's own clean-up would wait for threads of TensorFlow's."""
    sys.stdout.flush()
    os._exit(status)

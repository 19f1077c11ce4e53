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
"""The same training on one stream and with scopes, and whether the two are the same.

Both are trained for the same steps, in blocks that take turns, so that a machine that
slows down slows both down. `multistream_training.py` and others say what is trained.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import tolerance, whole
from process_groups import check_environment, groups_used, sanitizer_reports

# Steps before the measured ones: the first ones build graphs and allocate.
WARM_UP = 10
# Measured parts of each training.
BLOCKS = 5


@dataclasses.dataclass(frozen=True)
class Steps:
    """Some steps of training.

    Args:
        losses: of each step.
        seconds: that each step took.
    """

    losses: list[float]
    seconds: list[float]


@dataclasses.dataclass(frozen=True)
class Training:
    """A model that is being trained.

    Args:
        train: goes on for so many steps.
        weights: returns the weights as they are now.
    """

    train: Callable[[int], Steps]
    weights: Callable[[], list[np.ndarray]]


@dataclasses.dataclass
class Side:
    """What one of the two trainings gave.

    Args:
        losses: of every step, warm-up included.
        seconds: of the measured steps.
        groups: the stream groups whose memory had been used after the warm-up.
        weights: at the end.
    """

    losses: list[float]
    seconds: list[float]
    groups: list[int]
    weights: list[np.ndarray]

    @property
    def median_ms(self) -> float:
        """Median time of a measured step in milliseconds."""
        return 1000.0 * statistics.median(self.seconds)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The two trainings.

    Args:
        one: on one stream.
        scoped: with scopes.
        peaks: the most memory that each stream group has used, in bytes.
        reports: of the stream sanitizer; None if it is off.
    """

    one: Side
    scoped: Side
    peaks: list[int]
    reports: int | None

    @property
    def largest_difference(self) -> float:
        """Largest difference of the losses of a step; not a number if a loss is none."""
        return float(np.max(np.abs(np.subtract(self.one.losses, self.scoped.losses))))

    @property
    def same_weights(self) -> bool:
        """Whether the weights at the end agree bit by bit."""
        pairs = zip(self.one.weights, self.scoped.weights, strict=True)
        return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)

    @property
    def ratio(self) -> float:
        """How many times as fast a step with scopes is."""
        return self.one.median_ms / self.scoped.median_ms

    def speed(self, what: str) -> str:
        """Says how many times as fast `what` is, where that means anything."""
        measured = f"({len(self.one.seconds)} of {len(self.one.losses)} steps measured)"
        if gpus_are_emulated():
            return f"{TIMES_MEAN_NOTHING} {measured}"
        return f"{what} is {self.ratio:.2f} times as fast {measured}"

    def failure(self, tolerance: float) -> str:
        """Says what is wrong.

        Args:
            tolerance: largest difference of losses allowed; 0 compares weights as well.

        Returns:
            A sentence; empty if all is well.
        """
        if not self.largest_difference <= tolerance:
            pairs = zip(self.one.losses, self.scoped.losses, strict=True)
            step, (a, b) = next(
                (i, pair) for i, pair in enumerate(pairs) if not abs(pair[0] - pair[1]) <= tolerance
            )
            return (
                f"the losses differ by up to {self.largest_difference:g}, more than {tolerance:g}:"
                f" in step {step} they are {a!r} on one stream and {b!r} with scopes"
            )
        if tolerance == 0 and not self.same_weights:
            return "the losses are the same, and the weights at the end are not"
        if self.reports:
            return f"the stream sanitizer has {self.reports} reports"
        return ""

    def figures(self) -> dict[str, Any]:
        """Everything but the weights, for JSON."""
        return {
            **{
                name: {
                    "losses": side.losses,
                    "seconds": side.seconds,
                    "median_ms": side.median_ms,
                    "groups": side.groups,
                }
                for name, side in (("one_stream", self.one), ("scopes", self.scoped))
            },
            "ratio": self.ratio,
            "largest_difference": self.largest_difference,
            "same_weights": self.same_weights,
            "peak_bytes_in_use": self.peaks,
            "sanitizer_reports": self.reports,
        }

    def __str__(self) -> str:
        lines = []
        for name, side in (("one stream: ", self.one), ("with scopes:", self.scoped)):
            lines.append(
                f"{name} loss {side.losses[0]:.6g} -> {side.losses[-1]:.6g},"
                f" median step {side.median_ms:.3f} ms, groups {side.groups}"
            )
        lines.append(self.speed("a step with scopes"))
        lines.append(f"largest difference of the losses: {self.largest_difference:g}")
        lines.append(f"weights at the end: {'the same bits' if self.same_weights else 'different'}")
        for group, peak in enumerate(self.peaks):
            lines.append(f"group {group}: peak {peak / 1024:.1f} KiB")
        if self.reports is not None:
            lines.append(f"sanitizer reports: {self.reports}")
        return "\n".join(lines)


def timed(step: Callable[[], Any]) -> Callable[[int], Steps]:
    """Makes `Training.train` of a function that trains for a step and returns its loss."""

    def train(steps: int) -> Steps:
        result = Steps([], [])
        for _ in range(steps):
            began = time.perf_counter()
            loss = float(step())
            result.seconds.append(time.perf_counter() - began)
            result.losses.append(loss)
        return result

    return train


def compare(make: Callable[[bool], Training], steps: int) -> Comparison:
    """Trains without and with scopes and compares.

    Args:
        make: makes the training; its argument is whether with scopes.
        steps: of each of the two, more than `WARM_UP`.

    Returns:
        The comparison.
    """
    trainings, sides = [], []
    for scoped in (False, True):
        training = make(scoped)
        losses = training.train(WARM_UP).losses
        trainings.append(training)
        sides.append(Side(losses, [], groups_used(), []))
    measured = steps - WARM_UP
    blocks = min(BLOCKS, measured)
    for block in range(blocks):
        size = measured * (block + 1) // blocks - measured * block // blocks
        for side, training in zip(sides, trainings, strict=True):
            done = training.train(size)
            side.losses.extend(done.losses)
            side.seconds.extend(done.seconds)
    for side, training in zip(sides, trainings, strict=True):
        side.weights = training.weights()
    peaks = [stats.peak_bytes_in_use for stats in tf.cuda.stream_stats() if stats.gpu == 0]
    return Comparison(sides[0], sides[1], peaks, sanitizer_reports())


def add_common_options(parser: argparse.ArgumentParser, steps: int) -> None:
    """Adds the options of every comparison; `steps` is the default of --steps."""
    parser.add_argument(
        "--steps",
        type=whole(WARM_UP + 1, 1_000_000),
        default=steps,
        help=f"of each of the two, with {WARM_UP} of warm-up [{steps}]",
    )
    parser.add_argument("--seed", type=whole(0, 2**31 - 1), default=20260, help="[20260]")
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=0.0,
        help="largest difference of losses [0: same bits, weights too]",
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")


def run(name: str, options: argparse.Namespace, work: Callable[[], tuple[Comparison, Any]]) -> int:
    """Checks the environment, does the work, prints and writes what came out.

    Args:
        name: of the program, for messages.
        options: with `tolerance`, `json` and others, which are written with the figures.
        work: returns the comparison and further figures by name.

    Returns:
        The exit status.
    """
    try:
        for missing in check_environment():
            print(f"{name}: scopes have no effect: {missing}", file=sys.stderr)
        tf.config.experimental.enable_op_determinism()
        tf.get_logger().setLevel("ERROR")  # no advice to write for TensorFlow 2
        comparison, others = work()
        print(comparison, flush=True)
        if options.json is not None:
            settings = {key: value for key, value in vars(options).items() if key != "json"}
            everything = {"options": settings, **comparison.figures(), **others}
            options.json.write_text(json.dumps(everything, indent=1))
    except (ImportError, OSError, RuntimeError, ValueError, tf.errors.OpError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    if failure := comparison.failure(options.tolerance):
        print(f"{name}: {failure}", file=sys.stderr)
        return 1
    return 0

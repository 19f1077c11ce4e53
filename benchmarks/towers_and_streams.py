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
r"""Trains a model on several GPUs and on several streams of each, in one tf.function.

A tower is a copy of the model on a GPU of its own, with a part of the batch. Its
`--branches` branches of `--layers` dense layers are on the first `--groups` stream
groups of that GPU, in turn:

    tower 0, GPU 0   x0 --+-- branch 0, group 0 --+-- loss 0 --+
                          +-- branch 1, group 1 --+            |    mean of the
    tower 1, GPU 1   x1 --+-- branch 0, group 0 --+-- loss 1 --+--  gradients, to
                          +-- branch 1, group 1 --+                 all towers

It is trained twice from the same start: without scopes, where each GPU has all of its
tower on one stream, and with the branches in `tf.stream` scopes. Both are trained for
the same steps, in blocks that take turns, so that a machine that slows down slows
both down. Losses and weights of the two must be the same bits, and so must the
weights of the towers.

    export TF_GPU_STREAM_GROUP_COUNT=4 TF_NODE_LEVEL_MULTISTREAM=true
    python benchmarks/towers_and_streams.py --towers 2 --groups 4

With one GPU there is one tower. Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=2 stands
in for two: the results are compared all the same, and the times mean nothing. Ops are
deterministic (tf.config.experimental.enable_op_determinism).

Exit status: 0, 1 after an error or if the two differ, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
import training_comparison
from option_types import whole
from training_comparison import Comparison, Training

RATE = 0.5
# What TF_GPU_STREAM_GROUP_COUNT and TF_MULTI_STREAM_EMULATED_GPUS take.
MOST_GROUPS = 64
MOST_EMULATED = 16


@dataclasses.dataclass(frozen=True)
class Places:
    """Where towers and branches go.

    Args:
        towers: number of GPUs, from GPU 0 on.
        groups: number of stream groups of each, from group 0 on.
    """

    towers: int
    groups: int


def find_places(towers: int | None, groups: int | None) -> Places:
    """Chooses GPUs and groups.

    Args:
        towers: as many as asked for; None for all GPUs.
        groups: as many as asked for; None for all that each of these GPUs has.

    Returns:
        The places.

    Raises:
        ValueError: there are fewer.
    """
    gpus = len(tf.config.list_logical_devices("GPU"))
    if towers is not None and towers > gpus:
        emulated = f", or set TF_MULTI_STREAM_EMULATED_GPUS={towers} for emulated ones"
        raise ValueError(
            f"--towers {towers}: each tower needs a GPU of its own, and TensorFlow finds {gpus}."
            f" Ask for {gpus} or less{emulated if towers <= MOST_EMULATED else ''}"
        )
    towers = towers or gpus
    made = [tf.cuda.stream_group_count(gpu) for gpu in range(towers)]
    fewest = min(made)
    if groups is not None and groups > fewest:
        raise ValueError(
            f"--groups {groups}: GPU {made.index(fewest)} has {fewest} stream"
            f" group{'s' if fewest > 1 else ''}. Ask for {fewest} or less, or set"
            f" TF_GPU_STREAM_GROUP_COUNT={groups}"
        )
    return Places(towers, groups or fewest)


@dataclasses.dataclass(frozen=True)
class Tower:
    """A copy of the model.

    Args:
        gpu: name of its device.
        x: float32, [batch, width], its part of the batch.
        target: float32, [batch, width].
        branches: the kernels, [width, width] each, of the layers of each branch.
    """

    gpu: str
    x: Any
    target: Any
    branches: list[list[Any]]

    @property
    def weights(self) -> list[Any]:
        """All kernels."""
        return [kernel for branch in self.branches for kernel in branch]


def make_towers(options: argparse.Namespace, places: Places) -> list[Tower]:
    """Draws the first weights, the same for all towers, and a part of the batch for each.

    Args:
        options: of the command line.
        places: of the towers.

    Returns:
        The towers; the same ones for the same arguments.
    """
    random = np.random.default_rng(options.seed)
    width = options.width
    scale = np.float32(np.sqrt(width))

    def draw(*shape: int) -> np.ndarray:
        return random.normal(0, 1, shape).astype(np.float32)

    kernels = [
        [draw(width, width) / scale for _ in range(options.layers)] for _ in range(options.branches)
    ]
    teacher = draw(width, width) / scale
    towers = []
    for number in range(places.towers):
        x = draw(options.batch, width)
        with tf.device(f"/GPU:{number}"):
            towers.append(
                Tower(
                    f"/GPU:{number}",
                    tf.constant(x),
                    tf.constant(np.sin(x @ teacher)),
                    [[tf.Variable(kernel) for kernel in branch] for branch in kernels],
                )
            )
    return towers


def tower_loss(tower: Tower, groups: int, scoped: bool) -> Any:
    """Builds a tower; returns its loss."""
    ends = []
    for number, branch in enumerate(tower.branches):
        with tf.stream(number % groups) if scoped else contextlib.nullcontext():
            y = tower.x
            for kernel in branch:
                y = tf.tanh(tf.matmul(y, kernel))
            ends.append(y)
    return tf.reduce_mean(tf.math.squared_difference(tf.add_n(ends), tower.target))


def make_training(options: argparse.Namespace, places: Places, scoped: bool) -> Training:
    """Makes the towers and the function that trains them for a step.

    Args:
        options: of the command line.
        places: of towers and branches.
        scoped: whether branches are on groups.

    Returns:
        The training; its loss is the mean of the towers'.
    """
    towers = make_towers(options, places)

    @tf.function(autograph=False)
    def step() -> Any:
        losses, gradients = [], []
        for tower in towers:
            with tf.device(tower.gpu), tf.GradientTape() as tape:
                losses.append(tower_loss(tower, places.groups, scoped))
            with tf.device(tower.gpu):
                gradients.append(tape.gradient(losses[-1], tower.weights))
        for number, of_towers in enumerate(zip(*gradients, strict=True)):
            with tf.device(towers[0].gpu):
                change = tf.add_n(of_towers) * (RATE / len(towers))
            for tower in towers:
                with tf.device(tower.gpu):
                    tower.weights[number].assign_sub(change)
        with tf.device(towers[0].gpu):
            return tf.add_n(losses) / len(losses)

    return Training(
        training_comparison.timed(step),
        lambda: [weight.numpy() for tower in towers for weight in tower.weights],
    )


class TowersComparison(Comparison):
    """The two trainings, of towers on several GPUs."""

    def __str__(self) -> str:
        lines = []
        for name, side in (("one stream a GPU:  ", self.one), ("branches on groups:", self.scoped)):
            lines.append(
                f"{name} loss {side.losses[0]:.6g} -> {side.losses[-1]:.6g},"
                f" median step {side.median_ms:.3f} ms"
            )
        lines.append(self.speed("a step with branches on groups"))
        lines.append(f"largest difference of the losses: {self.largest_difference:g}")
        lines.append(f"weights at the end: {'the same bits' if self.same_weights else 'different'}")
        for gpu, groups in groups_by_gpu().items():
            lines.append(f"GPU {gpu}: groups {groups} used")
        if self.reports is not None:
            lines.append(f"sanitizer reports: {self.reports}")
        return "\n".join(lines)


def groups_by_gpu() -> dict[int, list[int]]:
    """The stream groups of each GPU whose memory this process has used."""
    used: dict[int, list[int]] = {}
    for stats in tf.cuda.stream_stats():
        groups = used.setdefault(stats.gpu, [])
        if stats.peak_bytes_in_use > 0:
            groups.append(stats.group)
    return used


def towers_agree(weights: list[np.ndarray], towers: int) -> bool:
    """Whether all towers have the same weights, bit by bit.

    Args:
        weights: of all towers, one tower after another.
        towers: how many.

    Returns:
        True if so.
    """
    size = len(weights) // towers
    return all(w.tobytes() == weights[i % size].tobytes() for i, w in enumerate(weights))


def compare(options: argparse.Namespace) -> tuple[Comparison, dict[str, Any]]:
    """Trains without and with scopes.

    Args:
        options: of the command line.

    Returns:
        The comparison, and which groups of each GPU have been used.

    Raises:
        RuntimeError: the towers' weights differ.
        ValueError: there are fewer GPUs or groups than asked for.
    """
    places = find_places(options.towers, options.groups)
    print(
        f"{places.towers} tower{'s' if places.towers > 1 else ''} of {options.branches} branches of"
        f" {options.layers} layers, width {options.width}, batch {options.batch} a tower,"
        f" {places.groups} stream group{'s' if places.groups > 1 else ''} a GPU",
        flush=True,
    )
    made = training_comparison.compare(
        lambda scoped: make_training(options, places, scoped), options.steps
    )
    for name, side in (("on one stream", made.one), ("with branches on groups", made.scoped)):
        if not towers_agree(side.weights, places.towers):
            raise RuntimeError(f"the towers' weights differ at the end {name}")
    found = TowersComparison(made.one, made.scoped, made.peaks, made.reports)
    return found, {"places": dataclasses.asdict(places), "groups_by_gpu": groups_by_gpu()}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--towers", type=whole(1, 1024), help="one a GPU [all GPUs]")
    parser.add_argument("--groups", type=whole(1, MOST_GROUPS), help="of a GPU [all it has]")
    parser.add_argument("--branches", type=whole(1, 1024), default=4, help="of a tower [4]")
    parser.add_argument("--layers", type=whole(1, 1024), default=12, help="of a branch [12]")
    parser.add_argument("--width", type=whole(1, 65_536), default=64, help="of a layer [64]")
    parser.add_argument("--batch", type=whole(1, 1_000_000), default=32, help="of a tower [32]")
    training_comparison.add_common_options(parser, steps=300)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    status: int = training_comparison.run("towers_and_streams", options, lambda: compare(options))
    return status


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the kinds of work have in common: where they run, and models whose results are known.

The results to compare with come from a process of its own with one stream group, so that what all
groups have in common cannot hide a mistake.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from typing import Any

import numpy as np
import tensorflow as tf
from draw import BRANCHES, DEPTH
from tally import Tally

tf1 = tf.compat.v1
GPU = "/GPU:0"
WIDTH = 64
# Inputs of a kind of work that serves.
CASES = 8

Results = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where work runs.

    Args:
        gpu: whether the GPU is a real one.
        groups: its stream groups.
        node_level: whether nodes of a step have groups.
        policy: that splits steps; empty if there is none.
        seed: of all models and inputs.
        folder: for files.
        memory_mib: of the GPU for all groups; 0 for all it has.
    """

    gpu: bool
    groups: int
    node_level: bool
    policy: str
    seed: int
    folder: str
    memory_mib: int = 0


class Work:
    """A kind of work: a model, and a step that verifies what it gives.

    Args:
        place: where it runs.
        reference: what `results` gave on one stream; empty in the process that makes it.
    """

    def __init__(self, place: Place, reference: Results) -> None:
        self.place = place
        self.reference = reference

    def results(self) -> Results:
        """What is to be compared with, by name; computed before there is load."""
        return {}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Does one step and verifies it.

        Args:
            worker: its number among the workers of this kind.
            draw: what this worker draws from.
            tally: counts.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Ends what it has opened."""


def random_of(place: Place, name: str) -> np.random.Generator:
    """Draws for a kind of work; the same seed gives the same in each process."""
    return np.random.default_rng([place.seed, *name.encode()])


def matrix(draw: np.random.Generator, *shape: int) -> np.ndarray:
    """A matrix of a layer, which neither grows nor shrinks what goes through."""
    return (draw.normal(0, 1, shape) / np.sqrt(shape[0])).astype(np.float32)


def cases_of(place: Place, name: str) -> list[np.ndarray]:
    """The inputs of a kind of work: batches of different sizes."""
    draw = random_of(place, f"{name} cases")
    return [draw.normal(0, 1, (8 + 4 * i, WIDTH)).astype(np.float32) for i in range(CASES)]


def layer_scope(place: Place, branch: int, layer: int) -> Any:
    """The scope of a branch's layer, in groups in turn; none if a policy splits."""
    if place.policy:
        return contextlib.nullcontext()
    group = (branch + BRANCHES * layer) % place.groups
    return tf.cuda.stream_scope(tf.cuda.get_stream(group))


def branches(place: Place, x: Any, layers: list[list[Any]], scoped: bool) -> Any:
    """Branches of dense layers, and their sum, in an order that is always the same."""
    total = None
    for branch, weights in enumerate(layers):
        y = x
        for layer, w in enumerate(weights):
            with layer_scope(place, branch, layer) if scoped else contextlib.nullcontext():
                y = tf.tanh(tf.matmul(y, w))
        total = y if total is None else total + y
    return total


def branch_weights(place: Place, name: str) -> list[list[Any]]:
    """Weights of `branches`, as arrays."""
    draw = random_of(place, f"{name} weights")
    return [[matrix(draw, WIDTH, WIDTH) for _ in range(DEPTH)] for _ in range(BRANCHES)]


def session_config(**fields: Any) -> Any:
    """A configuration for a session on a GPU, an emulated one too."""
    return tf1.ConfigProto(allow_soft_placement=True, **fields)

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the kinds of work: where they run, and models whose results are known.

The reference results come from a separate process with one stream group, so that an error that all
groups share shows as a difference.
"""

import contextlib
import dataclasses
import random
from collections.abc import Callable, Sequence
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
ROWS = tf.TensorSpec([None, WIDTH], name="x")  # a batch

Results = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where work runs."""

    gpu: bool  # whether the GPU is a real one
    groups: int  # its stream groups
    node_level: bool  # whether nodes of a step have groups
    policy: str  # the policy that splits steps; empty if there is none
    seed: int  # seed of all models and inputs
    folder: str
    memory_mib: int = 0  # limit on the GPU memory of all groups together; 0 for no limit


# The kinds of work, by name: each class that has a name.
WORKS: "dict[str, type[Work]]" = {}


class Work:
    """A kind of work: a model, and a step that compares its results with the `reference`."""

    name = ""

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            WORKS[cls.name] = cls

    def __init__(self, place: Place, reference: Results) -> None:
        self.place = place
        self.reference = reference
        self.make()

    def make(self) -> None:
        """Makes the model."""

    def results(self) -> Results:
        """The results to compare, by name; computed before there is load."""
        return {}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Does one step of a worker of this kind and verifies it."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes everything that the work has opened."""


def random_of(place: Place, name: str) -> np.random.Generator:
    """Draws for a kind of work; the same seed gives the same in each process."""
    return np.random.default_rng([place.seed, *name.encode()])


def matrix(draw: np.random.Generator, *shape: int) -> np.ndarray:
    """A layer's matrix, which keeps the magnitude of its inputs."""
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


def branch_variables(place: Place, name: str) -> list[list[Any]]:
    """Weights of `branches`, as variables on the current device."""
    return [[tf.Variable(w) for w in row] for row in branch_weights(place, name)]


def on_gpu(*specs: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a `tf.function` of such arguments, which runs on the GPU."""

    def decorate(function: Callable[..., Any]) -> Any:
        @tf.function(input_signature=specs, autograph=False)
        def placed(*arguments: Any) -> Any:
            with tf.device(GPU):
                return function(*arguments)

        return placed

    return decorate


def placed_model(method: str) -> Any:
    """A class of Keras models whose method of a step runs on the GPU, an emulated one too."""

    def step(self: Any, data: Any) -> Any:
        with tf.device(GPU):
            return getattr(tf.keras.Model, method)(self, data)

    return type("Placed", (tf.keras.Model,), {method: step})


def assign_all(variables: Sequence[Any], values: Sequence[Any]) -> None:
    """Assigns a value to each variable, op by op."""
    with tf.device(GPU):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


def new_session(graph: Any) -> Any:
    """A session on a GPU, an emulated one too."""
    return tf1.Session(graph=graph, config=tf1.ConfigProto(allow_soft_placement=True))

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
"""Models of many branches, and the time that a step of one takes.

    inception  blocks of four branches of convolutions, concatenated
    nasnet     cells of five pairs of small branches; each cell has the outputs of the
               two cells before as its inputs, and adds the two branches of a pair
    dlrm       many embedding lookups beside dense layers, and the products of all pairs

Weights and inputs are drawn from a seed. A model can have hand marks: each branch is
then in the scope of a stream group, one after another. Training is plain gradient
descent on one batch. `benchmark_policies.py` runs them.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from branchy_layers import Convolution, Dense, Separable, Weights, average_pool, in_turn, max_pool
from process_groups import GPU, check_environment, on_group, sanitizer_reports

CLASSES = 10
# Numbers of a row for the dense layers of dlrm.
DENSE_FEATURES = 13
# Inference takes turns with so many batches: a result left over from the step before
# would be a wrong one.
INFERENCE_BATCHES = 8
# Of gradient descent.
RATE = 0.01


class ImageModel(tf.Module):
    """A model that classifies images."""

    @staticmethod
    def draw(options: argparse.Namespace, random: np.random.Generator, batch: int) -> Any:
        """Draws a batch.

        Args:
            options: with `image`.
            random: draws it.
            batch: how many.

        Returns:
            The inputs, float32 [batch, image, image, 3] alone, and the classes, int64 [batch].
        """
        images = random.normal(0, 1, [batch, options.image, options.image, 3])
        return (images.astype(np.float32),), random.integers(0, CLASSES, [batch])

    @staticmethod
    def loss(outputs: Any, labels: Any) -> Any:
        """Mean cross entropy of outputs [batch, classes] and classes [batch]."""
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))


class InceptionBlock(tf.Module):
    """Four branches of convolutions, each with `channels` at its end, concatenated.

    Args:
        weights: draws its weights.
        inputs: channels.
        channels: of each branch.
        first_group: stream group of the first branch; the others follow.
        marks: whether the branches are in scopes of stream groups.
    """

    def __init__(
        self, weights: Weights, inputs: int, channels: int, first_group: int, marks: bool
    ) -> None:
        super().__init__()

        def convolutions(*sizes: int) -> list[Any]:
            wide = [inputs, channels, channels]
            return [Convolution(weights, size, wide[i], channels) for i, size in enumerate(sizes)]

        self._branches = [
            convolutions(1),
            convolutions(1, 3),
            convolutions(1, 3, 3),
            [average_pool, *convolutions(1)],
        ]
        self._first_group = first_group
        self._marks = marks

    def __call__(self, x: Any) -> Any:
        """Returns the output for images [batch, height, width, inputs]."""
        outputs = []
        for group, branch in enumerate(self._branches, self._first_group):
            with on_group(group, self._marks):
                outputs.append(in_turn(branch, x))
        return tf.concat(outputs, 3)


class Inception(ImageModel):
    """A stem, blocks of four branches, the mean over the image, a dense layer.

    Args:
        options: `channels` of each branch, `blocks` and `seed`.
        marks: whether the branches are in scopes of stream groups.
    """

    def __init__(self, options: argparse.Namespace, marks: bool) -> None:
        super().__init__()
        weights = Weights(options.seed)
        channels = options.channels
        self._stem = Convolution(weights, 3, 3, channels, stride=2)
        wide = [channels, *[4 * channels] * options.blocks]
        self._blocks = [
            InceptionBlock(weights, wide[block], channels, 4 * block, marks)
            for block in range(options.blocks)
        ]
        self._dense = Dense(weights, wide[-1], CLASSES, tf.identity)

    def __call__(self, images: Any) -> Any:
        """Returns the outputs for images [batch, image, image, 3]."""
        x = in_turn([self._stem, *self._blocks], images)
        return self._dense(tf.reduce_mean(x, [1, 2]))


class NasnetCell(tf.Module):
    """Pairs of branches on the outputs of two cells before; the sums are concatenated.

    Args:
        weights: draws its weights.
        inputs: channels of the outputs of the last cell but one, and of the last.
        channels: of each branch.
        first_group: stream group of the first pair; the others follow.
        marks: whether the pairs are in scopes of stream groups.
    """

    PAIRS = 5

    def __init__(
        self, weights: Weights, inputs: Sequence[int], channels: int, first_group: int, marks: bool
    ) -> None:
        super().__init__()
        # The sums of a cell have twice the variance of its inputs: no gain makes up for it.
        self._squeeze = [Convolution(weights, 1, wide, channels, gain=1.0) for wide in inputs]
        before, last = 0, 1

        def separable(size: int) -> Any:
            return Separable(weights, size, channels)

        # Each branch: what it does, and with which of the two inputs.
        self._pairs = [
            ((separable(3), last), (tf.identity, last)),
            ((separable(3), before), (separable(5), last)),
            ((average_pool, last), (tf.identity, before)),
            ((average_pool, before), (max_pool, before)),
            ((separable(5), before), (separable(3), before)),
        ]
        self._first_group = first_group
        self._marks = marks

    def __call__(self, before: Any, last: Any) -> Any:
        """Returns the output for the outputs of the last cell but one, and of the last."""
        inputs = [squeeze(x) for squeeze, x in zip(self._squeeze, (before, last), strict=True)]
        sums = []
        for group, ((left, x), (right, y)) in enumerate(self._pairs, self._first_group):
            with on_group(group, self._marks):
                sums.append(left(inputs[x]) + right(inputs[y]))
        return tf.concat(sums, 3)


class Nasnet(ImageModel):
    """A stem, cells of pairs of branches, the mean over the image, a dense layer.

    Args:
        options: `channels` of each branch, `cells` and `seed`.
        marks: whether the pairs are in scopes of stream groups.
    """

    def __init__(self, options: argparse.Namespace, marks: bool) -> None:
        super().__init__()
        weights = Weights(options.seed)
        channels, pairs = options.channels, NasnetCell.PAIRS
        self._stem = Convolution(weights, 3, 3, channels, stride=2)
        wide = [channels, channels, *[pairs * channels] * options.cells]
        self._cells = [
            NasnetCell(weights, wide[cell : cell + 2], channels, pairs * cell, marks)
            for cell in range(options.cells)
        ]
        self._dense = Dense(weights, wide[-1], CLASSES, tf.identity)

    def __call__(self, images: Any) -> Any:
        """Returns the outputs for images [batch, image, image, 3]."""
        before = last = self._stem(images)
        for cell in self._cells:
            before, last = last, cell(before, last)
        return self._dense(tf.reduce_mean(tf.nn.relu(last), [1, 2]))


class Dlrm(tf.Module):
    """A recommender: lookups, each with its own dense layers, and the products of all pairs.

    Args:
        options: `lookups`, `rows` and `dim` of each table, `lookup_layers` and `seed`.
        marks: whether the lookups are in scopes of stream groups.
    """

    def __init__(self, options: argparse.Namespace, marks: bool) -> None:
        super().__init__()
        weights = Weights(options.seed)
        dim, lookups = options.dim, range(options.lookups)
        self._tables = [weights.kernel(options.rows, dim, inputs=dim, gain=1.0) for _ in lookups]
        self._layers = [
            [Dense(weights, dim, dim) for _ in range(options.lookup_layers)] for _ in lookups
        ]
        self._bottom = [Dense(weights, DENSE_FEATURES, 4 * dim), Dense(weights, 4 * dim, dim)]
        self._pairs = (options.lookups + 1) ** 2
        self._top = [
            Dense(weights, dim + self._pairs, 4 * dim),
            Dense(weights, 4 * dim, 2 * dim),
            Dense(weights, 2 * dim, 1, tf.identity),
        ]
        self._marks = marks

    def __call__(self, dense: Any, ids: Any) -> Any:
        """Returns the outputs for rows [batch, features] and ids [batch, lookups]."""
        vectors = [in_turn(self._bottom, dense)]
        lookups = zip(self._tables, self._layers, tf.unstack(ids, axis=1), strict=True)
        for group, (table, layers, column) in enumerate(lookups):
            with on_group(group, self._marks):
                vectors.append(in_turn(layers, tf.nn.embedding_lookup(table, column)))
        rows = tf.stack(vectors, 1)
        # Each pair twice, which takes fewer ops than to choose half of them.
        products = tf.reshape(tf.matmul(rows, rows, transpose_b=True), [-1, self._pairs])
        return tf.squeeze(in_turn(self._top, tf.concat([vectors[0], products], 1)), 1)

    @staticmethod
    def draw(options: argparse.Namespace, random: np.random.Generator, batch: int) -> Any:
        """Draws a batch of rows and ids, int64 [batch, lookups], and labels, float32 [batch].

        No id is twice in a column: sums of gradients would depend on their order.
        """
        dense = random.normal(0, 1, [batch, DENSE_FEATURES]).astype(np.float32)
        columns = [random.permutation(options.rows)[:batch] for _ in range(options.lookups)]
        labels = random.integers(0, 2, [batch]).astype(np.float32)
        return (dense, np.stack(columns, 1)), labels

    @staticmethod
    def loss(outputs: Any, labels: Any) -> Any:
        """Mean cross entropy of outputs [batch] and labels [batch] of 0 and 1."""
        return tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=outputs)
        )


MODELS: dict[str, Any] = {"inception": Inception, "nasnet": Nasnet, "dlrm": Dlrm}


def make(
    model_name: str,
    mode: str,
    options: argparse.Namespace,
    marks: bool,
    decorate: Callable[[Any], Any] = lambda step: step,
) -> tuple[Callable[[], np.ndarray], tf.Module]:
    """Makes a model and its step.

    Args:
        model_name: of `MODELS`.
        mode: `training`, a step of gradient descent, or `inference`.
        options: sizes and `seed`.
        marks: whether the branches are in scopes of stream groups.
        decorate: what to make of the step before it is a `tf.function`.

    Returns:
        The step, which returns the loss or the outputs when they are on the host, and
        the model.
    """
    training = mode == "training"
    random = np.random.default_rng([options.seed, 1])  # not the numbers of the weights
    with tf.device(GPU):
        model = MODELS[model_name](options, marks)
        batches = [
            tf.nest.map_structure(
                tf.constant,
                model.draw(options, random, options.batch if training else options.inference_batch),
            )
            for _ in range(1 if training else INFERENCE_BATCHES)
        ]
    variables = model.trainable_variables

    def train(inputs: Any, labels: Any) -> Any:
        with tf.device(GPU):
            with tf.GradientTape() as tape:
                loss = model.loss(model(*inputs), labels)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                if isinstance(gradient, tf.IndexedSlices):
                    change = RATE * gradient.values
                    variable.scatter_sub(tf.IndexedSlices(change, gradient.indices))
                else:
                    variable.assign_sub(RATE * gradient)
            return loss

    def infer(inputs: Any, labels: Any) -> Any:
        del labels
        with tf.device(GPU):
            return model(*inputs)

    function = tf.function(decorate(train if training else infer))
    turns = itertools.cycle(batches)
    return lambda: function(*next(turns)).numpy(), model


def work_between(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, set[int]]:
    """What the stream groups did in some time.

    Args:
        before: `tf.cuda.stream_stats()` then.
        after: the same now.

    Returns:
        How often a group has waited for another one, and the groups that had work.
    """
    worked = ("steps_started", "waits", "events", "peak_bytes_in_use")
    pairs = list(zip(before, after, strict=True))
    waits = sum(now.waits - then.waits for then, now in pairs)
    groups = {
        now.group
        for then, now in pairs
        if any(getattr(now, name) != getattr(then, name) for name in worked)
    }
    return waits, groups


def measure(model_name: str, mode: str, options: argparse.Namespace, marks: bool) -> dict[str, Any]:
    """Times the steps of a model in this process.

    Args:
        model_name: of `MODELS`.
        mode: `training` or `inference`.
        options: as of `make`, with `warmup` and `steps`.
        marks: whether the branches are in scopes of stream groups.

    Returns:
        Figures that JSON can hold: `step_ms`, the median; `lowest_ms` and `highest_ms`;
        `waits`, a step, of all groups; `groups` that had work; `sha256` of all results,
        those of the warm-up included, and of the weights at the end; `first` and `last`
        result, the mean of it if it is an array; `sanitizer_reports`, none if it is off.

    Raises:
        RuntimeError: there is no multi-stream TensorFlow, or no GPU.
    """
    check_environment()
    tf.config.experimental.enable_op_determinism()
    step, model = make(model_name, mode, options, marks)
    digest = hashlib.sha256()
    means, times = [], []
    before: list[Any] = []
    for number in range(options.warmup + options.steps):
        if number == options.warmup:
            before = tf.cuda.stream_stats()
        began = time.perf_counter()
        result = step()
        times.append(time.perf_counter() - began)
        digest.update(result.tobytes())
        means.append(float(np.mean(result)))
    after = tf.cuda.stream_stats()
    for variable in model.trainable_variables:
        digest.update(variable.numpy().tobytes())
    measured = [1000.0 * seconds for seconds in times[options.warmup :]]
    waits, groups = work_between(before, after)
    return {
        "step_ms": statistics.median(measured),
        "lowest_ms": min(measured),
        "highest_ms": max(measured),
        "waits": waits / options.steps,
        "groups": sorted(groups),
        "sha256": digest.hexdigest(),
        "first": means[0],
        "last": means[-1],
        "sanitizer_reports": sanitizer_reports(),
    }

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scopes around and inside `strategy.run`, whose replica functions run in threads of their own.

There are two emulated GPUs. What is built without scopes runs on group 0 of each, and is the
reference.
"""

import contextlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.gpus import gpus, numbers, run
from multistream.testing.kit import in_process, on, same


def mirrored() -> Any:
    return tf.distribute.MirroredStrategy(
        ["/gpu:0", "/gpu:1"], tf.distribute.ReductionToOneDevice()
    )


class Model:
    """Two weights, and a replica function that trains them.

    Args:
      inside: the group of a branch; None for no scope.
      as_function: whether the replica function calls a `tf.function` for loss and gradients.
    """

    def __init__(self, inside: int | None, as_function: bool = False) -> None:
        self.strategy = mirrored()
        self._inside = inside
        with self.strategy.scope():
            self._weights = [tf.Variable(numbers(k, 6, 6)) for k in range(2)]
        self._made = tf.function(self._gradients) if as_function else self._gradients

    def _gradients(self, x: Any) -> tuple[Any, list[Any]]:
        v, w = self._weights
        with tf.GradientTape() as tape:
            a = tf.tanh(tf.matmul(x, v))
            with on(self._inside, self._inside is not None):
                b = tf.sin(tf.matmul(x, w))
            loss = tf.reduce_mean(tf.math.squared_difference(a * b, x))
        return loss, tape.gradient(loss, [v, w])

    def replica(self, x: Any) -> Any:
        """Returns the replica's own loss; the weights change by the gradients of all replicas."""
        context = tf.distribute.get_replica_context()
        x *= 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
        loss, gradients = self._made(x)
        gradients = context.all_reduce("SUM", gradients)
        for variable, gradient in zip(self._weights, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss

    def results_and_groups(
        self, scope: Any, step: bool, replica: bool
    ) -> tuple[list[Any], set[int]]:
        """Trains in the scope, by a step and replica functions that are tf.functions, or not.

        Returns:
          Losses of some steps, of each replica, and the weights after them; and the groups, on both
          GPUs, that waited meanwhile.
        """
        per_replica = tf.function(self.replica) if replica else self.replica

        def run_step(x: Any) -> Any:
            with scope if step else contextlib.nullcontext():
                return self.strategy.run(per_replica, args=(x,))

        before = waits()
        x = tf.constant(numbers(3, 5, 6))
        made = tf.function(run_step) if step else run_step
        losses = [self.strategy.experimental_local_results(made(x)) for _ in range(4)]
        places = {place for place, count in waits().items() if count > before[place]}
        groups = {group for _, group in places}
        assert places == {(i, group) for i in gpus() for group in groups}
        return [x.numpy() for x in (*sum(losses, ()), *self._weights)], groups


def waits() -> dict[tuple[int, int], int]:
    return {(s.gpu, s.group): s.waits for s in tf.cuda.stream_stats()}


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="3")
def test_scopes_around_and_inside_strategy_run_train_what_one_stream_trains() -> None:
    no_scope = contextlib.nullcontext()
    expected, groups = Model(None).results_and_groups(no_scope, True, False)
    assert groups == set()
    assert len({float(loss) for loss in expected[:8]}) == 8
    policy = tf.cuda.auto_stream("full_graph", always=True)
    # On a machine with one GPU, the GPU runs both replicas, and so more work side by side.
    by_policy = {0, 1} if len(gpus()) > 1 else {0, 1, 2}
    for replica in (False, True):
        for scope, inside, wanted in (
            (no_scope, None, set()),
            (on(2), None, {0, 2}),
            (no_scope, 1, {0, 1}),
            (on(2), 1, {0, 1, 2}),
            (policy, None, by_policy),
        ):
            results, groups = Model(inside).results_and_groups(scope, True, replica)
            assert same(results, expected), (replica, scope, inside)
            assert groups == wanted, (replica, scope, inside, groups)
    # In eager code only functions have scopes: those that a replica calls, or the replica itself.
    expected, groups = Model(None, as_function=True).results_and_groups(no_scope, False, False)
    assert groups == set()
    for replica in (False, True):
        model = Model(1, as_function=not replica)
        results, groups = model.results_and_groups(no_scope, False, replica)
        assert same(results, expected), replica
        assert groups == {0, 1}, (replica, groups)
    with pytest.raises(RuntimeError, match="was entered in eager code"):
        Model(1).results_and_groups(no_scope, False, False)


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="3")
def test_each_thread_of_replicas_builds_in_the_scopes_of_the_program() -> None:
    """Each op is in the scope around its line, whichever thread builds the op."""
    strategy = mirrored()

    def merged(_strategy: Any, x: Any) -> Any:
        with on(0):
            first = tf.cosh(strategy.experimental_local_results(x)[0])
        return tf.sinh(first)

    def replica(x: Any) -> Any:
        x = tf.tanh(x)
        context = tf.distribute.get_replica_context()
        with on(1):
            x = context.all_reduce("SUM", tf.sin(x))
            merge = context.merge_call(merged, args=(x,))
        return tf.exp(x) + merge

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        with on(2):
            results = strategy.run(replica, args=(x,))
            x = tf.square(x)
        return tf.negative(strategy.experimental_local_results(results)[0]) + x

    x = numbers(3, 4)
    total = 2.0 * np.sin(np.tanh(x))
    right = np.square(x) - np.exp(total) - np.sinh(np.cosh(total))
    assert np.allclose(step(tf.constant(x)), right, rtol=1e-4, atol=1e-4)
    ops = ("Tanh", "Sin", "AddN", "Cosh", "Sinh", "Exp", "Square", "Neg")
    found = {(row.op, row.group) for row in tf.cuda.stream_groups_of(step) if row.op in ops}
    assert found == set(zip(ops, (2, 1, 1, 0, 1, 2, 2, None), strict=True))

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replicas and collective ops with branches on groups give the results of one stream per GPU.

A test names a job, which runs in a process of its own. What a job builds without scopes runs on
group 0 of each GPU and is the reference for the same thing with scopes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from multistream.testing.gpus import gpu, gpus, leaders, numbers, run, used
from multistream.testing.kit import on, same

tf1 = tf.compat.v1


def mirrored_training(strategy: Any, scoped: bool) -> list[Any]:
    """Losses and weights of replicas whose branches are in scopes."""
    with strategy.scope():
        v, w = (tf.Variable(numbers(k, 6, 6)) for k in range(2))
        optimizer = keras.optimizers.SGD(0.1, momentum=0.5)
        optimizer.jit_compile = False  # Keras 2 has XLA compile it, and an emulated GPU is a CPU
        optimizer.build([v, w])

    def replica(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        x *= 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
        with tf.GradientTape() as tape:
            with on(1, scoped):
                a = tf.tanh(tf.matmul(x, v))
            with on(2, scoped):
                b = tf.sin(tf.matmul(x, w))
            with on(None, scoped):
                loss = tf.reduce_mean(tf.math.squared_difference(a * b, x))
        optimizer.apply_gradients(
            [(g, u) for g, u in zip(tape.gradient(loss, [v, w]), [v, w], strict=True)]
        )
        with on(2, scoped):
            return loss + tf.reduce_sum(context.all_reduce("SUM", a))

    @tf.function
    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x,)), axis=None)

    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(numbers(2, 40, 6)).batch(8),
        tf.distribute.InputOptions(experimental_fetch_to_device=False),
    )
    return [*[step(x).numpy() for x in data], v.numpy(), w.numpy()]


def raw_collective(scoped: bool) -> list[Any]:
    """A collective op on each GPU, in scopes of different groups."""

    @tf.function
    def function(x: Any) -> Any:
        found = []
        for i in gpus():
            with tf.device(gpu(i)):
                with on(i + 1, scoped):
                    y = tf.tanh(x * (i + 1.0))
                    y = tf.raw_ops.CollectiveReduce(
                        input=y,
                        group_size=2,
                        group_key=50,
                        instance_key=50 + scoped,
                        merge_op="Add",
                        final_op="Id",
                        subdiv_offsets=[0],
                        communication_hint="ring",
                        timeout_seconds=60,
                    )
                with on(2 - i, scoped):
                    found.append(tf.sin(y))
        return found

    x = numbers(4, 100)
    results = [y.numpy() for _ in range(5) for y in function(tf.constant(x))]
    assert np.allclose(results, np.sin(np.tanh(x) + np.tanh(2.0 * x)), atol=1e-5)
    return results


def replicas() -> None:
    """Runs each strategy without scopes, then with scopes."""
    names = ["/gpu:0", "/gpu:1"]
    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategies = [
        tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice()),
        tf.distribute.MirroredStrategy(names, tf.distribute.HierarchicalCopyAllReduce()),
        # By default the strategy takes the CPU, since it does not count emulated GPUs.
        tf.distribute.MultiWorkerMirroredStrategy._from_local_devices(names, ring),
    ]
    models: list[Callable[[bool], list[Any]]] = [
        *[partial(mirrored_training, strategy) for strategy in strategies],
        raw_collective,
    ]
    expected = [model(False) for model in models]
    assert used() == leaders(), used()
    for i, model in enumerate(models):
        assert same(model(True), expected[i]), i
        assert used() == {(i, j) for i in gpus() for j in range(3)}, used()
    first, last = expected[0][0], expected[0][4]
    assert np.isfinite(first) and first != last


def test_replicas() -> None:
    """Strategies and collective ops with scopes in replicas train the same weights."""
    run(replicas, TF_GPU_STREAM_GROUP_COUNT="3")

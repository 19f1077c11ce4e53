# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies of several workers run on the workers' groups, and give the results of one stream.

The coordinator of parameter servers is eager code that calls functions of other processes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing import cluster
from multistream.testing.kit import groups_used, on, same


def work(spec: cluster.Spec, job: str, task: int, folder: str) -> None:
    """A worker whose groups the client uses."""
    cluster.serve_until_the_client_ends(spec, job, task, folder)
    cluster.assert_groups_were_used()


def branches(x: Any, v: Any, w: Any, scoped: bool = True) -> Any:
    with on(1, scoped):
        a = tf.tanh(tf.matmul(x, v))
    with on(2, scoped):
        b = tf.sin(tf.matmul(x, w))
    return a * b


def loss_and_gradients(x: Any, v: Any, w: Any, scoped: bool = True) -> tuple[Any, list[Any]]:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.math.squared_difference(branches(x, v, w, scoped), 1.0))
    return loss, tape.gradient(loss, [v, w])


def coordinate(spec: cluster.Spec) -> None:
    """Trains with one call at a time, and predicts with many at once."""
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(spec), task_type="chief", task_id=0, rpc_layer="grpc"
        )
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        v, w = (tf.Variable(cluster.numbers(k, 16, 16)) for k in range(2))

    def train_step(x: Any) -> Any:
        loss, gradients = loss_and_gradients(x, v, w)
        for variable, gradient in zip((v, w), gradients, strict=True):
            variable.assign_sub(0.5 * gradient)
        return loss

    @tf.function
    def train(x: Any) -> Any:
        return strategy.run(train_step, args=(x,))

    @tf.function
    def rows(x: Any) -> Any:
        return strategy.run(lambda x: tf.reduce_sum(branches(x, v, w), axis=1), args=(x,))

    losses = []
    for k in range(10):
        loss = coordinator.schedule(train, args=(tf.constant(cluster.numbers(10 + k % 3, 4, 16)),))
        coordinator.join()
        losses.append(loss.fetch())
    assert losses[9] < losses[0]  # losses of the same input
    inputs = [tf.constant(cluster.numbers(20 + k, 4, 16)) for k in range(4)]
    asked = [coordinator.schedule(rows, args=(inputs[k % 4],)) for k in range(80)]
    coordinator.join()
    found = [result.fetch() for result in asked]
    assert all(same([a], [b]) for a, b in zip(found[4:], found, strict=False))
    results = [*losses, v.numpy(), w.numpy(), *found[:4]]
    print("result", *(np.asarray(r).tobytes().hex() for r in results))


def mirror(spec: cluster.Spec, task: int, scoped: bool) -> None:
    """A worker, with collectives beside its groups."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(spec),
        task_type="worker",
        task_id=task,
        rpc_layer="grpc",
        num_accelerators={"GPU": 1},  # TF_CONFIG's resolver counts no emulated GPU
    )
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver, options)
    with strategy.scope():
        v, w = (tf.Variable(cluster.numbers(k, 16, 16)) for k in range(2))

    def replica(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        loss, gradients = loss_and_gradients(x, v, w, scoped)
        # Each branch's gradient is reduced separately, and the groups may do so in any order.
        for number, (variable, gradient) in enumerate(zip((v, w), gradients, strict=True), 1):
            with on(number, scoped):
                variable.assign_sub(0.1 * context.all_reduce("SUM", gradient))
        return loss

    @tf.function
    def step(x: Any) -> Any:
        with on(3, scoped):
            results = strategy.run(replica, args=(x,))
        return strategy.reduce("SUM", results, axis=None)

    losses = [step(tf.constant(cluster.numbers(10 + task, 4, 16))).numpy() for _ in range(30)]
    assert losses[-1] < losses[0]
    results = (*losses, v.numpy(), w.numpy())
    print("result", *(np.asarray(r).tobytes().hex() for r in results))
    if scoped:
        assert {1, 2, 3} <= groups_used()


def results_of(client: Callable[..., None], folder: Path, level: dict[str, str]) -> str:
    """What a cluster's client prints, or each of its workers, if the strategy has no client."""
    folder.mkdir()
    if client is mirror:
        spec = cluster.make_spec(worker=3)
        tasks: list[cluster.Task] = [
            (mirror, (spec, i, level == cluster.NODE_LEVEL), level) for i in (2, 1, 0)
        ]
    else:
        spec = cluster.make_spec(chief=1, worker=2, ps=1)
        tasks = [(cluster.serve_until_the_client_ends, (spec, "ps", 0, str(folder)), {})]
        tasks += [(work, (spec, "worker", i, str(folder)), level) for i in range(2)]
        tasks += [(coordinate, (spec,), {})]
    printed = cluster.run_all(tasks, folder)[0 if client is mirror else -1 :]
    (result,) = {cluster.line_of(text, "result") for text in printed}
    return str(result)


@pytest.mark.parametrize(
    ("client", "levels"),
    [(coordinate, (cluster.GRAPH_LEVEL, cluster.NODE_LEVEL)), (mirror, (cluster.NODE_LEVEL,))],
)
def test_results_are_those_of_one_stream(
    client: Callable[..., None], levels: Sequence[dict[str, str]], tmp_path: Path
) -> None:
    expected = results_of(client, tmp_path / "one", cluster.ONE_STREAM)
    for i, level in enumerate(levels):
        assert results_of(client, tmp_path / str(i), level) == expected

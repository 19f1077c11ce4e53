# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Strategies of several workers, and functions that eager code calls in another process.

They run on the workers' groups, and give the results of one stream.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.cluster import (
    GRAPH_LEVEL,
    NODE_LEVEL,
    ONE_STREAM,
    Spec,
    Task,
    assert_groups_were_used,
    line_of,
    make_spec,
    numbers,
    run_all,
    serve_until_the_client_ends,
)
from multistream.testing.kit import groups_used, on, run_threads, same


def work(spec: Spec, job: str, task: int, folder: str) -> None:
    """A worker whose groups the client uses."""
    serve_until_the_client_ends(spec, job, task, folder)
    assert_groups_were_used()


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


def train_step(x: Any, v: Any, w: Any) -> Any:
    loss, gradients = loss_and_gradients(x, v, w)
    for variable, gradient in zip((v, w), gradients, strict=True):
        variable.assign_sub(0.5 * gradient)
    return loss


# Eager code of one process, functions on the GPU of another.


def call_functions(spec: Spec, _folder: str) -> None:
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec(spec), job_name="client", task_index=0
    )
    gpu = "/job:worker/replica:0/task:0/device:GPU:0"
    with tf.device(gpu):
        v, w = (tf.Variable(numbers(k, 16, 16)) for k in range(2))

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def rows(x: Any) -> Any:
        return tf.reduce_sum(branches(x, v, w), axis=1)

    @tf.function
    def train(x: Any) -> Any:
        return train_step(x, v, w)

    with tf.device(gpu):
        inputs = [tf.constant(numbers(10 + k, 4 + k, 16)) for k in range(6)]
        expected = [rows(x).numpy() for x in inputs]
        for x, found in zip(inputs, expected, strict=True):
            a, b = x.numpy() @ numbers(0, 16, 16), x.numpy() @ numbers(1, 16, 16)
            np.testing.assert_allclose(found, (np.tanh(a) * np.sin(b)).sum(1), rtol=1e-2, atol=1e-3)

        def client(k: int) -> None:
            with tf.device(gpu):
                for i in range(30):
                    j = (k + i) % len(inputs)
                    assert same([rows(inputs[j]).numpy()], [expected[j]])

        run_threads([partial(client, k) for k in range(4)])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            rows(tf.ones([3, 5])).numpy()
        losses = [train(inputs[0]).numpy() for _ in range(10)]
        assert losses[-1] < losses[0]
        print("result", *(r.tobytes().hex() for r in (*losses, v.numpy(), w.numpy())))


def results_of_functions(folder: Path, level: dict[str, str]) -> str:
    folder.mkdir()
    spec = make_spec(worker=1, client=1)
    worker: Task = (work, (spec, "worker", 0, str(folder)), level)
    client: Task = (call_functions, (spec, str(folder)), {})
    line: str = line_of(run_all([worker, client], folder)[-1], "result")
    return line


def test_functions_that_another_process_calls_run_on_the_workers_groups(tmp_path: Path) -> None:
    expected = results_of_functions(tmp_path / "one", ONE_STREAM)
    assert results_of_functions(tmp_path / "graph", GRAPH_LEVEL) == expected
    assert results_of_functions(tmp_path / "node", NODE_LEVEL) == expected


# ParameterServerStrategy.


def coordinate(spec: Spec, _folder: str) -> None:
    """Trains with one call at a time, and predicts with many at once."""
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(spec), task_type="chief", task_id=0, rpc_layer="grpc"
        )
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        v, w = (tf.Variable(numbers(k, 16, 16)) for k in range(2))

    @tf.function
    def train(x: Any) -> Any:
        return strategy.run(lambda x: train_step(x, v, w), args=(x,))

    @tf.function
    def rows(x: Any) -> Any:
        return strategy.run(lambda x: tf.reduce_sum(branches(x, v, w), axis=1), args=(x,))

    losses = []
    for k in range(10):
        loss = coordinator.schedule(train, args=(tf.constant(numbers(10 + k % 3, 4, 16)),))
        coordinator.join()
        losses.append(loss.fetch())
    assert losses[9] < losses[0]  # losses of the same input
    inputs = [tf.constant(numbers(20 + k, 4, 16)) for k in range(4)]
    asked = [coordinator.schedule(rows, args=(inputs[k % 4],)) for k in range(80)]
    coordinator.join()
    found = [result.fetch() for result in asked]
    assert all(same([a], [b]) for a, b in zip(found[4:], found, strict=False))
    results = [*losses, v.numpy(), w.numpy(), *found[:4]]
    print("result", *(np.asarray(r).tobytes().hex() for r in results))


def results_of_coordinator(folder: Path, level: dict[str, str]) -> str:
    folder.mkdir()
    spec = make_spec(chief=1, worker=2, ps=1)
    tasks: list[Task] = [(serve_until_the_client_ends, (spec, "ps", 0, str(folder)), {})]
    tasks += [(work, (spec, "worker", i, str(folder)), level) for i in range(2)]
    line: str = line_of(
        run_all([*tasks, (coordinate, (spec, str(folder)), {})], folder)[-1], "result"
    )
    return line


def test_parameter_server_strategy_gives_what_one_stream_gives(tmp_path: Path) -> None:
    expected = results_of_coordinator(tmp_path / "one", ONE_STREAM)
    assert results_of_coordinator(tmp_path / "graph", GRAPH_LEVEL) == expected
    assert results_of_coordinator(tmp_path / "node", NODE_LEVEL) == expected


# MultiWorkerMirroredStrategy.


def mirror(spec: Spec, task: int, scoped: bool) -> None:
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
        v, w = (tf.Variable(numbers(k, 16, 16)) for k in range(2))

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

    losses = [step(tf.constant(numbers(10 + task, 4, 16))).numpy() for _ in range(30)]
    assert losses[-1] < losses[0]
    results = (*losses, v.numpy(), w.numpy())
    print("result", *(np.asarray(r).tobytes().hex() for r in results))
    if scoped:
        assert {1, 2, 3} <= groups_used()


def results_of_mirrors(folder: Path, workers: int, scoped: bool, level: dict[str, str]) -> str:
    folder.mkdir()
    spec = make_spec(worker=workers)
    tasks: list[Task] = [(mirror, (spec, i, scoped), level) for i in reversed(range(workers))]
    results = {line_of(printed, "result") for printed in run_all(tasks, folder)}
    assert len(results) == 1  # all workers have the same weights
    return str(results.pop())


@pytest.mark.parametrize("workers", [2, 4])
def test_mirrored_workers_train_what_one_stream_trains(workers: int, tmp_path: Path) -> None:
    expected = results_of_mirrors(tmp_path / "one", workers, False, ONE_STREAM)
    assert results_of_mirrors(tmp_path / "node", workers, True, NODE_LEVEL) == expected
    assert results_of_mirrors(tmp_path / "graph", workers, False, GRAPH_LEVEL) == expected

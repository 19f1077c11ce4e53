# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches on the stream groups of several GPUs give the results of one stream per GPU.

A test names a job, which runs in a process of its own. What a job builds without scopes runs on
group 0 of each GPU and is the reference for the same thing with scopes.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.gpus import either, gpu, leaders, numbers, places, run, run_all, used
from multistream.testing.kit import on, same

tf1 = tf.compat.v1


def function_of_towers(scoped: bool) -> list[Any]:
    """Losses and weights of towers on every group; each tower takes results of two others."""
    all_places = places()
    weights = []
    for k, (i, _) in enumerate(all_places):
        with tf.device(gpu(i)):
            weights.append(tf.Variable(numbers(k, 6, 6)))

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            before = [x] * len(all_places)
            layer: list[Any] = []
            for depth in range(2):
                layer = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        taken = before[k - 1] + 0.5 * before[(k + depth) % len(before)]
                        y = tf.tanh(tf.matmul(taken, weights[k]))
                        layer.append(either(y) if k % 3 == depth else y)
                before = layer

            def body(n: Any, *values: Any) -> Any:
                found = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        found.append(tf.tanh(values[k] * 0.75 + values[k - 1] * values[k - 2]))
                return (n + 1, *found)

            layer = tf.while_loop(lambda n, *_: n < 3, body, [tf.constant(0), *layer])[1:]
            with tf.device(gpu(1)), on(1, scoped):
                loss = tf.reduce_mean(tf.square(tf.add_n(list(layer)) - x))
        gradients = tape.gradient(loss, weights)
        for k, (w, g, (i, _)) in enumerate(zip(weights, gradients, all_places, strict=True)):
            # Updates, too, take tensors of other GPUs and groups.
            with tf.device(gpu(i)), on(1, scoped):
                w.assign_sub(0.1 * g + 0.001 * gradients[k - 1])
        return [loss, *layer]

    results = []
    for i in range(5):
        results += [x.numpy() for x in step(tf.constant(numbers(100 + i, 5, 6)))]
    return [*results, *[w.numpy() for w in weights]]


def session_of_towers(scoped: bool, old_control_flow: bool, reference: bool) -> list[Any]:
    """The towers in a session, with gradients through a loop."""
    all_places = places()
    if old_control_flow:
        tf1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = tf1.placeholder(tf.float32, [5, 6])
            count = tf1.placeholder(tf.int32, [])
            weights: list[Any] = []
            layer: list[Any] = []
            for k, (i, j) in enumerate(all_places):
                with tf.device(gpu(i)), on(j, scoped):
                    w = tf1.get_variable(
                        f"w{k}", initializer=numbers(k, 6, 6), use_resource=not reference
                    )
                    weights.append(w)
                    y = tf.tanh(tf.matmul(x if k < 3 else layer[k - 3], w))
                    layer.append(either(y) if k % 2 else y)

            def body(n: Any, *values: Any) -> Any:
                found = []
                for k, (i, j) in enumerate(all_places):
                    with tf.device(gpu(i)), on(j, scoped):
                        y = tf.tanh(tf.matmul(values[k - 1], weights[k]))
                        found.append(either(y) if k == 1 else y)
                return (n + 1, *found)

            with tf.device(gpu(0)):
                loop = tf.while_loop(lambda n, *_: n < count, body, [tf.constant(0), *layer])
            with tf.device(gpu(1)), on(1, scoped):
                loss = tf.reduce_mean(tf.square(tf.add_n(list(loop[1:])) - x))
            train = tf1.train.GradientDescentOptimizer(0.05).minimize(loss)
            initializer = tf1.global_variables_initializer()
    finally:
        tf1.enable_control_flow_v2()
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(initializer)
        results = []
        for i in range(5):
            feeds = {x: numbers(100 + i, 5, 6), count: i % 4}
            results += session.run([loss, *layer, *loop[1:], train], feeds)[:-1]
        return [*results, *session.run(weights)]


def towers(reference: bool) -> None:
    """Runs both kinds of towers without scopes, then with scopes."""
    models: dict[str, Callable[[bool], list[Any]]] = {
        "function": function_of_towers,
        "session": lambda scoped: session_of_towers(scoped, False, not reference),
        "session, v1 control flow": lambda scoped: session_of_towers(scoped, True, reference),
    }
    expected = {name: model(False) for name, model in models.items()}
    assert used() == leaders(), used()
    for name, model in models.items():
        assert same(model(True), expected[name]), name
        assert used() == set(places()), (name, used())
        assert all(np.isfinite(x).all() for x in expected[name]), name
    # The compared results depend on every weight.
    losses = expected["function"][:: 1 + len(places())][:5]
    assert len({float(loss) for loss in losses}) == 5


def test_towers_on_every_group_of_every_gpu() -> None:
    """Tensors that cross GPUs and groups, variables, gradients, branches and loops."""
    three = {"TF_MULTI_STREAM_EMULATED_GPUS": "3", "TF_GPU_STREAM_GROUP_COUNT": "4,2,3"}
    run_all(
        [
            partial(run, towers, True, TF_GPU_STREAM_GROUP_COUNT="3"),
            partial(run, towers, False, **three, TF_REDUCE_STREAM_WAIT="false"),
        ]
    )


def missing_groups() -> None:
    """Groups of the first GPU that the second lacks, in a function, a call, a session."""
    x = tf.constant([1.0, 2.0])

    @tf.function
    def inner(x: Any) -> Any:
        with tf.device("/GPU:1"):
            return tf.tanh(x, name="bad")

    @tf.function
    def direct(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            y = tf.sin(x)
        with tf.device("/GPU:1"), on(3):
            return tf.tanh(y, name="bad")

    @tf.function
    def called(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            return inner(tf.sin(x))

    @tf.function
    def other(x: Any) -> Any:
        for i, group in ((0, 3), (1, 1), (0, 1), (1, 0)):
            with tf.device(gpu(i)), on(group):
                x = tf.sin(x)
        return x

    wanted = r"Node \S*node \S*bad\S* \(Tanh\) is in stream group 3, and the GPU has 2 \("
    expected = np.sin(np.sin(np.sin(np.sin(x))))
    for function in (direct, called):
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                function(x)
            assert np.allclose(other(x), expected)

    with tf.Graph().as_default() as graph:
        p = tf1.placeholder(tf.float32, [2])
        with tf.device("/GPU:0"), on(3):
            good = tf.sin(p)
        with tf.device("/GPU:1"), on(3):
            bad = tf.tanh(good, name="bad")
    with tf1.Session(graph=graph) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                session.run(bad, {p: x.numpy()})
            assert np.allclose(session.run(good, {p: x.numpy()}), np.sin(x))
    assert used() <= {(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)}


def file_for_uneven_gpus() -> None:
    """The file names groups of the second GPU that the first lacks."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("first"):
            x = tf.tanh(x)
        with tf.device("/GPU:1"), tf.name_scope("second"):
            return tf.sin(x)

    @tf.function
    def bad(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("second"):
            return tf.tanh(x, name="bad")

    x = tf.constant(numbers(0, 64, 64))
    assert np.allclose(function(x), np.sin(np.tanh(x)), atol=1e-6)
    assert used() == {(0, 0), (0, 1), (1, 0), (1, 3)}, used()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"second/bad.* group 3, and the"):
        bad(x)


def test_gpus_with_different_numbers_of_groups(tmp_path: Path) -> None:
    """A group that only another GPU has is an error that names the node."""
    path = tmp_path / "streams.txt"
    path.write_text("1: first/.*\n3: second/.*\n", encoding="utf-8")
    run_all(
        [
            partial(run, missing_groups, TF_GPU_STREAM_GROUP_COUNT="4,2"),
            partial(
                run,
                file_for_uneven_gpus,
                TF_GPU_STREAM_GROUP_COUNT="2,4",
                TF_STREAM_FROM_FILE=str(path),
            ),
        ]
    )

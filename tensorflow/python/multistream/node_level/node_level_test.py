# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches on stream groups give the bits of one stream: in random programs, training and threads.

What is built without scopes runs on group 0, in the stock order, and is the reference.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from multistream.testing import kit
from multistream.testing.program_results import compare_programs

tf1 = tf.compat.v1


@pytest.mark.parametrize("propagate", ["true", "false"])
@pytest.mark.parametrize("reduce_waits", ["true", "false"])
def test_random_programs(reduce_waits: str, propagate: str) -> None:
    """Random programs give the same bits with scopes as without."""
    first = 10000 * (2 * (reduce_waits == "false") + (propagate == "true"))
    kit.run_job(
        compare_programs,
        first,
        first + 8 * kit.PROGRAMS,
        TF_REDUCE_STREAM_WAIT=reduce_waits,
        TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION=propagate,
    )


class Branches(keras.Model):
    """A Keras model with three branches."""

    def __init__(self, scoped: bool) -> None:
        super().__init__()
        self.scoped = scoped
        self.branches = [keras.layers.Dense(12, activation="tanh") for _ in range(3)]
        self.norms = [keras.layers.BatchNormalization() for _ in range(3)]
        self.out = keras.layers.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        found = []
        for i, (branch, norm) in enumerate(zip(self.branches, self.norms, strict=True)):
            with kit.on(i + 1, self.scoped):
                found.append(norm(branch(x), training=training))
        return self.out(tf.concat(found, 1))

    # Keras's own functions name no device, and an emulated GPU only gets ops that name it.
    def train_step(self, *arguments: Any) -> Any:
        with tf.device(kit.GPU):
            return super().train_step(*arguments)

    def predict_step(self, *arguments: Any) -> Any:
        with tf.device(kit.GPU):
            return super().predict_step(*arguments)


def keras_training(scoped: bool) -> list[Any]:
    """Losses, weights and predictions of a model trained with fit."""
    keras.utils.set_random_seed(3)
    x = np.random.RandomState(2).randn(160, 6).astype(np.float32)
    y = np.cos(x.sum(1, keepdims=True))
    with tf.device(kit.GPU):
        model = Branches(scoped)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.jit_compile = False  # Keras 2 has XLA compile it, and an emulated GPU is a CPU
    # The data set that fit makes has to be on the CPU.
    model.compile(optimizer, "mse", jit_compile=False)
    history = model.fit(x, y, batch_size=16, epochs=6, verbose=0, shuffle=False)
    predicted = model.predict(x, batch_size=160, verbose=0)
    return [*history.history["loss"], *model.get_weights(), predicted]


def scopes_use(groups: set[int], peak: int) -> None:
    """Checks which groups a function uses, and for how many matrices group 1 has memory."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(kit.GPU):
            with kit.on(1):
                y = tf.tanh(x)
            return tf.reduce_sum(tf.concat([y, y], 0))

    x = tf.constant(kit.matrix())
    assert kit.groups_used() <= {0}
    result = function(x).numpy()
    assert kit.groups_used() == {0} | groups, tf.cuda.stream_stats()
    matrices = tf.cuda.stream_stats()[1].peak_bytes_in_use / kit.matrix().nbytes
    assert int(matrices + 0.5) == peak, tf.cuda.stream_stats()
    assert result == pytest.approx(np.tanh(kit.matrix()).sum() * 2.0, rel=1e-3)


@pytest.mark.parametrize(
    ("groups", "peak", "environment"),
    [
        ({1}, 1, {}),
        ({1}, 3, {"TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION": "true"}),
        (set(), 0, {"TF_NODE_LEVEL_MULTISTREAM": "false"}),
    ],
)
def test_scopes_say_where_nodes_run(
    groups: set[int], peak: int, environment: dict[str, str]
) -> None:
    """Ops of a scope run on its group, and so do ops that follow them if the variable is set."""
    kit.run_job(scopes_use, groups, peak, **environment)


@kit.in_process()
def test_keras_training_gives_the_same_weights() -> None:
    """60 steps give the same losses and weights with scopes as without."""
    expected = keras_training(False)
    assert kit.groups_used() == {0}
    assert all(np.isfinite(x).all() for x in expected)
    assert kit.same(keras_training(True), expected)
    assert kit.groups_used() == set(range(kit.GROUPS))


@kit.in_process()
def test_sums_begin_where_they_do_without_scopes() -> None:
    """AddN adds into the first input whose memory it may reuse; this choice changes last bits."""
    x = tf.constant(np.random.RandomState(0).randn(48, 192).astype(np.float32))
    w = tf.constant(np.random.RandomState(1).randn(192, 192).astype(np.float32))

    def branches(x: Any, scoped: bool, order: Sequence[int]) -> list[Any]:
        parts = []
        for i, group in enumerate(order):
            with kit.on(group, scoped):
                parts.append(tf.tanh(tf.roll(x, i, 1) * (i + 1.0)))
        return parts

    def summed(scoped: bool, order: Sequence[int], last: int) -> Any:
        parts = branches(x, scoped, order)
        with kit.on(last, scoped):
            return tf.add_n(parts)

    def differentiated(scoped: bool, order: Sequence[int], last: int) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(w)
            with kit.on(last, scoped):
                shared = tf.tanh(tf.matmul(x, w))
            parts = branches(shared, scoped, order)
            loss = tf.reduce_sum(parts[0] + parts[1] + parts[2])
        return tape.gradient(loss, w)

    @tf.function(autograph=False)
    def on_gpu(build: Any, *arguments: Any) -> Any:
        with tf.device(kit.GPU):
            return build(*arguments)

    for make in (summed, differentiated):
        for order, last in (((0, 1, 2, 3), 0), ((1, 2, 3, 0), 0), ((1, 2, 3), 3), ((3, 2, 1), 0)):
            expected = on_gpu(make, False, order, last).numpy()
            for _ in range(5):
                found = on_gpu(make, True, order, last).numpy()
                assert kit.same(found, expected), (make.__name__, order, last)
    assert kit.groups_used() == set(range(kit.GROUPS))


def clients_of_functions() -> list[Callable[[], None]]:
    """Threads that compare the results of a function and a session with those of one thread."""
    with tf.device(kit.GPU):
        w = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]) * 0.1)

    def towers(x: Any) -> Any:
        with tf.device(kit.GPU):
            found = []
            for i in range(6):
                with kit.on(i % kit.GROUPS):
                    y = tf.tanh(tf.matmul(x, w) + float(i))
                    for _ in tf.range(2):
                        y = tf.nn.relu(tf.matmul(y, w)) - y
                    found.append(tf.reduce_sum(y, 1))
            with kit.on(1):
                y = tf.tanh(tf.matmul(x, w))
            with kit.on(2):
                z = tf.sin(tf.matmul(x, w))
            return tf.add_n(found), tf.gradients(tf.reduce_sum(y * z), x)[0]

    with tf.Graph().as_default() as graph, tf.device(kit.GPU):
        placeholder = tf1.placeholder(tf.float32, [None, 64])
        with kit.on(1):
            left = tf.tanh(placeholder)
        with kit.on(3):
            right = tf.nn.softmax(placeholder)
        fetch = tf.matmul(left, right, transpose_b=True)
    session = tf1.Session(graph=graph)
    function = tf.function(towers)
    calls: list[Callable[[Any], Any]] = [
        lambda x: [y.numpy() for y in function(tf.constant(x))],
        lambda x: [session.run(fetch, {placeholder: x})],
    ]
    inputs = kit.batches()
    expected = [[call(x) for x in inputs] for call in calls]

    def client(k: int) -> None:
        for i in range(60):
            which, j = (k + i) % len(calls), (k * 3 + i) % len(inputs)
            assert kit.same(calls[which](inputs[j]), expected[which][j]), (which, j)

    return [partial(client, k) for k in range(4)]


@kit.in_process()
def test_threads() -> None:
    """Each result is that of a call by itself, or of a variable before or after a change."""
    with tf.device(kit.GPU):
        v = tf.Variable(tf.zeros([1024]))
        table = tf.Variable(tf.zeros([64, 16]))

    @tf.function
    def read(x: Any) -> Any:
        with tf.device(kit.GPU):
            with kit.on(1):
                once = -v.read_value()
            with kit.on(2):
                rows = tf.gather(table, tf.range(0, 64, 3)) * x
            with kit.on(3):
                spread = tf.reduce_max(once) - tf.reduce_min(once)
            with kit.on(None):
                rows = tf.reduce_max(rows) - tf.reduce_min(rows)
            return tf.stack([spread, rows])

    @tf.function
    def change(x: Any) -> None:
        with tf.device(kit.GPU):
            with kit.on(2):
                v.assign_add(tf.fill([1024], x))
            with kit.on(3):
                table.assign(tf.fill([64, 16], x))

    def reader() -> None:
        for _ in range(100):
            assert not read(tf.constant(0.5)).numpy().any()

    def writer() -> None:
        for i in range(100):
            change(tf.constant(float(i)))
            if i % 5 == 0:
                v.assign(tf.fill([1024], 2.0))

    kit.run_threads([*clients_of_functions(), reader, reader, writer])
    assert len(set(v.numpy())) == 1 and (table.numpy() == 99.0).all()
    assert kit.groups_used() == set(range(kit.GROUPS))

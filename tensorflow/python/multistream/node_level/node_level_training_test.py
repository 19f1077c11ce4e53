# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models whose branches are on stream groups train to the weights of one stream.

A test names a function of this file, a job, which runs in a process of its own with the variables
that the test chooses. What a job builds without scopes all runs on group 0, the stock order: it is
the reference for the same thing with scopes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from multistream.testing.kit import GPU, GROUPS, ON_GPU, groups_used, on, run_job, same

tf1 = tf.compat.v1


STEPS = 200


def mlp_training(scoped: bool, adam: bool) -> list[Any]:
    """Losses and weights of four branches, trained by gradients and updates written out."""
    numbers = np.random.RandomState(1)
    with tf.device(GPU):
        first = [tf.Variable(numbers.randn(8, 16).astype(np.float32) * 0.3) for _ in range(4)]
        second = [tf.Variable(numbers.randn(16, 4).astype(np.float32) * 0.3) for _ in range(4)]
        last = tf.Variable(numbers.randn(16, 1).astype(np.float32) * 0.3)
        variables = [*first, *second, last]
        moments = [
            (tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables
        ]

    @tf.function
    def step(x: Any, y: Any, rate: Any) -> Any:
        with tf.device(GPU):
            with tf.GradientTape() as tape:
                branches = []
                for i in range(4):
                    with on(i, scoped):
                        h = tf.tanh(tf.matmul(x, first[i]))
                        branches.append(tf.nn.relu(tf.matmul(h, second[i])))
                out = tf.matmul(tf.concat(branches, 1), last)
                loss = tf.reduce_mean(tf.math.squared_difference(out, y))
            gradients = tape.gradient(loss, variables)
            for i, (v, g, (m, s)) in enumerate(zip(variables, gradients, moments, strict=True)):
                with on(i % 4, scoped):
                    if adam:
                        m.assign(0.9 * m + 0.1 * g)
                        s.assign(0.99 * s + 0.01 * g * g)
                        v.assign_sub(rate * m / (tf.sqrt(s) + 1e-5))
                    else:
                        v.assign_sub(rate * g)
            return loss

    losses = []
    for _ in range(STEPS):
        x = numbers.randn(8, 8).astype(np.float32)
        y = np.sin(x.sum(1, keepdims=True))
        losses.append(step(tf.constant(x), tf.constant(y), tf.constant(0.01)).numpy())
    assert losses[-1] < losses[0]
    return [*losses, *[v.numpy() for v in variables]]


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
            with on(i + 1, self.scoped):
                found.append(norm(branch(x), training=training))
        return self.out(tf.concat(found, 1))

    # Keras's own functions name no device, and an emulated GPU only gets ops that name it.
    def train_step(self, *arguments: Any) -> Any:
        with tf.device(GPU):
            return super().train_step(*arguments)

    def predict_step(self, *arguments: Any) -> Any:
        with tf.device(GPU):
            return super().predict_step(*arguments)


def keras_training(scoped: bool) -> list[Any]:
    """Losses, weights and predictions of a model trained with fit."""
    keras.utils.set_random_seed(3)
    x = np.random.RandomState(2).randn(160, 6).astype(np.float32)
    y = np.cos(x.sum(1, keepdims=True))
    with tf.device(GPU):
        model = Branches(scoped)
    optimizer = keras.optimizers.Adam(0.01)
    optimizer.jit_compile = False  # Keras 2 has XLA compile it, and an emulated GPU is a CPU
    # The data set that fit makes has to be on the CPU.
    model.compile(optimizer, "mse", jit_compile=False)
    history = model.fit(x, y, batch_size=16, epochs=STEPS // 10, verbose=0, shuffle=False)
    predicted = model.predict(x, batch_size=160, verbose=0)
    return [*history.history["loss"], *model.get_weights(), predicted]


def recommender_training(scoped: bool, reference: bool) -> list[Any]:
    """Losses and weights of embedding tables with sparse gradients, trained in a session."""
    fields, rows, width = 6, 50, 4
    numbers = np.random.RandomState(5)
    with tf.Graph().as_default() as graph, tf.device(GPU):
        ids = tf1.placeholder(tf.int32, [None, fields])
        label = tf1.placeholder(tf.float32, [None])
        towers = []
        for i in range(fields):
            with on(i % GROUPS, scoped):
                table = tf1.get_variable(
                    f"table{i}",
                    initializer=numbers.randn(rows, width).astype(np.float32) * 0.5,
                    use_resource=not reference,
                )
                towers.append(tf.tanh(tf.gather(table, ids[:, i])))
        dense = tf1.get_variable(
            "dense",
            initializer=numbers.randn(fields * width, 1).astype(np.float32) * 0.5,
            use_resource=not reference,
        )
        score = tf.matmul(tf.concat(towers, 1), dense)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(label, score))
        train = tf1.train.GradientDescentOptimizer(0.5).minimize(loss)
        variables = tf1.trainable_variables()
        initializer = tf1.global_variables_initializer()
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(graph=graph, config=config) as session:
        session.run(initializer)
        losses = []
        for _ in range(STEPS):
            chosen = numbers.randint(0, rows, [16, fields])
            feeds = {ids: chosen, label: (chosen.sum(1) % 2).astype(np.float32)}
            losses.append(session.run([loss, train], feeds)[0])
        return [*losses, *session.run(variables)]


def training() -> None:
    """Each model without scopes, then each with them."""
    models: dict[str, Callable[[bool], list[Any]]] = {
        "keras": keras_training,
        "mlp, SGD": lambda scoped: mlp_training(scoped, adam=False),
        "mlp, Adam": lambda scoped: mlp_training(scoped, adam=True),
        "recommender": lambda scoped: recommender_training(scoped, reference=False),
        "recommender, reference variables": lambda scoped: recommender_training(scoped, True),
    }
    if ON_GPU:  # where the order of a reference variable's scattered updates is not determined
        del models["recommender, reference variables"]
    expected = {name: model(False) for name, model in models.items()}
    assert groups_used() == {0}
    found = {}
    for name, model in models.items():
        found[name] = model(True)
        assert groups_used() == set(range(GROUPS)), name
    for name, results in expected.items():
        assert all(np.isfinite(x).all() for x in results), name
        assert same(results, found[name]), name


def test_training_gives_the_same_weights() -> None:
    """200 steps of each model give the same losses and weights with scopes as without."""
    run_job(training)


def sums() -> None:
    """AddN of tensors of several groups, written by hand and made by gradients."""
    x = tf.constant(np.random.RandomState(0).randn(48, 192).astype(np.float32))
    w = tf.constant(np.random.RandomState(1).randn(192, 192).astype(np.float32))

    def summed(scoped: bool, order: Sequence[int], last: int) -> Any:
        @tf.function(autograph=False)
        def function() -> Any:
            with tf.device(GPU):
                parts = []
                for i, group in enumerate(order):
                    with on(group, scoped):
                        parts.append(tf.tanh(tf.roll(x, i, 1) * (i + 1.0)))
                with on(last, scoped):
                    return tf.add_n(parts)

        return function

    def differentiated(scoped: bool, order: Sequence[int], last: int) -> Any:
        @tf.function(autograph=False)
        def function() -> Any:
            with tf.device(GPU), tf.GradientTape() as tape:
                tape.watch(w)
                with on(last, scoped):
                    shared = tf.tanh(tf.matmul(x, w))
                parts = []
                for i, group in enumerate(order):
                    with on(group, scoped):
                        parts.append(tf.reduce_sum(tf.sin(shared * (i + 1.0))))
                loss = parts[0] + parts[1] + parts[2]
                return tape.gradient(loss, w)

        return function

    for make in (summed, differentiated):
        for order, last in (([0, 1, 2, 3], 0), ([1, 2, 3, 0], 0), ([1, 2, 3], 3), ([3, 2, 1], 0)):
            expected = make(False, order, last)().numpy()
            function = make(True, order, last)
            for _ in range(5):
                assert same(function().numpy(), expected), (make.__name__, order, last)
    assert groups_used() == set(range(GROUPS))


def test_sums_begin_where_they_do_without_scopes() -> None:
    """AddN adds into the first input whose memory it may reuse; this choice changes last bits."""
    run_job(sums)

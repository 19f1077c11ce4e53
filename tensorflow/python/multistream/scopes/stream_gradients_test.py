# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gradients of ops built in a stream scope carry its group; no other gradient does."""

import collections
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.graphs import X, group_of, groups_by_type, traced
from multistream.testing.kit import on

tf1 = tf.compat.v1


def test_symbolic_gradients_follow() -> None:
    """tf.gradients in a v1 graph, with the sum of a tensor's gradients."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3])
        with on(1):
            a = tf.tanh(x)
            b = tf.sigmoid(a) * tf.sqrt(a)
        c = tf.nn.relu(b)
        (dx,) = tf1.gradients(c, x)
        end = tf.exp(dx)
    found = dict(groups_by_type(graph, "TanhGrad", "SigmoidGrad", "SqrtGrad", "AddN"))
    assert found == {"TanhGrad": 1, "SigmoidGrad": 1, "SqrtGrad": 1, "AddN": 1}
    assert groups_by_type(graph, "ReluGrad") == [("ReluGrad", None)]
    assert group_of(end.op) is None


def test_a_gradient_asked_for_in_a_scope_still_follows_its_op() -> None:
    """The op's scope wins; gradients of other ops go to the scope where they are computed."""

    def f(x: Any) -> Any:
        with on(1):
            y = tf.tanh(x)
        z = tf.nn.relu(y)
        with on(2):
            return tf.gradients(z, x)

    found = dict(groups_by_type(traced(f, X), "TanhGrad", "ReluGrad"))
    assert found == {"TanhGrad": 1, "ReluGrad": 2}


def test_v1_optimizer_follows() -> None:
    """minimize: gradients in the group, updates in none."""
    with tf.Graph().as_default() as graph:
        v = tf1.get_variable("v", [3], use_resource=True)
        with on(2):
            loss = tf.reduce_sum(tf.tanh(v))
        tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    assert groups_by_type(graph, "TanhGrad", "ResourceApplyGradientDescent") == [
        ("TanhGrad", 2),
        ("ResourceApplyGradientDescent", None),
    ]


@pytest.mark.parametrize("persistent", [False, True])
def test_tape_gradients_follow(persistent: bool) -> None:
    """Gradients that need neither inputs nor outputs follow as well, and so do sums."""

    def f(x: Any) -> Any:
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            with on(1):
                y = tf.tanh(tf.identity(x))
                y = tf.sigmoid(y) * tf.sqrt(y) - tf.negative(y)
            z = tf.nn.relu(y)
        d = tape.gradient(z, x)
        return tf.exp(d)

    graph = traced(f, X)
    types = ("TanhGrad", "SigmoidGrad", "SqrtGrad", "AddN")
    assert dict(groups_by_type(graph, *types)) == dict.fromkeys(types, 1)
    assert {group for _, group in groups_by_type(graph, "Neg", "Mul")} == {1}
    assert groups_by_type(graph, "ReluGrad", "Exp") == [("ReluGrad", None), ("Exp", None)]


def test_a_sum_over_two_groups_is_in_neither() -> None:
    """The gradient of what two branches share is for the runtime to place."""

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with on(1):
                y = tf.tanh(x)
            with on(2):
                z = tf.sigmoid(x)
            loss = y + z
        return tape.gradient(loss, x)

    found = dict(groups_by_type(traced(f, X), "TanhGrad", "SigmoidGrad", "AddN"))
    assert found == {"TanhGrad": 1, "SigmoidGrad": 2, "AddN": None}


def test_gradients_of_indexed_slices_follow() -> None:
    """The summed gradient of two lookups in one table."""
    table = tf.Variable(tf.zeros([5, 2]))

    def f(i: Any) -> Any:
        with tf.GradientTape() as tape, on(1):
            y = tf.tanh(tf.gather(table, i)) + tf.gather(table, i + 1)
        return tf.convert_to_tensor(tape.gradient(y, table))

    graph = traced(f, tf.TensorSpec([3], tf.int32))
    slices = [op for op in graph.get_operations() if op.type == "ConcatV2"]
    assert slices and all(group_of(op) == 1 for op in slices)


def find_functions(code: Any, seen: set[int]) -> Iterator[Any]:
    """The tf.functions that plain functions hold in their closures."""
    if id(code) in seen:
        return
    seen.add(id(code))
    if hasattr(code, "get_concrete_function"):
        yield code
        code = code.python_function
    for cell in getattr(code, "__closure__", None) or ():
        if callable(cell.cell_contents):
            yield from find_functions(cell.cell_contents, seen)


class TwoBranches(keras.Model):
    """A model with a scope for each branch."""

    def __init__(self) -> None:
        super().__init__()
        self.left = keras.layers.Dense(4, activation="tanh")
        self.right = keras.layers.Dense(4, activation="sigmoid")

    def call(self, x: Any) -> Any:
        with on(1):
            a = self.left(x)
        with on(2):
            b = self.right(x)
        return a + b


def test_keras_fit_follows() -> None:
    """In the graph of fit, branches and gradients have their groups, and updates have none."""
    model = TwoBranches()
    optimizer = keras.optimizers.SGD()
    optimizer.jit_compile = False  # Keras 2 has XLA compile it
    model.compile(optimizer, "mse", jit_compile=False)
    data = np.ones([8, 4], np.float32)
    model.fit(data, data, batch_size=4, verbose=0)
    graphs = [
        concrete.graph
        for function in find_functions(model.train_function, set())
        for concrete in function._list_all_concrete_functions()
    ]
    steps = [graph for graph in graphs if groups_by_type(graph, "TanhGrad")]
    assert steps
    for graph in steps:
        found = dict(groups_by_type(graph, "Tanh", "TanhGrad", "Sigmoid", "SigmoidGrad"))
        assert found == {"Tanh": 1, "TanhGrad": 1, "Sigmoid": 2, "SigmoidGrad": 2}
        # Each branch has its product and the gradient of its weights.
        products = collections.Counter(group for _, group in groups_by_type(graph, "MatMul"))
        assert products == {1: 2, 2: 2}
        updates = ("AssignSubVariableOp", "AssignAddVariableOp")
        assert {group for _, group in groups_by_type(graph, *updates)} == {None}
    listed = tf.cuda.stream_groups_of(
        tf.function(model.train_step).get_concrete_function((data, data))
    )
    assert {row.why for row in listed if row.op == "TanhGrad"} == {"gradient"}
    assert model.predict(data, verbose=0).shape == (8, 4)

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
"""Ops built in a stream scope, and their gradients, carry its group; no other op does."""

import collections
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream import scope_stack

tf1 = tf.compat.v1

GROUP = "_stream_group"
NO_GRAD = "_stream_group_no_grad"


def group_of(op: Any) -> int | None:
    """The group in an op's NodeDef, which is what the runtime reads."""
    attributes = op.node_def.attr
    return attributes[GROUP].i if GROUP in attributes else None


def groups_by_type(graph: Any, *types: str) -> list[tuple[str, int | None]]:
    """Type and group of a graph's ops of these types, in order."""
    return [(op.type, group_of(op)) for op in graph.get_operations() if op.type in types]


def marked(graph: Any) -> list[str]:
    """Names of all nodes of a graph and its functions with an attribute of ours."""
    graph_def = graph.as_graph_def()
    nodes = list(graph_def.node)
    for function in graph_def.library.function:
        nodes += function.node_def
    return [node.name for node in nodes if any(a.startswith("_stream_group") for a in node.attr)]


def on(i: int, include_grad: bool = True) -> Any:
    """A scope of one group."""
    return tf.cuda.stream_scope(tf.cuda.get_stream(i), include_grad)


def traced(function: Any, *arguments: Any) -> Any:
    """The graph of a function."""
    return tf.function(function).get_concrete_function(*arguments).graph


@pytest.fixture
def old_control_flow() -> Iterator[None]:
    """tf.cond and tf.while_loop of v1 graphs, which build ops in the same graph."""
    tf1.disable_control_flow_v2()
    yield
    tf1.enable_control_flow_v2()


X = tf.TensorSpec([3], tf.float32)


# Ops.


def test_ops_of_a_v1_graph_carry_the_group() -> None:
    """In the scope all ops have it, and outside none."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3])
        before = tf.tanh(x)
        with on(2):
            inside = tf.sin(before)
        after = tf.cos(inside)
    assert [group_of(t.op) for t in (x, before, inside, after)] == [None, None, 2, None]
    assert marked(graph) == [inside.op.name]


def test_ops_of_a_function_carry_the_group() -> None:
    """The same in a tf.function, whose arguments and captures belong to no scope."""
    v = tf.Variable([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        with on(2):
            y = tf.sin(x + v)
        return tf.cos(y)

    graph = traced(f, X)
    assert groups_by_type(graph, "AddV2", "Sin", "Cos") == [("AddV2", 2), ("Sin", 2), ("Cos", None)]
    assert {group for _, group in groups_by_type(graph, "Placeholder")} == {None}


def test_no_scope_leaves_no_trace() -> None:
    """Without scopes, graphs, functions and gradients have no attribute of ours."""
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: tf.tanh(x) * v)

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cond(x[0] > 0, lambda: inner(x), lambda: x * v)
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * v), [0, y])[1]
        return tape.gradient(y, v), tf.gradients(y, x)

    assert marked(traced(f, X)) == []


def test_innermost_scope_counts() -> None:
    """Nested scopes, and the outer one again after the inner."""

    def f(x: Any) -> Any:
        with on(1):
            x = tf.sin(x)
            with on(3), on(2):
                x = tf.cos(x)
            return tf.tan(x)

    assert groups_by_type(traced(f, X), "Sin", "Cos", "Tan") == [("Sin", 1), ("Cos", 2), ("Tan", 1)]


def test_an_error_leaves_the_scope() -> None:
    """After an exception in a scope, ops are outside it."""

    def f(x: Any) -> Any:
        try:
            with on(1):
                raise KeyError
        except KeyError:
            return tf.sin(x)

    assert marked(tf.function(f, autograph=False).get_concrete_function(X).graph) == []


def test_a_scope_is_reusable_and_reentrant() -> None:
    """One scope object, entered again in itself and in another function."""
    scope = on(2)

    def f(x: Any) -> Any:
        with scope:
            with scope:
                x = tf.sin(x)
            x = tf.cos(x)
        return tf.tan(x)

    for _ in range(2):
        assert groups_by_type(traced(f, X), "Sin", "Cos", "Tan") == [
            ("Sin", 2),
            ("Cos", 2),
            ("Tan", None),
        ]


@on(2)
def decorated_branch(x: Any) -> Any:
    """Has code that AutoGraph must convert."""
    if x[0] > 0:
        x = tf.sin(x)
    return tf.cos(x)


@pytest.mark.parametrize("autograph", [True, False])
def test_decorator_enters_the_scope_in_each_call(autograph: bool) -> None:
    """Below tf.function, on what it calls, and on methods; names and AutoGraph still work."""

    class Model:
        @on(3)
        def call(self, x: Any) -> Any:
            return tf.tan(x)

    def f(x: Any) -> Any:
        x = Model().call(tf.exp(x))
        return decorated_branch(x) if autograph else x

    graph = tf.function(f, autograph=autograph).get_concrete_function(X).graph
    assert groups_by_type(graph, "Exp", "Tan") == [("Exp", None), ("Tan", 3)]
    if autograph:
        assert groups_by_type(graph, "StatelessIf", "Cos") == [("StatelessIf", 2), ("Cos", 2)]
    below = tf.function(decorated_branch).get_concrete_function(X).graph
    assert groups_by_type(below, "StatelessIf", "Cos") == [("StatelessIf", 2), ("Cos", 2)]
    assert decorated_branch.__name__ == "decorated_branch"


def test_a_traced_function_is_not_bound_to_a_scope() -> None:
    """The calls of one function in two scopes have two groups; its body has none but its own."""

    @tf.function
    def inner(x: Any) -> Any:
        with on(3):
            y = tf.sin(x)
        return tf.cos(y)

    def f(x: Any) -> Any:
        with on(1):
            a = inner(x)
        with on(2):
            b = inner(x)
        return a + b + inner(x)

    assert groups_by_type(traced(f, X), "PartitionedCall") == [
        ("PartitionedCall", 1),
        ("PartitionedCall", 2),
        ("PartitionedCall", None),
    ]
    body = inner.get_concrete_function(X).graph
    assert groups_by_type(body, "Sin", "Cos") == [("Sin", 3), ("Cos", None)]


def test_control_flow_ops_carry_the_group() -> None:
    """Cond, while and map_fn ops have it; their bodies have only their own."""

    def in_body(x: Any) -> Any:
        with on(3):
            return tf.sin(x)

    def f(x: Any) -> Any:
        with on(1):
            x = tf.cond(x[0] > 0, lambda: in_body(x), lambda: tf.cos(x))
            x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.cos(x)), [0, x])[1]
            return tf.map_fn(tf.tan, x)

    graph = traced(f, X)
    assert groups_by_type(graph, "StatelessIf", "StatelessWhile") == [
        ("StatelessIf", 1),
        ("StatelessWhile", 1),
        ("StatelessWhile", 1),
    ]
    library = graph.as_graph_def().library
    bodies = [(n.op, n.attr[GROUP].i) for f in library.function for n in f.node_def if n.attr]
    assert [(op, group) for op, group in bodies if group] == [("Sin", 3)]


def test_v1_control_flow_builds_marked_ops(old_control_flow: None) -> None:
    """Its bodies are in the same graph, so their ops carry the group; so do their gradients."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [3])
        with on(1):
            y = tf1.cond(x[0] > 0, lambda: tf.sin(x), lambda: tf.cos(x))
            y = tf1.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), [0, y])[1]
        forward = set(graph.get_operations())
        (dx,) = tf1.gradients(y, x)
        tail = tf.exp(dx)
    assert all(group_of(op) == 1 for op in forward - {x.op})
    gradients = [op for op in graph.get_operations() if op.type == "TanhGrad"]
    assert gradients and all(group_of(op) == 1 for op in gradients)
    assert group_of(tail.op) is None
    with tf1.Session(graph=graph) as session:
        assert np.isfinite(session.run(dx, {x: [1.0, 2.0, 3.0]})).all()


def test_other_threads_are_not_in_the_scope() -> None:
    """Two threads that build one graph, in scopes of their own and in none."""
    graph = tf.Graph()
    entered, built = threading.Barrier(3), threading.Barrier(3)
    ops: dict[int | None, Any] = {}

    def build(group: int | None) -> None:
        with graph.as_default():
            if group is None:
                entered.wait()
                ops[group] = tf.constant(1.0).op
                built.wait()
                return
            with on(group):
                entered.wait()
                ops[group] = tf.constant(1.0).op
                built.wait()

    threads = [threading.Thread(target=build, args=(group,)) for group in (None, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {group: group_of(op) for group, op in ops.items()} == {None: None, 1: 1, 2: 2}


def test_imported_nodes_keep_their_group() -> None:
    """import_graph_def in a scope groups only the nodes that have no group."""
    with tf.Graph().as_default() as graph:
        with on(3):
            tf.constant(1.0, name="a")
        tf.constant(1.0, name="b")
    with tf.Graph().as_default() as again, on(1):
        tf.import_graph_def(graph.as_graph_def(), name="")
    assert [group_of(again.get_operation_by_name(name)) for name in "ab"] == [3, 1]


# Round robin.


def test_scopes_without_stream_take_turns(four_groups: None) -> None:
    """Each entry takes the next group; the count starts anew with each traced function."""
    scope = tf.cuda.stream_scope()
    seen = []

    def f(x: Any) -> Any:
        with scope as first:
            x = tf.sin(x)
        with tf.cuda.stream_scope() as second:
            x = tf.sin(x)
            with scope as third:
                x = tf.sin(x)
        for _ in range(2):
            with scope:
                x = tf.sin(x)
        seen.append([first.group, second.group, third.group])
        return x

    for _ in range(2):
        graph = tf.function(f, autograph=False).get_concrete_function(X).graph
        assert [group for _, group in groups_by_type(graph, "Sin")] == [0, 1, 2, 3, 0]
    assert seen == [[0, 1, 2]] * 2


def test_turns_are_counted_for_the_outermost_graph(four_groups: None) -> None:
    """Functions and branches go on where their caller is; v1 graphs count by themselves."""

    @tf.function
    def inner(x: Any) -> Any:
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            return tf.sin(x)

    def f(x: Any) -> Any:
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            x = inner(x)
        with tf.cuda.stream_scope() as s:
            taken.append(s.group)
            return tf.cond(x[0] > 0, lambda: inner(x + 1.0), lambda: x)

    taken: list[int] = []
    traced(f, X)
    assert taken == [0, 1, 2]
    taken.clear()
    for _ in range(2):
        with tf.Graph().as_default():
            for _ in range(2):
                with tf.cuda.stream_scope() as s:
                    taken.append(s.group)
    assert taken == [0, 1, 0, 1]


# Errors.


def test_eager_code_is_an_error() -> None:
    """It says where scopes work; the same in a py_function and as a decorator."""
    for enter in (lambda: on(1).__enter__(), lambda: on(1)(tf.sin)(1.0)):
        with pytest.raises(RuntimeError, match=r"works inside a tf.function or a tf.compat.v1 gr"):
            enter()
    assert not scope_stack.active.entries


def test_functions_run_eagerly_ignore_scopes() -> None:
    """Debugging with run_functions_eagerly does not stop at a scope."""
    tf.config.run_functions_eagerly(True)
    try:
        with tf.cuda.stream_scope() as s, on(2):
            assert float(tf.function(lambda x: x + 1.0)(1.0)) == 2.0
        assert s == tf.cuda.Stream(0)
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        (1, TypeError, r"stream=1 is not .* tf.cuda.get_stream\(1\)"),
        ("1", TypeError, "stream='1' is not a tf.cuda.Stream"),
        (True, TypeError, "stream=True is not"),
        (tf.identity, TypeError, r"@tf.cuda.stream_scope\(\), with parentheses"),
        (tf.cuda.Stream(4), ValueError, r"Stream\(group=4\).*TF_GPU_STREAM_GROUP_COUNT=5"),
        (tf.cuda.Stream("a"), TypeError, r"Stream\(group='a'\)"),
    ],
)
def test_a_wrong_stream_is_named(
    four_groups: None, stream: Any, error: type[Exception], message: str
) -> None:
    """The error names what was passed and says what to pass."""
    with pytest.raises(error, match=message):
        tf.cuda.stream_scope(stream)


@pytest.mark.parametrize(
    ("i", "error", "message"),
    [
        (4, ValueError, r"get_stream\(4\): .* group 4.*has 4.*TF_GPU_STREAM_GROUP_COUNT=5"),
        (64, ValueError, r"get_stream\(64\).*at most 64"),
        (-1, ValueError, r"get_stream\(-1\).*from 0 to 3"),
        (True, TypeError, r"get_stream\(True\).*int"),
        ("1", TypeError, r"get_stream\('1'\)"),
        (1.0, TypeError, r"get_stream\(1.0\)"),
        (None, TypeError, r"get_stream\(None\)"),
    ],
)
def test_a_wrong_group_is_named(
    four_groups: None, i: Any, error: type[Exception], message: str
) -> None:
    """The error names the number, the count and the variable."""
    with pytest.raises(error, match=message):
        tf.cuda.get_stream(i)


def test_one_stream_takes_every_group() -> None:
    """Without multi-stream, groups that some machine could have are accepted, and no others."""
    assert [tf.cuda.get_stream(i).group for i in (0, 63)] == [0, 63]
    with pytest.raises(ValueError, match=r"get_stream\(64\).*from 0 to 63"):
        tf.cuda.get_stream(64)


def test_wrong_use_of_the_decorator_is_an_error() -> None:
    """Classes and generators, whose bodies the scope would not reach."""

    class Layer:
        pass

    def generate() -> Iterator[int]:
        yield 1

    for wrong in (Layer, generate, 3):
        with pytest.raises(TypeError, match="decorate"):
            on(1)(wrong)


def test_leaving_a_scope_that_was_not_entered_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="has not entered it"):
        on(1).__exit__(None, None, None)


# Gradients.


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
    """The op's scope wins; what has none goes where the gradient is asked for."""

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
    """Also of ops whose gradients need neither inputs nor outputs, and their sums."""

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
    """What fit runs has branches and gradients in their groups, and updates in none."""
    model = TwoBranches()
    model.compile("sgd", "mse", jit_compile=False)
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
        assert {group for _, group in groups_by_type(graph, "AssignSubVariableOp")} == {None}
    listed = tf.cuda.stream_groups_of(
        tf.function(model.train_step).get_concrete_function((data, data))
    )
    assert {row.why for row in listed if row.op == "TanhGrad"} == {"gradient"}
    assert model.predict(data, verbose=0).shape == (8, 4)


@pytest.mark.parametrize("how", ["tape", "persistent", "symbolic"])
def test_gradients_of_calls_follow(how: str) -> None:
    """The backward call has the forward call's group, and its body only that of inner scopes."""

    @tf.function
    def inner(x: Any) -> Any:
        with on(3):
            x = tf.tanh(x)
        return tf.sigmoid(x)

    def f(x: Any) -> Any:
        with tf.GradientTape(persistent=how == "persistent") as tape:
            tape.watch(x)
            with on(1):
                y = inner(x)
            z = inner(y)
        return tf.gradients(z, x) if how == "symbolic" else tape.gradient(z, x)

    graph = traced(f, X)
    assert [group for _, group in groups_by_type(graph, "PartitionedCall")] == [1, None, None, 1]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    for op, group in (("Tanh", 3), ("TanhGrad", 3), ("Sigmoid", 0), ("SigmoidGrad", 0)):
        assert {node.attr[GROUP].i for node in nodes if node.op == op} == {group}, op


def test_forward_mode_works_in_scopes() -> None:
    """A forward accumulator reads the same records of ops as a tape."""

    @tf.function
    def f(x: Any) -> Any:
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
            with tf.GradientTape() as tape, on(1):
                tape.watch(x)
                y = tf.tanh(x)
            return forward.jvp(y), tape.gradient(y, x)

    np.testing.assert_allclose(*f(tf.constant([1.0, 2.0, 3.0])), atol=1e-6)


def test_eager_gradient_of_a_function_follows() -> None:
    """A tape in eager code: the backward function has the groups of the forward one."""

    @tf.function
    def f(x: Any) -> Any:
        with on(3):
            return tf.tanh(x)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x), 1 - np.tanh(x) ** 2, atol=1e-5)
    functions = f.get_concrete_function(x)._first_order_tape_functions.values()
    backward = [groups_by_type(function._backward.graph, "TanhGrad") for function in functions]
    assert backward == [[("TanhGrad", 3)]]


@pytest.mark.parametrize("tape", [True, False])
def test_gradients_of_control_flow_follow(tape: bool) -> None:
    """Backward cond and while ops have the forward op's group; in bodies inner scopes count."""

    def in_body(x: Any) -> Any:
        with on(3):
            x = tf.tanh(x)
        return tf.sigmoid(x)

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(1):
                y = tf.cond(x[0] > 0, lambda: in_body(x), lambda: tf.cos(x))
            with on(2):
                y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, in_body(y)), [0, y])[1]
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    graph = traced(f, X)
    conditions = groups_by_type(graph, "If", "StatelessIf")
    loops = groups_by_type(graph, "While", "StatelessWhile")
    assert [group for _, group in conditions] == [1, 1]
    assert [group for _, group in loops] == [2, 2]
    nodes = [node for f in graph.as_graph_def().library.function for node in f.node_def]
    for op, group in (("TanhGrad", 3), ("SigmoidGrad", 0)):
        assert {node.attr[GROUP].i for node in nodes if node.op == op} == {group}, op


@pytest.mark.parametrize("tape", [True, False])
def test_custom_gradients_follow(tape: bool) -> None:
    """A gradient that the user wrote goes where the forward ops are."""

    @tf.custom_gradient
    def custom(x: Any) -> Any:
        return tf.sin(x), tf.asinh

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(2):
                y = custom(x)
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    assert groups_by_type(traced(f, X), "Sin", "Asinh") == [("Sin", 2), ("Asinh", 2)]


def test_recomputed_gradients_follow() -> None:
    """recompute_grad runs the forward ops again in the group of the first time."""
    v = tf.Variable(2.0)

    @tf.recompute_grad
    def block(x: Any) -> Any:
        return tf.tanh(x * v)

    def f(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            with on(2):
                y = block(x)
        return tape.gradient(y, x)

    found = groups_by_type(traced(f, X), "Tanh", "TanhGrad")
    assert len(found) >= 2 and {group for _, group in found} == {2}


@pytest.mark.parametrize("tape", [True, False])
def test_second_order_gradients_follow(tape: bool) -> None:
    """Gradients of gradients, too."""

    def f(x: Any) -> Any:
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                with on(2):
                    y = tf.tanh(x)
            if tape:
                return outer.gradient(inner.gradient(y, x), x)
            return tf.gradients(tf.gradients(y, x), x)

    found = groups_by_type(traced(f, X), "Tanh", "TanhGrad", "Mul")
    assert len(found) >= 4 and {group for _, group in found} == {2}


@pytest.mark.parametrize("tape", [True, False])
@pytest.mark.parametrize("asked_in", [None, 3])
def test_include_grad_false(tape: bool, asked_in: int | None) -> None:
    """The ops say so, and gradients go to the scope in which they are asked for, or to none."""

    @tf.function
    def inner(x: Any) -> Any:
        return tf.sqrt(x)

    def gradient(t: Any, y: Any, x: Any) -> Any:
        return t.gradient(y, x) if tape else tf.gradients(y, x)

    def f(x: Any) -> Any:
        with tf.GradientTape() as t:
            t.watch(x)
            with on(1, include_grad=False):
                y = tf.tanh(x)
                y = inner(y)
                with on(2):
                    y = tf.sigmoid(y)
        if asked_in is None:
            return gradient(t, y, x)
        with on(asked_in):
            return gradient(t, y, x)

    graph = traced(f, X)
    (tanh,) = [op for op in graph.get_operations() if op.type == "Tanh"]
    assert group_of(tanh) == 1 and tanh.get_attr(NO_GRAD) is True
    (sigmoid,) = [op for op in graph.get_operations() if op.type == "Sigmoid"]
    assert group_of(sigmoid) == 2 and NO_GRAD not in sigmoid.node_def.attr
    assert groups_by_type(graph, "TanhGrad", "SigmoidGrad") == [
        ("SigmoidGrad", 2),
        ("TanhGrad", asked_in),
    ]
    assert [group for _, group in groups_by_type(graph, "PartitionedCall")] == [1, asked_in]


# SavedModel.


def test_a_saved_model_keeps_groups(tmp_path: Path) -> None:
    """Export and import, in functions and signatures; gradients of loaded functions follow."""

    class Module(tf.Module):
        @tf.function(input_signature=[X])
        def call(self, x: Any) -> Any:
            with on(2):
                x = tf.tanh(x)
            with on(1, include_grad=False):
                return tf.sigmoid(x)

    tf.saved_model.save(Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    signature = loaded.signatures["serving_default"]
    for function in (loaded.call, signature):
        concrete = getattr(function, "concrete_functions", [function])[0]
        rows = {r.op: (r.group, r.why) for r in tf.cuda.stream_groups_of(concrete)}
        assert rows["Tanh"] == (2, "scope") and rows["Sigmoid"] == (1, "scope")
    with tf1.Session(graph=tf.Graph()) as session:
        graph_def = tf1.saved_model.load(session, ["serve"], str(tmp_path)).graph_def
    nodes = [node for f in graph_def.library.function for node in f.node_def]
    (sigmoid,) = [node for node in nodes if node.op == "Sigmoid"]
    assert sigmoid.attr[GROUP].i == 1 and sigmoid.attr[NO_GRAD].b

    def train(x: Any) -> Any:
        return tf.gradients(loaded.call(x), x)

    nodes = [n for f in traced(train, X).as_graph_def().library.function for n in f.node_def]
    assert {n.attr[GROUP].i for n in nodes if n.op == "TanhGrad"} == {2}
    assert {GROUP in n.attr for n in nodes if n.op == "SigmoidGrad"} == {False}


# The process.


def run(code: str, **environment: str) -> str:
    """Runs code in a process with these multi-stream variables and no others."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**clean, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_real_groups_bound_streams_and_scoped_training_runs() -> None:
    """With real groups: their number counts, under every name, and a scoped step gives the same."""
    code = """
        import tensorflow as tf
        tf1 = tf.compat.v1
        assert tf1.cuda.stream_scope is tf.cuda.stream_scope
        assert tf.compat.v2.cuda.get_stream is tf1.cuda.get_stream is tf.cuda.get_stream
        assert tf1.cuda.Stream is tf.cuda.Stream
        assert tf1.cuda.stream_groups_of is tf.cuda.stream_groups_of
        if tf.cuda.multi_stream_is_enabled():
            try:
                tf.cuda.get_stream(3)
            except ValueError as error:
                assert "TF_GPU_STREAM_GROUP_COUNT=4" in str(error)
            else:
                raise AssertionError
        v = tf.Variable([1.0, 2.0, 3.0])

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = 0.0
                for _ in range(4):
                    with tf.cuda.stream_scope():
                        loss += tf.reduce_sum(tf.tanh(v * v))
            v.assign_sub(0.1 * tape.gradient(loss, v))

        for _ in range(3):
            step()
        rows = tf.cuda.stream_groups_of(step)
        print([r.group for r in rows if r.op == "Tanh"])
        print([r.group for r in rows if r.op == "TanhGrad"])
        print([round(float(x), 5) for x in v])
    """
    groups = run(code, TF_MULTI_STREAM_EMULATED_GPUS="1", TF_GPU_STREAM_GROUP_COUNT="3")
    one = run(code)
    assert groups.splitlines()[:2] == ["[0, 1, 2, 0]", "[0, 2, 1, 0]"]
    assert one.splitlines()[:2] == ["[0, 0, 0, 0]"] * 2
    assert groups.splitlines()[2] == one.splitlines()[2]

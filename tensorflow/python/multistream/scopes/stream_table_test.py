# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of stream groups says where each node goes, and why."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from multistream.testing.graphs import X
from multistream.testing.kit import ok, on


def test_table_says_where_and_why() -> None:
    """Node, op, group and reason; bodies below their call, with its group."""

    @tf.function
    def inner(x: Any) -> Any:
        with on(3):
            x = tf.sin(x)
        return deep(x)

    @tf.function
    def deep(x: Any) -> Any:
        return tf.cos(x)

    @tf.function
    def f(x: Any) -> Any:
        with on(1):
            y = inner(x)
        y = tf.exp(y)
        with on(2):
            y = tf.cond(y[0] > 0, lambda: tf.tan(y), lambda: tf.atan(y))
            z = tf.tanh(y)
        return tf.gradients(z, y)

    f(tf.constant([1.0, 2.0, 3.0]))
    table = tf.cuda.stream_groups_of(f)
    rows = {row.op: row for row in table}
    call = rows["Sin"].calls[0]
    assert [
        (o, rows[o].group, rows[o].why, len(rows[o].calls))
        for o in ("Sin", "Cos", "Exp", "Tan", "Atan", "Tanh", "TanhGrad")
    ] == [
        ("Sin", 3, "scope", 1),
        ("Cos", 1, f"scope (of call {call})", 2),
        ("Exp", None, "default", 0),
        ("Tan", 2, "scope (of call cond)", 1),
        ("Atan", 2, "scope (of call cond)", 1),
        ("Tanh", 2, "scope", 0),
        ("TanhGrad", 2, "gradient", 0),
    ]
    assert rows["Atan"].calls == ("cond[else_branch]",)
    text = str(table)
    assert text == repr(table) and len(table) == len(list(table))
    assert re.match(r"Stream groups of function f: \d+ nodes; \d+ in group 1, ", text)
    for line in (r"  cond/Tan +Tan +2 +scope \(of call cond\)", "Exp +Exp +- +default"):
        assert re.search(f"^{line}$", text, re.MULTILINE), text
    assert "\n  cond[else_branch]:\n" in text


def test_table_of_every_kind_of_graph() -> None:
    """A v1 graph, an imported one, a concrete function, a function's graph."""
    with tf.Graph().as_default() as graph, on(1):
        tf.function(tf.sin)(tf.constant(1.0))
    with tf.Graph().as_default() as imported:
        tf.import_graph_def(graph.as_graph_def(), name="i")

    @tf.function
    def f(x: Any) -> Any:
        with on(1):
            return tf.sin(x)

    concrete = f.get_concrete_function(X)
    for source in (graph, imported, concrete, concrete.graph, f):
        (row,) = [row for row in tf.cuda.stream_groups_of(source) if row.op == "Sin"]
        assert row.group == 1, source
    assert len(tf.cuda.stream_groups_of(tf.Graph())) == 0
    assert "0 nodes" in str(tf.cuda.stream_groups_of(tf.Graph()))


def test_table_of_what_has_no_single_graph_is_an_error() -> None:
    f = tf.function(lambda x: x)
    with pytest.raises(ValueError, match=r"not been traced.*get_concrete_function"):
        tf.cuda.stream_groups_of(f)
    f(tf.constant(1.0))
    f(tf.constant([1.0]))
    with pytest.raises(ValueError, match=r"2 graphs.*get_concrete_function"):
        tf.cuda.stream_groups_of(f)
    for wrong in (print, 3, None):
        with pytest.raises(TypeError, match=r"takes a tf.Graph, a concrete function or a tf.func"):
            tf.cuda.stream_groups_of(wrong)


def test_table_shows_what_the_runtime_decides(tmp_path: Path) -> None:
    """With node level on: leader, file and propagated."""
    (tmp_path / "groups.txt").write_text("# By name.\n3: from_.*\n")
    code = """
        import tensorflow as tf
        v = tf.Variable(1.0)
        @tf.function
        def body(x):
            return tf.cos(x, name="from_body")
        @tf.function
        def f(x):
            with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
                y = tf.tanh(x, name="scoped")
                v.assign_add(y)
            return body(tf.sin(y, name="after"))
        table = tf.cuda.stream_groups_of(f.get_concrete_function(tf.TensorSpec([])))
        print({row.node: (row.group, row.why) for row in table if row.op != "NoOp"})
    """
    out = ok(
        code,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
        TF_GPU_STREAM_GROUP_COUNT="4",
        TF_NODE_LEVEL_MULTISTREAM="true",
        TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION="true",
        TF_STREAM_FROM_FILE=str(tmp_path / "groups.txt"),
    )
    rows = ast.literal_eval(out)
    assert rows["scoped"] == (2, "scope")
    assert rows["after"] == (2, "propagated")
    assert rows["from_body"] == (3, "file")
    assert rows["AssignAddVariableOp"] == (0, "leader: may change a variable")

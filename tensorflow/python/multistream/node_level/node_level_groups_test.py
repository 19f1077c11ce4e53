# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which group a node runs on: the group of its scope, of the stream file or of its inputs.

A test names a function of this file, a job, which runs in a process of its own with the variables
that the test chooses.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing.kit import GPU, groups_used, matrix, on, run_job, run_process

tf1 = tf.compat.v1


def function_in_scopes() -> Any:
    """A tf.function of [64, 64] matrices with an op after the scope."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(GPU):
            with tf.name_scope("inside"), on(1):
                y = tf.tanh(x, name="tanh")
            with tf.name_scope("outside"):
                return tf.reduce_sum(tf.concat([y, y], 0))

    return function


def scopes_use(groups: set[int], peak: int) -> None:
    """Checks which groups a function uses, and for how many matrices group 1 has memory."""
    x = tf.constant(matrix())
    assert groups_used() <= {0}
    result = function_in_scopes()(x).numpy()
    assert groups_used() == {0} | groups, tf.cuda.stream_stats()
    matrices = tf.cuda.stream_stats()[1].peak_bytes_in_use / matrix().nbytes
    assert int(matrices + 0.5) == peak, tf.cuda.stream_stats()
    assert result == pytest.approx(np.tanh(matrix()).sum() * 2.0, rel=1e-3)


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
    run_job(scopes_use, groups, peak, **environment)


def file_gives_groups() -> None:
    """A function and a session, whose node names the file knows."""
    x = matrix()

    def model(x: Any) -> Any:
        with tf.name_scope("left"):
            a = tf.tanh(x, name="tanh")
        with tf.name_scope("leftover"), on(1):
            b = tf.sin(x, name="sin")
        return tf.reduce_sum(a * b)

    def function(x: Any) -> Any:
        with tf.device(GPU):
            return model(x)

    assert groups_used() <= {0}
    result = tf.function(function)(tf.constant(x)).numpy()
    assert groups_used() == {0, 1, 2}, tf.cuda.stream_stats()
    before = [s.steps_started for s in tf.cuda.stream_stats()]
    with tf.Graph().as_default() as graph, tf.device(GPU):
        placeholder = tf1.placeholder(tf.float32, [64, 64])
        out = model(placeholder)
        with tf.name_scope("only_in_session"):
            big = tf.reduce_sum(tf.matmul(placeholder, placeholder, name="big"))
    with tf1.Session(graph=graph) as session:
        assert session.run(out, {placeholder: x}) == result
        assert groups_used() == {0, 1, 2}, tf.cuda.stream_stats()
        session.run(big, {placeholder: x})
    assert groups_used() == {0, 1, 2, 3}, tf.cuda.stream_stats()
    assert sum(s.steps_started for s in tf.cuda.stream_stats()) > sum(before)


def test_file_gives_groups_by_node_name(tmp_path: Path) -> None:
    """A regular expression must match whole names, in functions and sessions."""
    path = tmp_path / "streams.txt"
    path.write_text("# towers\n2: left/.*\n3: lef, only_in_session/big\n", encoding="utf-8")
    log = run_job(file_gives_groups, TF_STREAM_FROM_FILE=str(path), TF_CPP_MIN_LOG_LEVEL="0").stderr
    assert log.count("Stream groups from a file:") == 1, log
    assert log.count(f"{path}:2 group 2 regex 'left/.*': ") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'lef': 0 nodes\n") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'only_in_session/big': 0 nodes\n") == 1, log


def file_gives_groups_to_a_pair() -> None:
    """One function with two nodes that the file knows."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(GPU), tf.name_scope("pair"):
            return tf.reduce_sum(tf.matmul(tf.tanh(x, name="a"), x, name="b"))

    function.get_concrete_function(tf.constant(matrix()))(tf.constant(matrix()))


def test_log_counts_the_nodes_of_the_file(tmp_path: Path) -> None:
    """The log says how many nodes each regular expression gave to a group."""
    path = tmp_path / "streams.txt"
    path.write_text("2: pair/[ab]\n", encoding="utf-8")
    log = run_job(
        file_gives_groups_to_a_pair, TF_STREAM_FROM_FILE=str(path), TF_CPP_MIN_LOG_LEVEL="0"
    ).stderr
    assert f"{path}:2 group 2" not in log
    assert f"{path}:1 group 2 regex 'pair/[ab]': 2 nodes\n" in log, log


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1: a\n\n4: b\n", ':3: group "4" is not valid: it takes a whole number from 0 to 3'),
        ("1: a\nb\n", ':2: "b" has no colon'),
        ("1: a(\n", ':1: regex "a(" is not valid'),
    ],
)
def test_bad_line_of_the_file_is_an_error(tmp_path: Path, text: str, wanted: str) -> None:
    """The error names the file and the line."""
    path = tmp_path / "streams.txt"
    path.write_text(text, encoding="utf-8")
    done = run_process(
        "import tensorflow as tf; tf.constant(1.0); print('started')",
        TF_STREAM_FROM_FILE=str(path),
    )
    assert done.returncode == 1 and "started" not in done.stdout
    assert f"{path}{wanted}" in done.stderr, done.stderr


def test_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The error names the variable and the path."""
    path = tmp_path / "nothing.txt"
    done = run_process("import tensorflow as tf; tf.constant(1.0)", TF_STREAM_FROM_FILE=str(path))
    assert done.returncode == 1
    assert f'TF_STREAM_FROM_FILE="{path}" cannot be read' in done.stderr, done.stderr


def group_that_is_not_there() -> None:
    """A graph and a function from a process with more groups."""
    with tf.Graph().as_default() as graph, tf.device(GPU):
        x = tf1.placeholder(tf.float32, [3], name="x")
        tf.tanh(tf.sin(x, name="good"), name="bad")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:
        if node.name in ("good", "bad"):
            node.attr["_stream_group"].i = 1 if node.name == "good" else 3

    wanted = r"Node \S*node bad\w*\S* \(Tanh\) is in stream group 3, and the GPU has 2 \("
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
    with tf1.Session(graph=graph) as session:
        feeds = {"x:0": [1.0, 2.0, 3.0]}
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
            session.run("bad:0", feeds)
        expected = np.sin(np.array([1.0, 2.0, 3.0], np.float32))
        assert np.allclose(session.run("good:0", feeds), expected)
    function = tf1.wrap_function(
        lambda x: tf.import_graph_def(graph_def, {"x": x}, ["bad:0"], name="")[0],
        [tf.TensorSpec([3], tf.float32)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
        function(tf.constant([1.0, 2.0, 3.0]))


def test_group_that_is_not_there_is_an_error() -> None:
    """The error names the node, its group and the count."""
    run_job(group_that_is_not_there, TF_GPU_STREAM_GROUP_COUNT="2")

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


def scopes_use(groups: set[int], peak: int) -> None:
    """Checks which groups a function uses, and for how many matrices group 1 has memory."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device(GPU):
            with on(1):
                y = tf.tanh(x)
            return tf.reduce_sum(tf.concat([y, y], 0))

    x = tf.constant(matrix())
    assert groups_used() <= {0}
    result = function(x).numpy()
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
    assert log.count(f"{path}:2 group 2 regex 'left/.*': 1 node\n") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'lef': 0 nodes\n") == 1, log
    assert log.count(f"{path}:3 group 3 regex 'only_in_session/big': 0 nodes\n") == 1, log


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1: a\n\n4: b\n", '{path}:3: group "4" is not valid'),
        (None, 'TF_STREAM_FROM_FILE="{path}" cannot be read'),
    ],
)
def test_a_bad_file_is_an_error(tmp_path: Path, text: str | None, wanted: str) -> None:
    """The error names the file and the line, or the variable."""
    path = tmp_path / "streams.txt"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    done = run_process("import tensorflow as tf; tf.constant(1.0)", TF_STREAM_FROM_FILE=str(path))
    assert done.returncode == 1
    assert wanted.format(path=path) in done.stderr, done.stderr

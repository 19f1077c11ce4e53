# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A ConfigProto's request for streams next to the environment's, and errors that name fields.

Processes have one emulated GPU and no variable that makes stream groups, unless the test sets one.
"""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from multistream.testing.deeprec import OFF, Clicks, config, run, waits
from multistream.testing.kit import in_process, run_threads, same


@contextlib.contextmanager
def fails(kind: type[Exception], *texts: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    for text in texts:
        assert text in str(caught.value), (text, str(caught.value))


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="4")
def test_a_config_beats_the_environment() -> None:
    """With fewer streams, the error names the op in none of them and where it was built."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3])
        with tf.stream(1):
            near = tf.sin(x, name="near")
        with tf.stream(3):
            far = tf.tan(x, name="far")  # nobody has this stream

    def steps(form: Any, fetch: Any) -> list[int]:
        """How many steps each group has been given while the graph ran eight times."""
        before = [group.steps_started for group in tf.cuda.stream_stats()]
        with tf.Session(graph=graph, config=form) as session:
            for _ in range(8):
                session.run(fetch, {x: [1.0, 2.0, 3.0]})
        after = [group.steps_started for group in tf.cuda.stream_stats()]
        return [a - b for a, b in zip(after, before or [0] * len(after), strict=True)]

    assert all(count > 0 for count in steps(None, near))  # the environment's: a step a group
    before = waits()
    assert steps(config(4, use=OFF), far)[1:] == [0, 0, 0]
    assert waits() == before
    assert steps(config(2), near) == [8, 0, 0, 0]
    assert waits()[1] > before[1]
    assert waits()[2:] == before[2:]
    where = 'deeprec_config_test.py", line '
    with fails(tf.errors.InvalidArgumentError, "far}} (Tan)", "stream group 3", "has 2", where):
        steps(config(2), far)
    steps(config(4), far)
    assert waits()[3] > before[3]


def two_streams() -> Clicks:
    return Clicks(tables=(0, 1), branches=(0, 1))


@in_process(run)
def test_wrong_numbers_of_streams_are_named() -> None:
    clicks = two_streams()
    field = "multi_stream_opts.multi_stream_num"
    for number in (0, 65):
        with fails(tf.errors.InvalidArgumentError, f"{field}={number} is not", "from 1 to 64"):
            clicks.trained(config(number))
    text = "graph_options { rewrite_options { use_multi_stream: 7 } }"
    with fails(tf.errors.InvalidArgumentError, "use_multi_stream=7 is not", "ON or OFF"):
        clicks.trained(text_format.Parse(text, tf.ConfigProto()))
    assert tf.cuda.stream_stats() == []  # nothing has been made
    three = clicks.trained(config(3))
    with fails(tf.errors.FailedPreconditionError, f"{field} is 4,", "has 3 stream groups"):
        clicks.trained(config(4))
    assert same(clicks.trained(config(2)), three)
    rewrite = tf.ConfigProto().graph_options.rewrite_options
    with fails(text_format.ParseError, "MultiStreamOptions", '"streams"'):
        text_format.Parse("multi_stream_opts { streams: 2 }", rewrite)


@in_process(run)
def test_streams_asked_for_after_the_gpu_is_made_are_an_error() -> None:
    """The error says what to do, and sessions that ask for fewer streams still run."""
    clicks = two_streams()
    expected = clicks.trained(None)
    with fails(
        tf.errors.FailedPreconditionError,
        "multi_stream_num is 2, and GPU 0 has 1 stream group in this process",
        "TF_GPU_STREAM_GROUP_COUNT=2",
    ):
        clicks.trained(config())
    for form in (config(1), None):
        assert same(clicks.trained(form), expected)


def asks_again(path: str) -> None:
    """Sessions that cannot be made, and then sessions that can."""
    clicks, file = Clicks(), Path(path)
    with fails(tf.errors.NotFoundError, path):
        clicks.trained(config(2))
    for group, streams, said in (
        ("2", 3, 'TF_GPU_STREAM_GROUP_PRIORITIES="0,0"'),
        ("2", 2, f'{path}:1: group "2"'),
    ):
        file.write_text(f"{group}: Tanh\n")
        with fails(tf.errors.InvalidArgumentError, said):
            clicks.trained(config(streams))
    assert tf.cuda.stream_stats() == []
    assert tf.cuda.stream_group_count() == 1
    file.write_text("1: Tanh\n")
    losses = clicks.trained(config(2))
    assert len(waits()) == 2 and waits()[0] > 0
    file.unlink()  # it has been read
    for streams in (1, 2):
        assert same(clicks.trained(config(streams)), losses)


def test_a_session_that_cannot_be_made_asks_for_nothing(tmp_path: Path) -> None:
    """A failed session's number of streams and faulty file do not affect the next session."""
    path = str(tmp_path / "groups.txt")
    run(asks_again, path, TF_GPU_STREAM_GROUP_PRIORITIES="0,0", TF_STREAM_FROM_FILE=path)


@in_process(run, TF_GPU_STREAM_GROUP_COUNT="2")
def test_calls_pinned_to_a_group_are_an_error_where_nodes_have_groups() -> None:
    clicks = two_streams()
    expected = clicks.trained(config(2))
    with tf.cuda.stream_group(1):
        with fails(tf.errors.InvalidArgumentError, "stream group 1", "nodes have groups"):
            clicks.trained(config(2))
        assert same(clicks.trained(None), expected)
    assert same(clicks.trained(config(2)), expected)


@in_process(run)
def test_variables_of_get_variable_are_on_the_gpu() -> None:
    """They go to the GPU, as on a machine with a GPU, with all ops colocated with them."""
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [2, 3])
        with tf.stream(1):
            w = tf.get_variable("w", [3, 4])
            y = tf.matmul(x, w)
        loss = tf.reduce_sum(tf.square(y))
        train = tf.train.AdamOptimizer().minimize(loss)
        with tf.device("/CPU:0"):
            on_cpu = tf.get_variable("on_cpu", [2])
        read = on_cpu + 1
        words = tf.get_variable("words", initializer=tf.constant(["a", "b"]))  # no GPU has these
        start = tf.global_variables_initializer()
    options = tf.RunOptions(output_partition_graphs=True)
    found = tf.RunMetadata()
    with tf.Session(graph=graph, config=config(2)) as session:
        session.run(start)
        session.run([loss, train, read, words], {x: np.ones([2, 3])}, options, found)
    nodes = [node for part in found.partition_graphs for node in part.node]
    devices = {node.name: node.device for node in nodes if node.device}
    for name in ("w", "w/Adam", "MatMul", "Adam/update_w/ApplyAdam"):
        assert "GPU:0" in devices[name], (name, devices)
    for name in ("on_cpu", "words"):
        assert "CPU:0" in devices[name], (name, devices)


@in_process(run)
def test_sessions_of_different_configs_train_in_threads() -> None:
    """Sessions of two and three streams, and one of none, train at the same time."""
    models = [two_streams(), Clicks(tables=(1, 2), branches=(1, 2)), two_streams()]
    forms = [config(2), config(3), None]
    with tf.Session(config=config(3)):
        pass  # the session that asks for most streams is first
    expected = Clicks().trained(config(1))

    def train(i: int) -> None:
        for _ in range(3):
            assert same(models[i].trained(forms[i]), expected)

    run_threads([functools.partial(train, i) for i in range(3)])
    assert all(count > 0 for count in waits())
    before = waits()
    models[0].trained(config(2))  # not one of the other's third
    assert waits()[2] == before[2] and waits()[1] > before[1]
    with fails(tf.errors.InvalidArgumentError, "stream group 2", "has 2"):
        models[1].trained(config(2))


def file_and_config() -> None:
    """The file moves a branch that the program has on stream 0, of a session with streams only."""
    clicks = Clicks()
    with clicks.graph.as_default():
        far = tf.negative(tf.random_normal([2]), name="far")
    expected = clicks.trained(config(3))
    used = waits()
    assert used[0] > 0 and used[1] > 0 and used[2] == 0
    assert same(clicks.trained(None), expected)
    assert waits() == used
    error = fails(tf.errors.InvalidArgumentError, "far}} (Neg)", "stream group 2")
    with tf.Session(graph=clicks.graph, config=config(2)) as session, error:
        session.run(far)
    with tf.Session(graph=clicks.graph, config=config(3)) as session:
        session.run(far)
    assert waits()[2] > 0


def test_stream_file_counts_for_sessions_with_streams(tmp_path: Path) -> None:
    """A session without streams has one; a group that a session lacks is an error."""
    path = tmp_path / "groups.txt"
    path.write_text("1: Tanh, MatMul  # of a branch\n2: far\n")
    log = run(file_and_config, TF_STREAM_FROM_FILE=str(path), TF_CPP_MIN_LOG_LEVEL="0")
    assert log.count(f"Stream groups from a file:\n{path}:1 group 1 regex 'Tanh'") == 1, log

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A ConfigProto's request for streams next to the environment's, and errors that name fields.

A test names a function of this file, a job, which runs in a process of its own, with one emulated
GPU and no variable that makes stream groups, unless the test sets one.
"""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from multistream.testing.deeprec import OFF, Plane, config, run, waits
from multistream.testing.kit import same

HERE = Path(__file__).resolve()


def line_of(text: str) -> int:
    """The number of the first line of this file that begins with a text."""
    lines = HERE.read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if line.lstrip().startswith(text))


@contextlib.contextmanager
def fails(kind: type[Exception], *texts: str) -> Iterator[None]:
    with pytest.raises(kind) as caught:
        yield
    for text in texts:
        assert text in str(caught.value), (text, str(caught.value))


def config_beats_environment() -> None:
    """Four groups for steps in the environment, two streams for nodes in the ConfigProto."""
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
    where = f'{HERE.name}", line {line_of("far = tf.tan")}'
    with fails(tf.errors.InvalidArgumentError, "far}} (Tan)", "stream group 3", "has 2", where):
        steps(config(2), far)
    steps(config(4), far)
    assert waits()[3] > before[3]


def test_a_config_beats_the_environment() -> None:
    """With fewer streams, the error names the op in none of them and where it was built."""
    run(config_beats_environment, TF_GPU_STREAM_GROUP_COUNT="4")


def wrong_numbers() -> None:
    """Numbers of streams that are not allowed, or missing."""
    plane = Plane()
    field = "multi_stream_opts.multi_stream_num"
    for number in (0, 65, -1):
        with fails(tf.errors.InvalidArgumentError, f"{field}={number} is not", "from 1 to 64"):
            plane.trained(config(number))
    assert tf.cuda.stream_stats() == []  # nothing has been made
    three = plane.trained(config(3), 5)
    for number in (4, 64):
        with fails(
            tf.errors.FailedPreconditionError, f"{field} is {number},", "has 3 stream groups"
        ):
            plane.trained(config(number))
    assert same(plane.trained(config(2), 5), three)
    rewrite = text_format.Parse(
        "use_multi_stream: 7", tf.ConfigProto().graph_options.rewrite_options
    )
    wrong = tf.ConfigProto()
    wrong.graph_options.rewrite_options.CopyFrom(rewrite)
    with fails(tf.errors.InvalidArgumentError, "use_multi_stream=7 is not", "ON or OFF"):
        plane.trained(wrong)
    with fails(text_format.ParseError, "MultiStreamOptions", '"streams"'):
        text_format.Parse("multi_stream_opts { streams: 2 }", rewrite)


def test_wrong_numbers_of_streams_are_named() -> None:
    run(wrong_numbers)


def asks_too_late() -> None:
    """An earlier session has already made the GPU's only group."""
    plane = Plane()
    expected = plane.trained(None, 5)
    with fails(
        tf.errors.FailedPreconditionError,
        "multi_stream_num is 2, and GPU 0 has 1 stream group in this process",
        "TF_GPU_STREAM_GROUP_COUNT=2",
    ):
        plane.trained(config())
    assert same(plane.trained(config(1), 5), expected)
    assert same(plane.trained(None, 5), expected)


def test_streams_asked_for_after_the_gpu_is_made_are_an_error() -> None:
    """The error says what to do, and sessions that ask for fewer streams still run."""
    run(asks_too_late)


def asks_again(path: str) -> None:
    """Sessions that cannot be made, and then sessions that can."""
    plane = Plane(scoped=False)
    with fails(tf.errors.InvalidArgumentError, 'TF_GPU_STREAM_GROUP_PRIORITIES="0,0"', "has 3"):
        Path(path).write_text("2: left\n")
        plane.trained(config(3))
    Path(path).unlink()
    with fails(tf.errors.NotFoundError, path):
        plane.trained(config(2))
    for group in ("2", "one"):
        Path(path).write_text(f"{group}: left\n")
        with fails(tf.errors.InvalidArgumentError, f'{path}:1: group "{group}"'):
            plane.trained(config(2))
    assert tf.cuda.stream_stats() == []
    assert tf.cuda.stream_group_count() == 1
    Path(path).write_text("1: left\n")
    losses = plane.trained(config(2))
    assert len(waits()) == 2 and waits()[0] > 0
    Path(path).unlink()  # it has been read
    assert same(plane.trained(config(1)), losses)
    assert same(plane.trained(config(2)), losses)


def test_a_session_that_cannot_be_made_asks_for_nothing(tmp_path: Path) -> None:
    """A failed session's number of streams and faulty file do not affect the next session."""
    run(
        asks_again,
        str(tmp_path / "groups.txt"),
        TF_GPU_STREAM_GROUP_PRIORITIES="0,0",
        TF_STREAM_FROM_FILE=str(tmp_path / "groups.txt"),
    )


def pinned_call() -> None:
    """A thread on one group, and a session whose nodes have groups."""
    plane = Plane()
    expected = plane.trained(config(2))
    with tf.cuda.stream_group(1):
        with fails(tf.errors.InvalidArgumentError, "stream group 1", "nodes have groups"):
            plane.trained(config(2))
        assert same(plane.trained(None), expected)
    assert same(plane.trained(config(2)), expected)


def test_calls_pinned_to_a_group_are_an_error_where_nodes_have_groups() -> None:
    """Other sessions run there."""
    run(pinned_call, TF_GPU_STREAM_GROUP_COUNT="2")


def variables_by_name() -> None:
    """Variables of get_variable and what is colocated with them."""
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
    devices = {
        node.name: node.device
        for part in found.partition_graphs
        for node in part.node
        if node.device
    }
    for name in ("w", "w/Adam", "MatMul", "Adam/update_w/ApplyAdam"):
        assert "GPU:0" in devices[name], (name, devices)
    for name in ("on_cpu", "words"):
        assert "CPU:0" in devices[name], (name, devices)


def test_variables_of_get_variable_are_on_the_gpu() -> None:
    """They go to the GPU, as on a machine with a GPU, with all ops colocated with them."""
    run(variables_by_name)


def two_threads() -> None:
    """Sessions of two and three streams, and one of none, train at the same time."""
    planes = [Plane(0), Plane(1), Plane(0)]
    forms = [config(2), config(3), None]
    with tf.Session(config=config(3)):
        pass  # the session that asks for most streams is first
    expected = Plane(scoped=False).trained(config(1))
    results: list[Any] = [None] * 3

    def train(i: int) -> None:
        results[i] = [planes[i].trained(forms[i]) for _ in range(3)]

    threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in results:
        assert found is not None
        assert all(same(one, expected) for one in found)
    assert all(count > 0 for count in waits())
    before = waits()
    planes[0].trained(config(2))  # not one of the other's third
    assert waits()[2] == before[2] and waits()[1] > before[1]
    with fails(tf.errors.InvalidArgumentError, "stream group 2", "has 2"):
        planes[1].trained(config(2))


def test_sessions_of_different_configs_train_in_threads() -> None:
    run(two_threads)


def file_and_config() -> None:
    """The file moves a branch that the program has on stream 0, of a session with streams only."""
    plane = Plane(scoped=False)
    expected = plane.trained(config(3))
    used = waits()
    assert used[0] > 0 and used[1] > 0 and used[2] == 0
    assert same(plane.trained(None), expected)
    assert waits() == used
    with plane.graph.as_default():
        tf.negative(plane.wx.initialized_value(), name="far")
    for form in (config(2), config(3)):
        with tf.Session(graph=plane.graph, config=form) as session:
            session.run(plane.start)
            if form.graph_options.rewrite_options.multi_stream_opts.multi_stream_num == 2:
                with fails(tf.errors.InvalidArgumentError, "far}} (Neg)", "stream group 2"):
                    session.run("far:0")
            else:
                session.run("far:0")
    assert waits()[2] > 0


def test_stream_file_counts_for_sessions_with_streams(tmp_path: Path) -> None:
    """A session without streams has one; a group that a session lacks is an error."""
    path = tmp_path / "groups.txt"
    path.write_text("1: left, MatMul  # of x\n2: far\n")
    run(file_and_config, TF_STREAM_FROM_FILE=str(path))

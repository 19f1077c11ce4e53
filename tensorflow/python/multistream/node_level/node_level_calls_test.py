# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Side effects of functions work on stream groups: text, Python, errors, integers.

What is built without scopes runs on group 0, in the stock order, and is the reference.
"""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation

from multistream.testing import kit

tf1 = tf.compat.v1


def integers_of_a_call() -> None:
    """A function that is not inlined returns an integer, which TensorFlow keeps on the host."""

    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def inner(x: Any) -> Any:
        with tf.device(kit.GPU):
            return x + 1, tf.cast(x, tf.float32)

    @tf.function(autograph=False)
    def outer(x: Any) -> Any:
        with tf.device(kit.GPU):
            with kit.on(1):
                n, _ = inner(x)
            with kit.on(2):
                return n * 3, tf.cast(n, tf.float32)

    for i in range(5):
        assert [x.numpy() for x in outer(tf.constant(i))] == [3 * (i + 1), i + 1.0]


def side_effects(folder: str) -> None:
    """Summaries, Python functions and printing."""
    inputs = [np.random.RandomState(i).randn(6, 5).astype(np.float32) for i in range(5)]
    seen: list[Any] = []

    def host(x: Any) -> Any:
        seen.append(np.array(x))
        return np.float32(2.0) * np.asarray(x)

    with tf.device(kit.GPU):
        total = tf.Variable(tf.zeros([6, 5]))
    writer = tf.summary.create_file_writer(folder)
    text = f"{folder}/printed.txt"

    @tf.function
    def step(x: Any, i: Any) -> Any:
        with tf.device(kit.GPU):
            with kit.on(1):
                a = tf.tanh(x)
                b = tf.numpy_function(host, [a], tf.float32)
                b = tf.ensure_shape(b, [6, 5])
            with kit.on(2):
                c = tf.py_function(lambda x: tf.sin(x) + host(x), [a], tf.float32)
                c = tf.ensure_shape(c, [6, 5])
                with writer.as_default():
                    tf.summary.write("sum", tf.reduce_sum(b), step=i)
            with kit.on(3):
                tf.print("sum of b:", tf.reduce_sum(b), output_stream=f"file://{text}")
                total.assign_add(b + c)
                tf.debugging.assert_less(tf.abs(b), 2.5)
            return b, c

    expected_total = np.zeros([6, 5], np.float32)
    sums = []
    for i, x in enumerate(inputs):
        b, c = step(tf.constant(x), tf.constant(i, tf.int64))
        tanh = tf.tanh(x).numpy()
        assert kit.same([b.numpy()], [tanh * np.float32(2.0)])
        assert np.allclose(c.numpy(), np.sin(tanh) + 2.0 * tanh, atol=1e-6)
        expected_total += b.numpy() + c.numpy()
        sums.append(float(tf.reduce_sum(b)))
    assert np.allclose(total.numpy(), expected_total, atol=1e-5)
    assert len(seen) == 2 * len(inputs)
    writer.flush()
    events = [
        (event.step, float(tf.make_ndarray(value.tensor)))
        for file in Path(folder).glob("events*")
        for event in tf1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]
    assert [s for s, _ in events] == list(range(len(inputs)))
    assert np.allclose([v for _, v in events], sums, rtol=1e-5)
    printed = Path(text).read_text(encoding="utf-8").splitlines()
    assert np.allclose([float(line.split(":")[1]) for line in printed], sums, rtol=1e-4, atol=1e-5)


def failing_branches() -> None:
    """Errors in branches come out, and the next call works."""

    @tf.function
    def step(x: Any, index: Any, limit: Any) -> Any:
        with tf.device(kit.GPU):
            with kit.on(1):
                a = tf.gather(tf.tanh(x), index)
            with kit.on(2):
                checked = tf.debugging.assert_less(tf.reduce_max(x), limit)
            with kit.on(2), tf.control_dependencies([checked]):
                b = tf.sin(x)
            with kit.on(3):
                c = tf.debugging.check_numerics(tf.cos(x), "not a number")
                for _ in tf.range(3):
                    c = c * 0.5 + tf.reduce_sum(a)
            return tf.reduce_sum(a) + tf.reduce_sum(b * c)

    x = kit.matrix()
    bad = x.copy()
    bad[3, 3] = np.nan

    def call(x: Any, index: int, limit: float) -> Any:
        return step(tf.constant(x), tf.constant([0, index]), tf.constant(limit)).numpy()

    expected = call(x, 5, 100.0)
    for _ in range(20):
        # A GPU gathers zeros instead of index 64.
        for wrong in [(x, 5, 0.0), (bad, 5, 100.0), *([] if kit.ON_GPU else [(x, 64, 100.0)])]:
            with pytest.raises(tf.errors.InvalidArgumentError):
                call(*wrong)
            assert call(x, 5, 100.0) == expected
    assert sum(s.steps_failed for s in tf.cuda.stream_stats()) == (40 if kit.ON_GPU else 60)


def cancelled_calls() -> None:
    """After a cancelled function and a session run that timed out, later calls work."""

    @tf.function
    def long(x: Any, count: Any) -> Any:
        with tf.device(kit.GPU):
            i = tf.constant(0, tf.int64)
            while i < count:
                with kit.on(1):
                    a = tf.tanh(x)
                with kit.on(2):
                    x = a * tf.sin(x)
                i += 1
            return x

    x = tf.constant(kit.matrix())
    short = tf.constant(3, tf.int64)
    endless = tf.constant(1 << 60, tf.int64)
    expected = long(x, short).numpy()
    concrete = long.get_concrete_function(x, endless)
    for _ in range(3):
        manager = cancellation.CancellationManager()
        cancelable = manager.get_cancelable_function(concrete)
        thread = threading.Timer(0.2, manager.start_cancel)
        thread.start()
        with pytest.raises(tf.errors.CancelledError):
            cancelable(x, endless)
        thread.join()
        assert kit.same([long(x, short).numpy()], [expected])

    with tf.Graph().as_default() as graph, tf.device(kit.GPU):
        count = tf1.placeholder(tf.int64, [])

        def body(i: Any, x: Any) -> Any:
            with kit.on(1):
                a = tf.tanh(x)
            with kit.on(2):
                return i + 1, a * tf.sin(x)

        start = [tf.constant(0, tf.int64), tf.constant(kit.matrix())]
        out = tf.while_loop(lambda i, x: i < count, body, start)[1]
    with tf1.Session(graph=graph) as session:
        options = tf1.RunOptions(timeout_in_ms=200)
        for _ in range(3):
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(out, {count: 1 << 60}, options=options)
            assert kit.eventually(lambda: not any(s.steps_running for s in tf.cuda.stream_stats()))
            assert kit.same([session.run(out, {count: 3})], [expected])


def side_effects_and_errors(folder: str) -> None:
    integers_of_a_call()
    side_effects(f"{folder}/side_effects")
    failing_branches()
    cancelled_calls()
    assert kit.groups_used() == set(range(kit.GROUPS))


@pytest.mark.parametrize("reduce_waits", ["true", "false"])
def test_side_effects_and_errors_of_functions(tmp_path: Path, reduce_waits: str) -> None:
    kit.run_job(
        side_effects_and_errors,
        str(tmp_path),
        TF_REDUCE_STREAM_WAIT=reduce_waits,
        TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION=reduce_waits,
    )

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.stream_group` puts a thread's calls, and no others, on a group."""

import textwrap
from typing import Any

import pytest
import tensorflow as tf

from multistream.testing import kit

HELPERS = """
def started():
    return [s.steps_started for s in tf.cuda.stream_stats()]

def groups_of(call, times=5):
    '''The groups on which calls ran, each with how many.'''
    call()  # traces
    before = started() or [0] * tf.cuda.stream_group_count()
    for _ in range(times): call()
    ran = [now - then for now, then in zip(started(), before)]
    return {i: n for i, n in enumerate(ran) if n}

def is_pinned(call, group, times=5):
    ran = groups_of(call, times)
    check(ran == {group: times}, f"{ran}, not all on {group}")

def is_not_pinned(call):
    check(len(groups_of(call, 8)) == 4, "any group")

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
call = lambda: f(x)

@tf.function
def f(x):
    with tf.device(GPU):
        return tf.linalg.matmul(tf.tanh(x), x)
"""


def run(code: str, **environment: str) -> None:
    kit.run_checks(HELPERS + textwrap.dedent(code), groups=4, **environment)


def test_calls_run_on_the_group() -> None:
    """Functions, sessions and Keras run on the group; later calls run on any group again."""
    run("""
        given = x.numpy()
        expected = f(x).numpy()
        for i in range(4):
            with tf.cuda.stream_group(i):
                is_pinned(call, i)
                check((f(x).numpy() == expected).all(), "result")
        is_not_pinned(call)

        with tf.Graph().as_default(), tf.device(GPU):
            y = tf.tanh(tf1.placeholder(tf.float32, [2, 2], "p"))
            with tf1.Session() as session, tf.cuda.stream_group(2):
                is_pinned(lambda: session.run(y, {"p:0": given}), 2)

        with tf.device(GPU):
            model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(3)])
            model.compile(jit_compile=False)
        with tf.cuda.stream_group(3):
            ran = groups_of(lambda: model.predict(given, verbose=0), 2)
        check(ran.get(3, 0) >= 2 and not {1, 2} & set(ran), f"Keras {ran}")
    """)


def test_calls_run_on_the_least_loaded_group_of_a_range() -> None:
    run("""
        for groups in range(1, 3), range(4), range(3, 4):
            with tf.cuda.stream_group(groups):
                ran = groups_of(call, 12)
            check(ran == {i: 12 // len(groups) for i in groups}, f"{ran} of {groups}")
        is_not_pinned(call)
        beyond = lambda: tf.cuda.stream_group(range(3, 5))
        fails(ValueError, beyond, "no stream group 4", "range(3, 5)")
    """)


def test_groups_with_sms_of_their_own_are_for_calls_that_name_them() -> None:
    run(
        """
        check(set(groups_of(call, 8)) == {0, 3}, "calls that name no group")
        with tf.cuda.stream_group(range(1, 3)):
            check(set(groups_of(call, 8)) == {1, 2}, "calls that name groups")
        with tf.cuda.stream_group(range(4)):
            check(len(groups_of(call, 8)) == 4, "calls that name all groups")
        with tf.cuda.stream_group(1), tf.cuda.stream_group(None):
            check(set(groups_of(call, 8)) == {0, 3}, "None")
        """,
        TF_GPU_STREAM_GROUP_SMS="1-2:16",
    )


def test_sms_of_groups_that_there_are_not_end_the_first_session() -> None:
    says = "TF_GPU_STREAM_GROUP_SMS gives SMs to stream group 4, and a GPU has the groups 0 to 3"
    with pytest.raises(AssertionError, match=says):
        run("f(x)", TF_GPU_STREAM_GROUP_SMS="1:8,2-4:16")


def test_innermost_counts() -> None:
    """Contexts nest: None in between, as a decorator, after an error, one object twice."""
    run("""
        group = tf.cuda.stream_group(1)
        with group:
            is_pinned(call, 1)
            with tf.cuda.stream_group(2), group, tf.cuda.stream_group(3):
                is_pinned(call, 3)
            is_pinned(call, 1)
            with tf.cuda.stream_group(None):
                is_not_pinned(call)
            with group:
                is_pinned(call, 1)
        is_pinned(tf.cuda.stream_group(2)(call), 2)
        try:
            with group:
                raise KeyError
        except KeyError:
            pass
        is_not_pinned(call)
    """)


def test_threads_are_apart() -> None:
    """Tenants: each thread's calls stay on its group, whatever the others do."""
    run("""
        f(x)
        before = started()
        group = tf.cuda.stream_group(3)  # one object for all its threads

        def tenant(i):
            def calls():
                for _ in range(STEPS):
                    with group if i == 3 else tf.cuda.stream_group(i):
                        f(x)
            return calls

        run_threads([tenant(i) for i in (1, 1, 2, 3, 3, 3)])
        ran = [now - then for now, then in zip(started(), before)]
        check(ran == [0, 2 * STEPS, STEPS, 3 * STEPS], f"tenants {ran}")
    """)


def test_calls_that_calls_make_follow() -> None:
    """Calls that a function's CPU part makes, on TensorFlow's threads, follow as well."""
    run("""
        inner = tf.function(f.python_function, experimental_attributes={"_noinline": True})

        @tf.function
        def outer(x):
            with tf.device("/CPU:0"):
                x = tf.reverse(x, [0])
            return tf.reduce_sum(inner(x) + inner(x + 1))

        @tf.function
        def looping(x):
            return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, inner(x)), [0, x])[1]

        for call in outer, looping:
            with tf.cuda.stream_group(2):
                ran = groups_of(lambda: call(x))
            check(set(ran) == {2}, f"{call} {ran}")
    """)


def test_changes_of_variables_stay_on_the_leader() -> None:
    run("""
        with tf.device(GPU):
            v = tf.Variable(tf.zeros([SIZE]))

        @tf.function
        def add():
            v.assign_add(tf.ones([SIZE]))

        with tf.cuda.stream_group(2):
            is_pinned(add, 0)
            check((v.numpy() == 6).all(), "value")
            is_pinned(tf.function(lambda: v + 1), 2)
    """)


def test_copies_to_the_gpu_wait_for_no_change() -> None:
    """The next batch is copied during training; a call with a variable or tensor waits."""
    run("""
        with tf.device(GPU):
            v = tf.Variable(tf.zeros([SIZE]))
            on_gpu = tf.ones([SIZE])
        with tf.device("/CPU:0"):
            batch = tf.random.uniform([SIZE])

        @tf.function
        def copy(batch):
            with tf.device(GPU):
                return tf.identity(batch)

        def waits_of(call):
            call()  # traces
            before = tf.cuda.stream_stats()[2].waits
            for _ in range(5):
                v.assign_add(on_gpu)
                with tf.cuda.stream_group(2):
                    result = call()
                check((result.numpy() == expected()).all(), "result")
            return tf.cuda.stream_stats()[2].waits - before

        expected = batch.numpy
        check(waits_of(lambda: copy(batch)) == 0, "copy")
        expected = lambda: 2
        check(waits_of(lambda: tf.function(lambda x: 2 * x)(on_gpu)) >= 5, "argument")
        expected = lambda: v.numpy() + 1
        check(waits_of(lambda: tf.function(lambda: v + 1)()) >= 5, "variable")
    """)


def test_a_gpu_without_the_group_ends_the_call() -> None:
    """The error names the group and the GPU; later calls work."""
    run(
        """
        @tf.function
        def second(x):
            with tf.device("/GPU:1"):
                return tf.tanh(x)

        with tf.cuda.stream_group(3):
            says = "stream group 3", "GPU:1 has 2"
            fails(tf.errors.InvalidArgumentError, lambda: second(x), *says)
            f(x)
        with tf.cuda.stream_group(1):
            check(np.allclose(second(x), np.tanh(x)), "second GPU")
        """,
        TF_MULTI_STREAM_EMULATED_GPUS="2",
        TF_GPU_STREAM_GROUP_COUNT="4,2",
    )


def test_where_it_would_have_no_effect_is_an_error() -> None:
    run("""
        enter = lambda: tf.cuda.stream_group(1).__enter__()
        fails(RuntimeError, lambda: tf.function(enter)(), "while a function is traced")
        tf.config.experimental.set_synchronous_execution(False)
        fails(RuntimeError, enter, "set_synchronous_execution")
        tf.config.experimental.set_synchronous_execution(True)
        is_not_pinned(call)
    """)


def test_what_runs_after_its_call_is_an_error() -> None:
    run("""
        async def later():
            pass

        def generates():
            yield

        async def generates_later():
            yield

        for function in later, generates, generates_later:
            fails(TypeError, lambda: tf.cuda.stream_group(1)(function), "after its call")
        pinned = tf.cuda.stream_group(1)(lambda: f(x))
        is_pinned(pinned, 1)
        """)


def test_node_level_is_an_error() -> None:
    with pytest.raises(AssertionError, match="RuntimeError: .*TF_NODE_LEVEL_MULTISTREAM"):
        run("tf.cuda.stream_group(1).__enter__()", TF_NODE_LEVEL_MULTISTREAM="true")


@pytest.mark.parametrize(
    ("group", "error", "says"),
    [
        (-1, ValueError, "from 0 to 63"),
        (64, ValueError, "from 0 to 63"),
        (True, TypeError, "must be an int"),
        (1.0, TypeError, "must be an int"),
        ((1, 2), TypeError, "must be an int, a range or None"),
        (range(0), ValueError, "must have a group"),
        (range(0, 4, 2), ValueError, "no gaps"),
        (range(60, 65), ValueError, "from 0 to 63"),
    ],
)
def test_bad_groups(group: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        tf.cuda.stream_group(group)


def test_without_multi_stream_it_has_no_effect() -> None:
    with tf.cuda.stream_group(5), tf.cuda.stream_group(None):
        assert tf.function(lambda: tf.constant(1.0) + 1)().numpy() == 2

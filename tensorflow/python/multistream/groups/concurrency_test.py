# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Concurrent steps on stream groups give what one stream gives."""

import pytest

from multistream.testing import kit


def test_variable_is_never_seen_half_changed() -> None:
    """Readers on all groups see a variable before or after a change, also one in place."""
    kit.run_checks("""
        with tf.device(GPU):
            v = tf.Variable(tf.zeros([SIZE]))
            table = tf.Variable(tf.zeros([SIZE // 16, 16]))

        @tf.function
        def read():
            with tf.device(GPU):
                a = v.read_value()
                b = a
                for _ in range(6):
                    b = tf.tanh(b) * 0.5
                rows = tf.gather(table, tf.range(0, SIZE // 16, 3))
                return tf.stack([
                    tf.reduce_max(a) - tf.reduce_min(a),
                    tf.reduce_max(rows) - tf.reduce_min(rows),
                    tf.reduce_max(b) - tf.reduce_min(b)])

        @tf.function
        def increment():
            with tf.device(GPU):
                v.assign_add(tf.ones([SIZE]))
                table.assign_add(tf.ones([SIZE // 16, 16]))

        @tf.function
        def replace(x):
            with tf.device(GPU):
                v.assign(tf.fill([SIZE], x))
                table.assign(tf.fill([SIZE // 16, 16], x))

        @tf.function
        def scatter(x):
            with tf.device(GPU):
                table.scatter_nd_update(
                    tf.range(SIZE // 16)[:, None], tf.fill([SIZE // 16, 16], x))

        def reader():
            for _ in range(STEPS):
                check(not read().numpy().any(), "read")

        def writer():
            for i in range(STEPS):
                increment()
                if i % 7 == 0: replace(tf.constant(float(i)))
                if i % 5 == 0: v.assign_add(tf.ones([SIZE]))
                if i % 3 == 0: scatter(tf.constant(float(-i)))
                if i % 11 == 0: v.assign(read()[0] * tf.ones([SIZE]))

        run_threads([reader] * THREADS + [writer])
        stats = tf.cuda.stream_stats()
        assert all(s.steps_started > 0 for s in stats), stats
        # Of so many launches one has waited for more than a microsecond.
        assert any(0 < s.longest_launch_wait_micros < 1e9 for s in stats), stats
        assert eventually(lambda: not any(s.steps_waiting for s in tf.cuda.stream_stats()))
    """)


@pytest.mark.parametrize(("capture", "verify"), [("off", "0"), ("auto", "0"), ("inference", "1")])
def test_variable_that_compiled_functions_change_and_read(capture: str, verify: str) -> None:
    """XLA changes a variable in place while kernels of other groups still have to read it.

    A replay is verified if no change of the variable was counted meanwhile.
    """
    kit.run_checks(
        """
        with tf.device(GPU):
            v = tf.Variable(tf.zeros([SIZE]))
            w = tf.Variable(tf.eye(4096 if kit.ON_GPU else 64))  # milliseconds on a GPU

        def late(first):  # too small to change a sum
            product = w
            for _ in range(10):
                product = tf.matmul(product, w)
            return 1e-30 * (first + product[0, 1])

        def spread(x):
            first = tf.reduce_max(x)
            again = x + late(first)
            return tf.reduce_max(again) - tf.minimum(first, tf.reduce_min(again))

        compiled_spread = tf.function(lambda: spread(v + 0.0), jit_compile=True)
        compiled_add = tf.function(lambda x: v.assign_add(x), jit_compile=True)

        @tf.function
        def read():
            with tf.device(GPU):
                return spread(v.read_value())

        @tf.function
        def read_compiled():
            with tf.device(GPU):
                return compiled_spread()

        @tf.function
        def increment():
            with tf.device(GPU):
                compiled_add(tf.ones([SIZE]) + late(0.0))

        def reader():
            for _ in range(STEPS):
                check(not read().numpy().any(), "read")
                check(not read_compiled().numpy().any(), "compiled read")

        def writer():
            for i in range(STEPS):
                increment()
                if i % 7 == 0: v.assign(tf.fill([SIZE], float(i)))
                if i % 5 == 0: v.assign_add(tf.ones([SIZE]))

        run_threads([reader] * THREADS + [writer])
    """,
        TF_MULTI_STREAM_CAPTURE=capture,
        TF_MULTI_STREAM_CAPTURE_VERIFY=verify,
    )


def test_sessions_with_reference_variables() -> None:
    kit.run_checks("""
        graph = tf.Graph()
        with graph.as_default(), tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None, 64])
            w = tf.constant(np.random.RandomState(0).randn(64, 64).astype(np.float32))
            h = x
            for _ in range(10):
                h = tf.tanh(tf.matmul(h, w) * 0.1)
            v = tf1.get_variable(
                "v", [SIZE], initializer=tf1.zeros_initializer(), use_resource=False)
            once = -v  # one kernel reads all of it
            spread = tf.reduce_max(once) - tf.reduce_min(once)
            add = tf1.assign_add(v, tf.ones([SIZE])).op
            zero = tf1.assign(v, tf.zeros([SIZE])).op
            init = tf1.global_variables_initializer()
        session = tf1.Session(graph=graph, config=tf1.ConfigProto(allow_soft_placement=True))
        session.run(init)

        def call(a):
            out, s = session.run([h, spread], {x: a})
            check(s == 0, "spread")
            return out

        def writer():
            for i in range(STEPS):
                session.run(add)
                if i % 9 == 0: session.run(zero)

        check_calls(call, writer)
    """)


def test_loops_and_branches_that_are_ops() -> None:
    """Functions that an op calls. With int32 arguments TensorFlow crashes on a GPU."""
    kit.run_checks("""
        number, rows = tf.TensorSpec([], tf.int64), tf.TensorSpec([None, 64], tf.float32)
        concrete = lambda function, *specs: tf.function(function).get_concrete_function(*specs)
        goes_on = concrete(lambda i, n, y: i < n, number, number, rows)
        goes = concrete(lambda i, n, y: (i + 1, n, tf.tanh(y) * tf.cast(i, tf.float32)),
                        number, number, rows)
        adds = concrete(lambda y, i: (y + 1.0, i + 1), rows, number)
        scales = concrete(lambda y, i: (y * 2.0, i), rows, number)

        @tf.function(input_signature=[rows])
        def step(x):
            with tf.device(GPU):
                i, _, y = tf.raw_ops.StatelessWhile(
                    input=[tf.constant(1, tf.int64), tf.constant(4, tf.int64), x * 2.0],
                    cond=goes_on, body=goes)
                z, j = tf.raw_ops.StatelessIf(
                    cond=tf.reduce_sum(y) > 0.0, input=[y, i], Tout=[tf.float32, tf.int64],
                    then_branch=adds, else_branch=scales)
                return z * tf.cast(i + j, tf.float32)

        def call(a):
            with tf.device(GPU):
                return step(tf.constant(a)).numpy()

        check_calls(call)
    """)


def test_results_kept_in_variables_and_lists() -> None:
    """A result that an assignment or a list of tensors keeps survives its group's later steps."""
    kit.run_checks("""
        @tf.function
        def make(x):
            with tf.device(GPU):
                return tf.fill([SIZE], x) * 1.0

        @tf.function
        def stack_in_function(handle):
            with tf.device(GPU):
                return stack(handle)

        def stack(handle):
            return tf.raw_ops.TensorListStack(
                input_handle=handle, element_shape=[SIZE], element_dtype=tf.float32)

        def filled(value):
            handle = tf.raw_ops.EmptyTensorList(
                element_shape=[SIZE], max_num_elements=-1, element_dtype=tf.float32)
            for part in (0.5, 0.25):
                handle = tf.raw_ops.TensorListPushBack(
                    input_handle=handle, tensor=make(tf.constant(value + part)))
            return handle

        def client(k):
            with tf.device(GPU):
                kept = tf.Variable(tf.zeros([SIZE]))
            for i in range(STEPS // 2):
                value = float(k * 1000 + i)
                expected = np.array([[value + 0.5], [value + 0.25]], np.float32)
                with tf.device(GPU):
                    kept.assign(make(tf.constant(value)))
                    eager = stack(filled(value))
                    traced = stack_in_function(filled(value))
                for _ in range(2): make(tf.constant(-1.0))
                check((kept.numpy() == value).all(), "variable")
                check((eager.numpy() == expected).all(), "eager")
                check((traced.numpy() == expected).all(), "function")

        run_clients(client)
    """)


def test_session_closed_with_steps_in_flight() -> None:
    kit.run_checks("""
        graph = tf.Graph()
        with graph.as_default(), tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None, 64])
            h = x
            for _ in range(50):
                h = tf.tanh(tf.matmul(h, tf.ones([64, 64])) * 0.01)
        for _ in range(4):
            session = tf1.Session(graph=graph)
            session.run(h, {x: batches()[0]})

            def client():
                try:
                    for _ in range(200):
                        out = session.run(h, {x: batches()[0]})
                        check(np.isfinite(out).all(), "finite")
                except (tf.errors.CancelledError, tf.errors.FailedPreconditionError, RuntimeError):
                    pass

            closer = lambda: (time.sleep(0.05), session.close())
            run_threads([client] * THREADS + [closer])
    """)


@pytest.mark.parametrize("node_level", ["false", "true"])
def test_a_function_of_a_sessions_graph(node_level: str) -> None:
    """It is an op of the graph, if it is not inlined."""
    kit.run_checks(
        """
        from tensorflow.python.framework import function

        @function.Defun(tf.float32, tf.int32, noinline=True)
        def scaled(x, n):
            return tf.tanh(x) * tf.cast(n, tf.float32), n + 1

        x = np.arange(8, dtype=np.float32)
        with tf.Graph().as_default():
            fed, count = tf1.placeholder(tf.float32, [8]), tf1.placeholder(tf.int32, [])
            with tf.device(GPU):
                results = scaled(fed, count)
            with tf1.Session() as session:
                for n in range(6):
                    y, more = session.run(results, {fed: x, count: n})
                    check(np.allclose(y, np.tanh(x) * n) and more == n + 1, f"{n}: {y} {more}")
        """,
        TF_NODE_LEVEL_MULTISTREAM=node_level,
    )

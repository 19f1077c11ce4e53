# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Concurrent steps on stream groups give what one stream gives.

Each test runs in a process of its own, between the kit's PROLOGUE and EPILOGUE.
"""

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


def test_sessions_with_reference_variables() -> None:
    """session.run from many threads, while another thread changes a reference variable."""
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
        inputs = batches()
        expected = [session.run(h, {x: a}) for a in inputs]

        def client(k):
            for i in range(STEPS):
                j = (k + i) % len(inputs)
                out, s = session.run([h, spread], {x: inputs[j]})
                check(np.array_equal(out, expected[j]), "output")
                check(s == 0, "spread")

        def writer():
            for i in range(STEPS):
                session.run(add)
                if i % 9 == 0: session.run(zero)

        run_threads([lambda k=k: client(k) for k in range(THREADS)] + [writer])
    """)


def test_results_go_on_to_eager_ops_functions_and_control_flow() -> None:
    """A function's result stays right in eager ops, other functions, loops, branches and maps."""
    kit.run_checks("""
        @tf.function
        def first(a):
            with tf.device(GPU):
                return tf.matmul(a, a, transpose_b=True), tf.nn.softmax(a)

        @tf.function
        def inner(a):
            with tf.device(GPU):
                return tf.tanh(a) + 1.0

        @tf.function
        def second(a, b):
            with tf.device(GPU):
                c = inner(b)
                c = tf.while_loop(
                    lambda i, c: i < 5, lambda i, c: (i + 1, inner(c) * 0.5),
                    [tf.constant(0), c])[1]
                d = tf.map_fn(lambda r: tf.reduce_sum(r * r), c)
                e = tf.cond(tf.reduce_sum(a) > 0, lambda: a * 2.0, lambda: a * 3.0)
                return tf.reduce_sum(e) + tf.reduce_sum(d), c

        def chain(a):
            with tf.device(GPU):
                p, q = first(tf.constant(a))
                p = p * 0.5 + 1.0
                z, c = second(p, q)
                return tf.concat([tf.reshape(z, [1]), tf.reshape(c, [-1])], 0).numpy()

        inputs = batches()
        expected = [chain(a) for a in inputs]

        def client(k):
            for i in range(max(1, STEPS // 4)):
                j = (k + i) % len(inputs)
                check(np.array_equal(chain(inputs[j]), expected[j]), "chain")

        run_threads([lambda k=k: client(k) for k in range(THREADS)])
    """)


def test_results_kept_in_variables_and_containers() -> None:
    """A result that an eager assignment or a TensorArray keeps survives its group's later steps."""
    kit.run_checks("""
        @tf.function
        def make(x):
            with tf.device(GPU):
                return tf.fill([SIZE], x) * 1.0

        def client(k):
            with tf.device(GPU):
                kept = tf.Variable(tf.zeros([SIZE]))
            for i in range(STEPS):
                value = float(k * 1000 + i)
                with tf.device(GPU):
                    kept.assign(make(tf.constant(value)))
                    array = tf.TensorArray(tf.float32, 2).write(0, make(tf.constant(value + 0.5)))
                    array = array.write(1, make(tf.constant(value + 0.25)))
                for _ in range(2): make(tf.constant(-1.0))
                check((kept.numpy() == value).all(), "variable")
                check((array.stack().numpy() == np.array(
                    [[value + 0.5], [value + 0.25]], np.float32)).all(), "array")

        run_threads([lambda k=k: client(k) for k in range(THREADS)])
    """)


def test_results_in_lists() -> None:
    """Results in a list of tensors survive their group's later steps, in functions and out."""
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
            for i in range(STEPS // 2):
                value = float(k * 1000 + i)
                expected = np.array([[value + 0.5], [value + 0.25]], np.float32)
                with tf.device(GPU):
                    eager = stack(filled(value))
                    traced = stack_in_function(filled(value))
                for _ in range(2): make(tf.constant(-1.0))
                check((eager.numpy() == expected).all(), "eager")
                check((traced.numpy() == expected).all(), "function")

        run_threads([lambda k=k: client(k) for k in range(THREADS)])
    """)


def test_errors_release_the_group() -> None:
    """A step that fails leaves its group usable, and is counted."""
    kit.run_checks("""
        @tf.function
        def divide(a, k):
            with tf.device(GPU):
                y = tf.matmul(a, a, transpose_b=True)
                return tf.reduce_sum(tf.debugging.check_numerics(y / k, "not a number"))

        inputs = [tf.constant(a) for a in batches()]
        expected = [float(divide(a, 2.0)) for a in inputs]

        def client(k):
            for i in range(STEPS):
                j = (k + i) % len(inputs)
                fails = i % 3 == 0
                try:
                    check(float(divide(inputs[j], 0.0 if fails else 2.0)) == expected[j]
                          and not fails, "result")
                except tf.errors.InvalidArgumentError:
                    check(fails, "error")

        run_threads([lambda k=k: client(k) for k in range(THREADS)])
        assert sum(s.steps_failed for s in tf.cuda.stream_stats()) > 0
    """)


def test_session_closed_with_steps_in_flight() -> None:
    """Closing a session cancels its steps and frees its groups."""
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


def test_keras_predict_and_fit() -> None:
    """A Keras model trains and predicts with groups on as with one."""
    code = """
        import keras
        keras.utils.set_random_seed(1)
        data = np.random.RandomState(0).randn(256, 16).astype(np.float32)
        with tf.device(GPU):
            model = keras.Sequential([keras.Input([16]), keras.layers.Dense(32, activation="relu"),
                                      keras.layers.Dense(4)])
        optimizer = keras.optimizers.SGD()
        optimizer.jit_compile = False  # Keras 2 has XLA compile it, and an emulated GPU is a CPU
        model.compile(optimizer, "mse", jit_compile=False)
        model.fit(data, data[:, :4], epochs=2, batch_size=32, verbose=0, shuffle=False)
        expected = model(data).numpy()

        def client():
            for _ in range(3):
                out = model.predict(data, batch_size=256, verbose=0)
                check(np.allclose(out, expected, rtol=1e-5, atol=1e-6), "predict")
        run_threads([client] * 3)
        print("sum", repr(float(expected.astype(np.float64).sum())))
    """
    sums = [
        float(line.split()[1])
        for n in (4, 1)
        for line in kit.run_checks(code, groups=n).splitlines()
        if line.startswith("sum")
    ]
    # On a GPU, TensorFlow trains deterministically only if told to.
    assert sums[0] == pytest.approx(sums[1], rel=1e-6 if kit.ON_GPU else 0, abs=0)


@pytest.mark.parametrize("groups", [2, 16])
def test_saved_model_signature(tmp_path: str, groups: int) -> None:
    """A loaded SavedModel's signature serves from many threads with the results of one stream."""
    kit.run_checks(
        f"""
        class Model(tf.Module):
            def __init__(self):
                with tf.device(GPU):
                    self.w = tf.Variable(tf.random.stateless_normal([64, 64], [1, 2]))

            @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
            def serve(self, x):
                with tf.device(GPU):
                    return {{"y": tf.nn.softmax(tf.matmul(x, self.w))}}

        model = Model()
        path = {str(tmp_path)!r}
        tf.saved_model.save(model, path, signatures=model.serve)
        signature = tf.saved_model.load(path).signatures["serving_default"]
        inputs = batches()
        expected = [signature(x=tf.constant(a))["y"].numpy() for a in inputs]

        def client(k):
            for i in range(STEPS):
                j = (k + i) % len(inputs)
                out = signature(x=tf.constant(inputs[j]))["y"].numpy()
                check(np.array_equal(out, expected[j]), "signature")

        run_threads([lambda k=k: client(k) for k in range(THREADS)])
    """,
        groups=groups,
    )


def test_convolutions() -> None:
    """A network's outputs and gradients on any group are those of the first call."""
    kit.run_checks("""
        tf.keras.utils.set_random_seed(1)
        tf.config.experimental.enable_op_determinism()
        x = tf.constant(np.random.RandomState(0).randn(8, 24, 24, 3).astype(np.float32))
        with tf.device(GPU):
            kernels = [tf.Variable(tf.random.stateless_normal(shape, [i, 7]) * 0.2)
                       for i, shape in enumerate([[3, 3, 3, 16], [3, 3, 16, 16]])]
            biases = [tf.Variable(tf.fill([16], 0.1 * i)) for i in range(2)]

        @tf.function
        def network(x):
            with tf.device(GPU):
                for kernel, bias in zip(kernels, biases):
                    x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 2, "SAME"), bias))
                return tf.reduce_mean(x, [1, 2])

        @tf.function
        def gradients(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(network(x) ** 2)
            return tape.gradient(loss, kernels)

        expected = [network(x).numpy()] + [g.numpy() for g in gradients(x)]
        check(all(np.abs(e).max() > 0 for e in expected), "nothing")

        def client(i):
            for _ in range(STEPS // 3 + 1):
                with tf.cuda.stream_group(i % 4):
                    found = [network(x).numpy()] + [g.numpy() for g in gradients(x)]
                for e, f in zip(expected, found):
                    check(np.array_equal(e, f), "bits")

        run_threads([lambda i=i: client(i) for i in range(THREADS)])
    """)

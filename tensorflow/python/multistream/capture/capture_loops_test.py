# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions with loops and branches are captured if values on the host decide them.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

from multistream.testing import kit

HELPERS = (
    kit.CAPTURE_HELPERS
    + """
rng = np.random.default_rng(1)

def floats(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)

def expect(name, function, *inputs, replays=True):
    # Each of `inputs` is given again and again, and has the results of one that is not captured.
    captured = tf.cuda.captured(on_gpu(function))
    plain = tf.cuda.captured(mode="off")(on_gpu(function))
    for _ in range(8):
        for x in inputs:
            check(bits(captured(*x)) == bits(plain(*x)), name)
    report = tf.cuda.capture_report(captured, *inputs[0])
    check(replays is None or (report.replayed >= 3) == replays, f"{name}: {report}")
    return report

w = floats(8, 8)
"""
)


def run(code: str) -> None:
    """Runs code after HELPERS, with two groups."""
    kit.run_checks(HELPERS + code, groups=2, TF_MULTI_STREAM_CAPTURE="marked")


def test_loops_whose_count_is_known() -> None:
    run(
        """
def times(n):
    def function(x):
        return tf.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x))[1]
    return function
for n in (0, 1, 5):
    expect(f"{n} times", times(n), *[(floats(3, 8),) for _ in range(3)])

def nested(x):
    def inner(y):
        return tf.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, z * 0.5 + y), (0, y))[1]
    return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, inner(y) @ w), (0, x))[1]
expect("nested", nested, *[(floats(3, 8),) for _ in range(3)])

def columns(x):
    # As often as the input has columns, which differs from call to call.
    count = tf.shape(x)[1]
    def body(i, state):
        return i + 1, tf.tanh(state + x[:, i, tf.newaxis] * w[0])
    return tf.while_loop(lambda i, s: i < count, body, (0, tf.zeros([tf.shape(x)[0], 8])))[1]
expect("columns", columns, (floats(4, 5),), (floats(4, 2),), (floats(4, 5),))

def grows(x):
    def body(i, y):
        return i + 1, tf.concat([y, x], 0)
    return tf.while_loop(
        lambda i, y: i < 3, body, (0, x),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 8])))[1]
expect("grows", grows, (floats(2, 8),))
"""
    )


def test_a_loop_over_an_argument_of_the_host() -> None:
    """Each iteration takes a part of the argument, without waiting for the host each time."""
    run(
        """
def columns(x):
    def body(i, state):
        return i + 1, tf.tanh(state + x[:, i, tf.newaxis] * w[0])
    return tf.while_loop(lambda i, s: i < 5, body, (0, tf.zeros([4, 8])))[1]

captured = tf.cuda.captured(on_gpu(columns))
plain = tf.cuda.captured(mode="off")(on_gpu(columns))
serve = tf.cuda.serving_callable(captured, tf.TensorSpec([4, 5]))
for _ in range(10):
    x = floats(4, 5)
    check(serve(x).tobytes() == plain(x).numpy().tobytes(), "columns")
report = tf.cuda.capture_report(serve, x)
check(report.replayed == 6, f"{report}")

def on_host_too(x):
    # Each time round the host computes, so that the loop is left as it is.
    def body(i, state):
        with tf.device("/CPU:0"):
            column = tf.sort(x[:, i])
        return i + 1, tf.tanh(state + column[:, tf.newaxis])
    return tf.while_loop(lambda i, s: i < 5, body, (0, tf.zeros([4, 8])))[1]
serve = tf.cuda.serving_callable(tf.cuda.captured(on_gpu(on_host_too)), tf.TensorSpec([4, 5]))
plain = tf.cuda.captured(mode="off")(on_gpu(on_host_too))
for _ in range(6):
    x = floats(4, 5)
    check(serve(x).tobytes() == plain(x).numpy().tobytes(), "on the host too")
check(tf.cuda.capture_report(serve, x).replayed == 0, "the host is in its middle")
"""
    )


def test_branches() -> None:
    run(
        """
def by_shape(x):
    return tf.cond(tf.shape(x)[0] > 2, lambda: tf.tanh(x) @ w, lambda: x * 2.0)
expect("by shape", by_shape, (floats(2, 8),), (floats(3, 8),), (floats(4, 8),))

def in_a_loop(x):
    def body(i, y):
        return i + 1, tf.cond(i % 2 == 0, lambda: y @ w, lambda: tf.tanh(y))
    return tf.while_loop(lambda i, y: i < 5, body, (0, x))[1]
expect("in a loop", in_a_loop, *[(floats(3, 8),) for _ in range(3)], replays=None)
"""
    )


def test_what_values_decide_runs_as_always() -> None:
    run(
        """
def until_large(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 100.0, lambda y: y * 2.0, (x,))[0]
report = expect("a value", until_large, *[(np.abs(floats(3)) + i,) for i in range(1, 5)],
                replays=False)
check(len(report.counts) == 1 and "the middle of the step" in report.counts[0].end, f"{report}")

def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)
expect("a branch", branch, (np.ones(3, np.float32),), (-np.ones(3, np.float32),), replays=False)

def count(x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2.0), (0, x))[1]
expect("a count", count, *[(floats(3), np.int32(n)) for n in (1, 4, 2)], replays=False)

with tf.device(GPU):
    times = tf.Variable(2.0)
def by_variable(x):
    return tf.while_loop(
        lambda i, y: i < times, lambda i, y: (i + 1.0, y * 2.0), (0.0, x))[1]
captured = tf.cuda.captured(on_gpu(by_variable))
for n in (1.0, 3.0, 2.0):
    with tf.device(GPU):
        times.assign(n)
    for _ in range(6):
        check(np.all(captured(np.ones(3, np.float32)).numpy() == 2.0**n), "by a variable")
"""
    )


def test_training_through_a_loop() -> None:
    """A loop reads a variable, or changes it in each iteration."""
    run(
        """
def sides():
    with tf.device(GPU):
        return [tf.Variable(w) for _ in range(2)]

made = sides()
def step_of(variable):
    def step(x):
        def body(i, y):
            with tf.control_dependencies([variable.assign_sub(0.01 * tf.matmul(y, y, True))]):
                return i + 1, tf.tanh(y @ variable)
        return tf.while_loop(lambda i, y: i < 4, body, (0, x), parallel_iterations=1)[1]
    return on_gpu(step)
captured = tf.cuda.captured(step_of(made[0]))
plain = tf.cuda.captured(mode="off")(step_of(made[1]))
for i in range(20):
    x = floats(3, 8)
    check(bits(captured(x)) == bits(plain(x)), "results")
    check(bits(made[0].numpy()) == bits(made[1].numpy()), "variables")
report = tf.cuda.capture_report(captured, x)
check(report.replayed >= 3, f"{report}")
"""
    )


def test_a_recurrent_cell_in_a_session() -> None:
    run(
        """
x_value = floats(4, 6, 8)
with tf.Graph().as_default(), tf.device(GPU):
    x = tf1.placeholder(tf.float32, [None, 6, 8])
    def body(i, h):
        return i + 1, tf.tanh(tf.concat([x[:, i], h], 1) @ tf.concat([w, w], 0))
    h = tf1.while_loop(lambda i, h: i < 6, body, (0, tf.zeros_like(x[:, 0])))[1]
    config = tf1.ConfigProto(allow_soft_placement=True)
    plain = tf1.Session(config=config)
    expected = plain.run(h, {x: x_value})
    config.gpu_options.cuda_graph_enable_jit = True
    with tf1.Session(config=config) as session:
        report = tf.cuda.capture_report(lambda: session.run(h, {x: x_value}))
        check(report.replayed >= 2, f"{report}")
        for _ in range(10):
            check(bits(session.run(h, {x: x_value})) == bits(expected), "session")
"""
    )

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loops and branches are captured if values on the host decide them; ops may run side by side."""

import pytest

from multistream.testing.kit import run_captured

HELPERS = """
w = floats(8, 8)

def expect_loop(name, function, *inputs, replays=True):
    inputs = [x if isinstance(x, tuple) else (x,) for x in inputs]
    return alike(name, lambda: (on_gpu(function), []), *inputs, captured=replays)

def columns_of(x, count, column=lambda x, i: x[:, i]):
    def body(i, state):
        return i + 1, tf.tanh(state + column(x, i)[:, tf.newaxis] * w[0])
    return tf.while_loop(lambda i, s: i < count, body, (0, tf.zeros([tf.shape(x)[0], 8])))[1]
"""


def run(code: str) -> None:
    # Without, a GPU sums the gradients of an RNN's bias in any order.
    run_captured(HELPERS, code, capture="marked", TF_DETERMINISTIC_OPS="1")


def test_loops_whose_count_is_known() -> None:
    run("""
def times(n):
    def function(x):
        return tf.while_loop(
            lambda i, y: i < n, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x))[1]
    return function
for n in (0, 1, 5):
    expect_loop(f"{n} times", times(n), *floats(3, 3, 8))

def nested(x):
    def inner(y):
        return tf.while_loop(lambda j, z: j < 3, lambda j, z: (j + 1, z * 0.5 + y), (0, y))[1]
    return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, inner(y) @ w), (0, x))[1]
expect_loop("nested", nested, *floats(3, 3, 8))

# As often as the input has columns, which differs from call to call.
expect_loop("columns", lambda x: columns_of(x, tf.shape(x)[1]), floats(4, 5), floats(4, 2))

def grows(x):
    def body(i, y):
        return i + 1, tf.concat([y, x], 0)
    return tf.while_loop(
        lambda i, y: i < 3, body, (0, x),
        shape_invariants=(tf.TensorShape([]), tf.TensorShape([None, 8])))[1]
expect_loop("grows", grows, floats(2, 8))
""")


def test_loops_with_lists_of_tensors() -> None:
    """As TensorArray, `map_fn`, Keras's RNN and the gradients of loops make them."""
    run("""
expect_loop("map", lambda x: tf.map_fn(lambda row: tf.tanh(row) * 2.0, x), *floats(2, 5, 8))
expect_loop("scan", lambda x: tf.scan(lambda a, row: tf.tanh(a + row), x), *floats(2, 5, 8))

def array(x, **options):
    body = lambda i, found: (i + 1, found.write(i, tf.tanh(x[i : i + 1] @ w)))
    found = tf.TensorArray(tf.float32, **options)
    return tf.while_loop(lambda i, _: i < tf.shape(x)[0], body, (0, found))[1]
for name, function in (
    ("stack", lambda x: array(x, size=tf.shape(x)[0]).stack()),
    ("concat", lambda x: array(x, size=0, dynamic_size=True).concat()),
    ("gather", lambda x: array(x, size=9, element_shape=[1, 8]).gather([1, 0, 8])),
    ("read", lambda x: array(x, size=9, clear_after_read=False).read(1))):
    expect_loop(name, function, floats(4, 8), floats(5, 8))

rnn = [tf.keras.layers.RNN(cell(8), return_sequences=True)
       for cell in (tf.keras.layers.SimpleRNNCell, tf.keras.layers.LSTMCell)]
with tf.device(GPU):
    for layer in rnn:
        layer(np.zeros([1, 5, 8], np.float32))
expect_loop("recurrent", lambda x: rnn[1](rnn[0](x)), *floats(2, 3, 5, 8))
expect_loop("masked", lambda x, n: rnn[1](x, mask=tf.sequence_mask(n, 5)),
            *[(x, np.int32([5, n, 1])) for n, x in enumerate(floats(2, 3, 5, 8))])

last = tf.keras.layers.RNN(tf.keras.layers.GRUCell(8))
with tf.device(GPU):
    last(np.zeros([1, 5, 8], np.float32))
def gradients(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(last(x) ** 2)
    return tape.gradient(loss, last.trainable_variables)
expect_loop("gradients", gradients, *floats(2, 3, 5, 8))

def integers(x, ids):
    ids = tf.map_fn(lambda i: i * 2 % 5, ids + tf.range(tf.shape(x)[0]))
    return tf.gather(x, ids)
expect_loop("of integers", integers,
            *[(x, np.int32([1, n, 0, -9, 2])) for n, x in enumerate(floats(2, 5, 8))])

# Not captured: values decide the length.
def until_large(x):
    body = lambda i, found: (i + 1, found.write(i, x[0] * tf.cast(i, tf.float32)))
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[8])
    most = tf.cast(tf.reduce_sum(x), tf.int32)
    return tf.while_loop(lambda i, _: i < most, body, (0, found))[1].stack()
expect_loop("any length", until_large, *np.abs(floats(2, 1, 8)) + 1.0, replays=False)
""")


def test_loops_that_take_integers() -> None:
    run("""
def by_lengths(x, lengths):
    def body(i, state):
        new = tf.tanh(state + x[:, i] @ w)
        return i + 1, tf.where((i < lengths)[:, None], new, state)
    steps = lambda i, state: i < tf.shape(x)[1]
    return tf.while_loop(steps, body, (0, tf.zeros([tf.shape(x)[0], 8])))[1]
inputs = [(x, np.int32(n)) for x, n in zip(floats(3, 2, 5, 8), ([5, 0], [2, 1], [-3, 9]))]
expect_loop("by lengths", by_lengths, *inputs, (floats(2, 4, 8), np.int32([3, 4])))

def changed(x, ids):
    def body(i, ids, y):
        return i + 1, ids * 3 + i, y + tf.gather(x, ids % 4)
    return tf.while_loop(lambda i, *_: i < 30, body, (0, ids, tf.gather(x, ids)))[1:]
expect_loop("changed", changed, *[(floats(4, 8), np.int32(n)) for n in ([1, 3], [2, 0], [0, 1])])

def branch(x, ids):
    ids = tf.cond(tf.shape(x)[0] > 3, lambda: ids + 1, lambda: tf.stack([ids[0], 0]))
    return tf.gather(x, ids)
expect_loop("a branch", branch, (floats(4, 8), np.int32([1, 2])), (floats(3, 8), np.int32([0, 1])))

# Conditions that are made of others, which TensorFlow computes on the GPU.
def conditions(x):
    n, rows = tf.shape(x)[0], tf.shape(x)[1]
    go_on = lambda i, y: tf.logical_and(tf.logical_or(i < n, i < 2), tf.logical_not(i >= rows))
    found = tf.while_loop(go_on, lambda i, y: (i + 1, tf.tanh(y @ w)), (0, x))
    mask = tf.logical_or(tf.range(n)[:, None] > 1, tf.range(rows)[None] < 3)
    other = tf.cast(tf.logical_and(n > 1, [True, False]), tf.float32)
    return found[1], other, tf.cast(mask, tf.float32) * x
expect_loop("conditions", conditions, floats(1, 8), floats(3, 8), floats(9, 8))

def decides(x, n):
    return tf.while_loop(lambda i, y: i < n[0], lambda i, y: (i + 1, y * 2.0), (0, x))[1]
expect_loop("a count", decides, *[(floats(3), np.int32([n])) for n in (1, 4, 2)], replays=False)
""")


def test_a_loop_over_an_argument_of_the_host() -> None:
    """Each iteration takes a part of the argument, without waiting for the host each time."""
    run("""
def on_host(x, i):
    with tf.device("/CPU:0"):
        return tf.sort(x[:, i])

# Where the host computes in each iteration, the loop is left as it is.
for name, function, replays in (("columns", lambda x: columns_of(x, 5), 6),
                                ("on the host too", lambda x: columns_of(x, 5, on_host), 0)):
    captured, plain = both_ways(on_gpu(function))
    serve = tf.cuda.serving_callable(captured, tf.TensorSpec([4, 5]))
    for _ in range(10):
        x = floats(4, 5)
        check(bits(serve(x)) == bits(plain(x)), name)
    report = tf.cuda.capture_report(serve, x)
    check(report.replayed == replays, f"{name}: {report}")
""")


def test_branches() -> None:
    run("""
def by_shape(x):
    return tf.cond(tf.shape(x)[0] > 2, lambda: tf.tanh(x) @ w, lambda: x * 2.0)
expect_loop("by shape", by_shape, floats(2, 8), floats(3, 8), floats(4, 8))

def in_a_loop(x):
    def body(i, y):
        return i + 1, tf.cond(i % 2 == 0, lambda: y @ w, lambda: tf.tanh(y))
    return tf.while_loop(lambda i, y: i < 5, body, (0, x))[1]
expect_loop("in a loop", in_a_loop, *floats(3, 3, 8), replays=None)
""")


def test_what_values_decide_runs_as_always() -> None:
    run("""
def until_large(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 100.0, lambda y: y * 2.0, (x,))[0]
report = expect_loop("a value", until_large, *[np.abs(floats(3)) + i for i in range(1, 5)],
                     replays=False)
check(len(report.counts) == 1 and "reads a value on the host" in report.counts[0].end, f"{report}")

def branch(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: x - 1.0)
expect_loop("a branch", branch, np.ones(3, np.float32), -np.ones(3, np.float32), replays=False)

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
""")


BRANCHES = """
tables = floats(24, 40, 16)

def lookups(ids):
    # No lookup, with what follows it, needs another one. They are made in this order, so that each
    # could be given the memory that the one before has freed, and would have to wait for it.
    parts = []
    for i, table in enumerate(tables):
        with tf.control_dependencies(parts[-1:]):
            part = tf.gather(table, ids[:, i])
        for _ in range(3):
            part = tf.tanh(part * 1.5)
        parts.append(tf.reduce_sum(part, 1))
    return tf.add_n(parts)

step = on_gpu(lookups)
with tf.device(GPU):
    inputs = [tf.constant(rng.integers(0, 40, (8, 24))) for _ in range(3)]
expected = [bits(step(x)) for x in inputs]
before = replayed(), total("replays_with_branches")
for i in range(60):
    check(bits(step(inputs[i % 3])) == expected[i % 3], "results")
replays = replayed() - before[0]
branches = total("replays_with_branches") - before[1]
check(replays > 30, f"{replays} replays")
check(branches == (replays if MOST > 1 else 0), f"{branches} of {replays} replays had branches")
"""


@pytest.mark.parametrize("most", [1, 2])
def test_recordings_that_gain_run_ops_side_by_side(most: int) -> None:
    """An emulated GPU runs the ops one after the other, and counts what a GPU would do."""
    run_captured(f"MOST = {most}\n", BRANCHES, TF_MULTI_STREAM_CAPTURE_BRANCHES=str(most))

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""TF_MULTI_STREAM_CAPTURE_BATCHES: batches of any size run as the next larger one recorded."""

from typing import Any

import pytest

from multistream.testing.kit import run_captured

HELPERS = """
def whole(*shape):
    # Whole numbers: products and sums are exact, in any order and of any batch.
    return rng.integers(-8, 9, shape).astype(np.float32)

table, w1, bias, w2 = whole(32, 6), whole(18, 12), whole(12), whole(12, 5)
spec = [tf.TensorSpec([None, 3], tf.float32)]
ids_and_dense = [tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None, 6], tf.float32)]

def model(ids, dense):
    # Lookups, a concatenation, two layers; a result for each row, and for each feature of a row.
    with tf.device(GPU):
        looked_up = tf.reshape(tf.gather(tf.constant(table), ids), [-1, 12])
        x = tf.concat([looked_up, dense], axis=1)
        hidden = tf.nn.relu(tf.matmul(x, w1) + bias)
        y = tf.matmul(hidden, w2)
        return {"y": y, "best": tf.reduce_max(y, axis=1), "three": tf.reshape(y * 2.0, [-1])}

def expected(ids, dense):
    x = np.concatenate([table[ids].reshape(-1, 12), dense], axis=1)
    y = np.maximum(x @ w1 + bias, 0) @ w2
    return {"y": y, "best": y.max(axis=1), "three": (y * 2).reshape(-1)}

def query(batch):
    return rng.integers(0, 32, (batch, 2)), whole(batch, 6)

def right(results, ids, dense):
    want = expected(ids, dense)
    for name, value in results.items():
        check(np.array_equal(value, want[name]), name)
"""


def run(*code: str, batches: str = "2,4,8,16", **more: Any) -> None:
    run_captured(HELPERS, *code, TF_MULTI_STREAM_CAPTURE_BATCHES=batches, **more)


def test_each_padded_replay_is_that_of_the_padded_step() -> None:
    """Four recordings a group pad batches of 1 to 16 rows; 17 to 20 run uncaptured or are recorded.

    Each replay is verified, of sessions and of functions with arguments on the host or the device.
    """
    run(
        """
with tf.Graph().as_default():
    ids = tf1.placeholder(tf.int64, [None, 2])
    dense = tf1.placeholder(tf.float32, [None, 6])
    results = model(ids, dense)
    with tf1.Session() as session:
        for turn in range(6):
            for batch in rng.permutation(np.arange(1, 21)):
                q = query(batch)
                right(session.run(results, {ids: q[0], dense: q[1]}), *q)
        check(total("recordings") <= (4 + 4) * 2, str(total("recordings")))
        check(replayed() >= 60, str(tf.cuda.capture_report()))
function = tf.function(model, input_signature=ids_and_dense)
for turn in range(3):
    for batch in range(1, 17):
        for where in (GPU, "/CPU:0"):
            q = query(batch)
            with tf.device(where):
                arguments = [tf.constant(value) for value in q]
            right(function(*arguments), *q)
check(total("replays_verified") == replayed() > 120, f"{total('replays_verified')} verified")
""",
        TF_MULTI_STREAM_CAPTURE_VERIFY="1",
    )


@pytest.mark.parametrize(("variable", "pool"), [("BATCHES", "false"), ("LENGTHS", "true")])
def test_pieces_are_padded(variable: str, pool: str) -> None:
    """Around an op on the host. The sum is over entries, which a recording masks."""
    run(
        f"is_length = {variable == 'LENGTHS'}\n",
        """
ws = [whole(6, 6) for _ in range(6)]
shape, axis = ([3, None, 6], 1) if is_length else ([None, 6], 1)

def layers(x, mod):
    for w in ws:
        x = mod(x @ w, 7.0) - 3.0
    return x

@tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
def model(x):
    with tf.device(GPU):
        y = layers(x, tf.math.floormod)
        with tf.device("/CPU:0"):
            z = tf.strings.to_number(tf.strings.as_string(y, precision=9))
        z = layers(z, tf.math.floormod)
        return z + y, tf.reduce_sum(z, 1)

def client(i):
    mine = np.random.default_rng(i)
    for _ in range(80):
        size = int(mine.integers(1, 17))
        x = mine.integers(-8, 9, [size if n is None else n for n in shape]).astype(np.float32)
        y = layers(x, np.mod)
        z = layers(y, np.mod)
        for found, expected in zip(model(tf.constant(x)), (z + y, z.sum(1)), strict=True):
            check(np.array_equal(found, expected), f"{size}")

run_threads([lambda i=i: client(i) for i in range(4)])
report = tf.cuda.capture_report()
# Of a recorded length there is one with and one without masks, and there may be one of the first
# length, from calls before another one came.
check(total("recordings") <= 2 * 2 * (3 + 4 * is_length), str(total("recordings")))
check(report.share > 0.8, str(report))
""",
        batches="4,8,16" if variable == "BATCHES" else "64",
        **({"TF_MULTI_STREAM_CAPTURE_LENGTHS": "4,8,16"} if variable == "LENGTHS" else {}),
        TF_GPU_STREAM_GROUP_SHARE_MEM_POOL=pool,
    )


def test_rows_of_earlier_batches_do_not_show() -> None:
    """Padding rows in a recording's memory hold arbitrary values, such as NaN."""
    run(
        """
@tf.function(input_signature=spec)
def function(x):
    with tf.device(GPU):
        return tf.matmul(x, tf.constant(w)) * 2.0, tf.reduce_sum(x, axis=-1, keepdims=True)

w = whole(3, 4)
for where in (GPU, "/CPU:0"):
    with tf.device(where):
        for turn in range(5):
            bad = whole(16, 3)
            bad[3:] = [np.nan, np.inf, 1e38]
            function(tf.constant(bad))
            for batch in (9, 3, 1, 2, 15):
                x = whole(batch, 3)
                product, sums = function(tf.constant(x))
                check(np.array_equal(product.numpy(), x @ w * 2), "product")
                check(np.array_equal(sums.numpy(), x.sum(1, keepdims=True)), "sums")
check(replayed() > 20, str(tf.cuda.capture_report()))
""",
        batches="16",
    )


@pytest.mark.parametrize("sizes", [[5, 8], [8, 5]], ids=["padded first", "whole first"])
def test_variables_that_have_another_shape(sizes: list[int]) -> None:
    """A proof or recording made with the earlier shape is not used; values may change, too."""
    run(
        f"sizes = {sizes}\n",
        """
with tf.device(GPU):
    v = tf.Variable(tf.ones([3, 4]), shape=[3, None])
    shift = tf.Variable(tf.ones([1, 3]), shape=[None, 3])

@tf.function(input_signature=spec)
def product(x):
    with tf.device(GPU):
        return tf.matmul(x, v)

@tf.function(input_signature=spec)
def shifted(x):
    with tf.device(GPU):
        return x + shift

for columns in (4, 2, 7, 2):
    with tf.device(GPU):
        v.assign(tf.constant(whole(3, columns)) + 0.0)
    for size in sizes * 5:
        x = whole(size, 3)
        result = product(x).numpy()
        check(np.array_equal(result, x @ v.numpy()), f"{size} rows, {columns} columns")
for columns in (4, 2):
    with tf.device(GPU):
        v.assign(tf.constant(whole(3, columns)) + 0.0)
    before = replayed()
    for i in range(200):
        if i % 40 == 20:
            with tf.device(GPU):
                v.assign_add(tf.ones([3, columns]))
        x = whole(5, 3)
        check(np.array_equal(product(x).numpy(), x @ v.numpy()), f"5 rows, {columns} columns")
    check(replayed() > before, f"{columns} columns: not recorded again")
for _ in range(10):
    for size in (5, 8):
        x = whole(size, 3)
        check(np.array_equal(shifted(x).numpy(), x + 1.0), "a shift of all rows")
with tf.device(GPU):
    shift.assign(tf.ones([8, 3]) * 2.0)
for _ in range(10):
    x = whole(8, 3)
    check(np.array_equal(shifted(x).numpy(), x + 2.0), "a shift of each row")
    fails(tf.errors.InvalidArgumentError, lambda: shifted(whole(5, 3)))
check(replayed() > 30, str(tf.cuda.capture_report()))
""",
        groups=1,
        batches="8",
    )


def test_clients_with_batches_of_their_own() -> None:
    run("""
function = tf.function(model, input_signature=ids_and_dense)
serve = tf.cuda.serving_callable(function)
queries = [query(batch) for batch in range(1, 17)]

def client(seed):
    mine = np.random.default_rng(seed)
    for _ in range(60):
        q = queries[mine.integers(16)]
        right(serve(*q), *q)

run_threads([lambda i=i: client(i) for i in range(8)])
check(replayed() > 200, str(tf.cuda.capture_report()))
""")

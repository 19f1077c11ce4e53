# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""TF_MULTI_STREAM_CAPTURE_LENGTHS: sequences of any length run as the next longer one recorded."""

from typing import Any

import pytest

from multistream.testing.kit import run_captured

HELPERS = """
def two(model, count=1):
    # The model, and the same without capture; inputs are ids, or floats, of any length.
    return both_ways(tf.function(model, input_signature=spec[:count]))

spec = [tf.TensorSpec([None, None], tf.int64)] * 2
table, positions = floats(32, 8), floats(64, 8)

def ids(batch, length):
    return rng.integers(1, 32, (batch, length))

def same(found, expected, name):
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        right = a.shape == b.shape and np.allclose(a, b, rtol=1e-4, atol=2e-5)
        check(right, right or f"{name}: {a} is not {b}")

def compare(model, *query, turns=4, batches=(2, 3), lengths=range(1, 17), most=None):
    captured, plain = two(model, len(query))
    before = replayed()
    for _ in range(turns):
        for length in rng.permutation(lengths):
            for batch in batches:
                given = [tf.constant(make(batch, int(length))) for make in query]
                same(captured(*given), plain(*given), f"{batch} of {length}")
    calls = turns * len(lengths) * len(batches)
    check(replayed() - before > calls // 2, str(tf.cuda.capture_report()))
    if most is not None:
        check(total("recordings") <= most, str(total("recordings")))
"""


def run(*code: str, lengths: str = "4,8,16", **more: Any) -> None:
    more = {"TF_MULTI_STREAM_CAPTURE_LENGTHS": lengths} | more
    run_captured(HELPERS, *code, **more)


@pytest.mark.parametrize("batches", ["", "4,8"])
def test_attention_and_sums_over_tokens(batches: str) -> None:
    """Three recordings a group and batch size; results with and without tokens."""
    run(
        """
wq, wk, wv = floats(8, 8), floats(8, 8), floats(8, 8)

def model(ids, mask):
    with tf.device(GPU):
        b, n = tf.shape(ids)[0], tf.shape(ids)[1]
        x = tf.gather(tf.constant(table), ids) + tf.constant(positions)[:n]
        def heads(w):
            return tf.transpose(tf.reshape(tf.reshape(x, [-1, 8]) @ w, [b, n, 2, 4]), [0, 2, 1, 3])
        scores = tf.matmul(heads(wq), heads(wk), transpose_b=True)
        m = tf.cast(mask, tf.float32)
        probabilities = tf.nn.softmax(scores + (1.0 - m)[:, None, None, :] * -1e9)
        y = tf.reshape(tf.transpose(probabilities @ heads(wv), [0, 2, 1, 3]), [b, n, 8]) + x
        m = m[:, :, None]
        return {
            "first": y[:, 0], "each": tf.tanh(y), "highest": tf.reduce_max(y, 1),
            "mean": tf.reduce_mean(y, 1), "masked": tf.reduce_sum(y * m, 1) / tf.reduce_sum(m, 1),
            "so far": tf.cumsum(y, 1), "count": tf.reduce_sum(ids, 1)}

def mask(batch, length):
    return (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype(np.int64)

compare(model, ids, mask, most=BATCHES)
""".replace("BATCHES", "8" if batches else "16"),
        **({"TF_MULTI_STREAM_CAPTURE_BATCHES": batches} if batches else {}),
    )


@pytest.mark.parametrize(
    "layers",
    [
        "L.Dense(3)(L.GlobalAveragePooling1D()(L.Embedding(32, 8, mask_zero=True)(x)))",
        "L.Dense(3)(L.GlobalAveragePooling1D()(L.Embedding(32, 8)(x)))",
        "L.GlobalMaxPooling1D()(L.Conv1D(8, 3, padding='same')(L.Embedding(32, 8)(x)))",
        "L.MultiHeadAttention(2, 4)(h, h)[:, 0]",
        "L.LayerNormalization()(L.MultiHeadAttention(2, 4)(h, h, use_causal_mask=True) + h)",
    ],
    ids=["masked bag", "mean", "convolution", "attention", "causal"],
)
def test_models_of_keras(layers: str) -> None:
    run(f"""
L = tf.keras.layers
# cuDNN has another algorithm for another length, and in TF32 it rounds by 0.001.
tf.config.experimental.enable_tensor_float_32_execution(False)
with tf.device(GPU):
    x = tf.keras.Input((None,), dtype="int64")
    h = L.Embedding(32, 8, mask_zero=True)(x)
    keras_model = tf.keras.Model(x, {layers})

def model(ids):
    with tf.device(GPU):
        return keras_model(ids, training=False)

def padded(batch, length):
    return ids(batch, length) * (np.arange(length) < rng.integers(1, length + 1, (batch, 1)))

compare(model, padded, lengths=range(2, 17))
""")


def test_entries_of_earlier_calls_do_not_show() -> None:
    """The memory of a recording holds arbitrary entries, such as NaN; whole numbers are exact."""
    run("""
def model(x):
    with tf.device(GPU):
        return (tf.reduce_sum(x, 1), tf.reduce_max(x, 1), x * 2.0,
                tf.einsum("abc,abd->acd", x, x), tf.reduce_sum(tf.cumsum(x, 1), [1, 2]))

function = tf.function(model, input_signature=[tf.TensorSpec([None, None, 4], tf.float32)])
for where in (GPU, "/CPU:0"):
    for turn in range(6):
        for length in (16, 9, 3, 1, 2, 15):
            x = rng.integers(-8, 9, (3, length, 4)).astype(np.float32)
            bad = np.full((3, 16, 4), np.nan, np.float32)
            with tf.device(where):
                function(tf.constant(bad))
                found = function(tf.constant(x))
            expected = (x.sum(1), x.max(1), x * 2, np.einsum("abc,abd->acd", x, x),
                        x.cumsum(1).sum((1, 2)))
            for i, (a, b) in enumerate(zip(found, expected, strict=True)):
                check(np.array_equal(a, b), f"result {i} of {length}")
check(replayed() > 80, str(tf.cuda.capture_report()))
""")


def test_sessions() -> None:
    run("""
with tf.Graph().as_default():
    x = tf1.placeholder(tf.int64, [None, None])
    with tf.device(GPU):
        y = tf.reduce_sum(tf.gather(tf.constant(table), x), 1)
    with tf1.Session() as session:
        for turn in range(5):
            for length in rng.permutation(np.arange(1, 17)):
                q = ids(2, int(length))
                same([session.run(y, {x: q})], [table[q].sum(1)], str(length))
check(replayed() > 50, str(tf.cuda.capture_report()))
check(total("recordings") <= 8, str(total("recordings")))
""")


def test_what_is_asserted_of_entries() -> None:
    """The entries that are added are not asked; a wrong one is the step's error."""
    run("""
def model(ids):
    with tf.device(GPU):
        with tf.control_dependencies([tf.debugging.assert_less(ids, 32, message="too large")]):
            return tf.reduce_sum(tf.gather(tf.constant(table), ids), 1)

spec = [tf.TensorSpec([None, None], tf.int32)]
ids32 = lambda *shape: ids(*shape).astype(np.int32)
compare(model, ids32)
captured, _ = two(model)
for length in (3, 5, 6, 7) * 4:
    wrong = ids32(2, length)
    wrong[1, -1] = 40
    fails(tf.errors.InvalidArgumentError, lambda: captured(wrong), "too large")
    right = tf.constant(ids32(2, length))
    same(captured(right), table[right.numpy()].sum(1), "after an error")
""")


def test_a_refusal_names_the_op_or_the_lengths() -> None:
    """length_rules_test.cc has all reasons."""
    run("""
def last(ids):
    with tf.device(GPU):
        return tf.reduce_sum(tf.gather(tf.constant(table), ids), 2)[:, -1]

def sums(a, b):
    with tf.device(GPU):
        return sum(tf.reduce_sum(tf.gather(tf.constant(table), x), 1) for x in (a, b))

for model, count, *reasons in (
        (last, 1, "strided_slice' takes some of the entries only"),
        (sums, 2, *[f"the step takes both {n} and {12 - n} entries" for n in (3, 5, 7, 9)])):
    captured, plain = two(model, count)
    for length in (3, 5, 6, 7) * 4:
        given = [tf.constant(ids(2, n)) for n in (length, 12 - length)[:count]]
        same(captured(*given), plain(*given), str(length))
    report = str(tf.cuda.capture_report())
    check("its length is not padded: " in report and any(why in report for why in reasons), report)
""")

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops of a recorded step that are one kernel, with the bits of their own kernels."""

import textwrap

from multistream.testing.kit import ON_GPU, run_captured

_TRAINED = """
import json, tempfile
import keras

with tf.device(GPU):
    model = keras.Sequential([keras.layers.Dense(8) for _ in range(6)])
    model.compile("adam", "mse", jit_compile=False)
    x, y = floats(16, 8), floats(16, 8)
    for _ in range(20):
        model.train_on_batch(x, y)
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        with tf.cuda.trace(trace.name):
            model.train_on_batch(x, y)
        events = json.load(open(trace.name))["traceEvents"]
kernels = sum(e["args"]["kernels"] for e in events if e.get("cat") == "replay")
check(kernels > 0, "no replay")
print("kernels", kernels)
"""


# All kinds of numbers: the bits are random.
def test_each_op_has_its_bits() -> None:
    code = """
        import numpy as np
        random = np.random.RandomState(3)

        def numbers(*shape):
            return random.randint(0, 1 << 32, shape, np.uint64).astype(np.uint32).view(np.float32)

        def near(x):  # of nearly the same size: sums and quotients are neither huge nor zero
            bits = x.view(np.uint32) & 0x7F800000 | numbers(*x.shape).view(np.uint32) & 0x807FFFFF
            return bits.astype(np.uint32).view(np.float32)

        COUNT, SIZE = 12, int(os.environ.get("TFMS_TEST_SIZE", 1 << 14))
        two = [
            lambda x, y: x + y,
            lambda x, y: x - y,
            lambda x, y: x * y,
            lambda x, y: x / y,
            lambda x, y: tf.square(x) - y,
            lambda x, y: y + tf.sqrt(x),
            lambda x, y: -x,
            lambda x, y: tf.add_n([x, y]),
            lambda x, y: (y - x) * (x / (y + x)),
        ]
        for number, op in enumerate(two):
            def f(xs, ys):
                with tf.device(GPU):
                    return tf.stack([
                        op(x, y) for x, y in zip(tf.unstack(xs, COUNT), tf.unstack(ys, COUNT))
                    ])

            captured = tf.function(f, autograph=False)
            for _ in range(12):  # until each call is a replay
                captured(tf.ones([COUNT, SIZE]), tf.ones([COUNT, SIZE]))
            before = replayed()
            for run in range(6):
                x = numbers(COUNT, SIZE)
                y = near(x) if run % 2 else numbers(COUNT, SIZE)
                want = f(tf.constant(x), tf.constant(y)).numpy()
                got = captured(tf.constant(x), tf.constant(y)).numpy()
                differ = got.view(np.uint32) != want.view(np.uint32)
                if not ON_GPU:  # a CPU has many bits for "no number"
                    differ &= ~(np.isnan(got) & np.isnan(want))
                other = np.flatnonzero(differ)
                some = [[hex(a.view(np.uint32).flat[i]) for a in (x, y, got, want)]
                        for i in other[:4]]
                check(not some, f"op {number}, run {run}: {len(other)} differ: {some}")
            check(replayed() == before + 6, f"op {number}: {replayed() - before} replays")
        """
    run_captured(textwrap.dedent(code).replace("ON_GPU", str(ON_GPU)), capture="require")


def test_an_optimizers_ops_are_few_kernels() -> None:
    """captured_keras_test.py compares the weights."""
    launched = [
        int(
            run_captured(_TRAINED, TF_MULTI_STREAM_CAPTURE_FUSE=fuse)
            .split("kernels ")[1]
            .split()[0]
        )
        for fuse in ("true", "false")
    ]
    # Adam has 12 for each of 12 variables.
    assert 0 < launched[0] <= launched[1] - 100, launched

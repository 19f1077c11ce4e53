# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Process settings that kernels read at launch: each setting has its own recordings.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs: there, a recording replayed with
another setting would give other bits.
"""

from __future__ import annotations

from multistream.testing import kit

HELPERS = (
    kit.CAPTURE_HELPERS
    + """
def total(counter):
    return sum(getattr(s, counter) for s in tf.cuda.stream_stats())

rng = np.random.default_rng(3)
x, w = (rng.normal(0, 1, (256, 256)).astype(np.float32) for _ in range(2))

def product():
    return on_gpu(lambda x: tf.matmul(x, w) + 1.0)

captured, expected = [tf.cuda.captured(mode=mode)(product()) for mode in ("auto", "off")]

def steps(setting, count=6):
    # How many recordings were made, and how many of the steps were replayed.
    before = total("recordings_made"), total("steps_replayed")
    for _ in range(count):
        check(bits(captured(x)) == bits(expected(x)), setting)
    return total("recordings_made") - before[0], total("steps_replayed") - before[1]
"""
)


def run(code: str) -> None:
    """Runs code after HELPERS, with one group; functions that it marks are captured."""
    kit.run_checks(HELPERS + code, groups=1, TF_MULTI_STREAM_CAPTURE="marked")


def test_tensor_float_32() -> None:
    run("""
enable = tf.config.experimental.enable_tensor_float_32_execution
check(steps("first") == (1, 4), "first")
enable(False)
check(steps("TF32 off") == (1, 4), "TF32 off")
enable(True)
check(steps("TF32 on again") == (0, 6), "TF32 on again")
enable(False)
check(steps("TF32 off again") == (0, 6), "TF32 off again")
""")


def test_op_determinism() -> None:
    run("""
check(steps("first") == (1, 4), "first")
tf.config.experimental.enable_op_determinism()
check(steps("deterministic") == (1, 4), "deterministic")
check(steps("deterministic") == (0, 6), "deterministic, later")
""")

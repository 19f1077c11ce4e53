# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Eager ops without a kernel, which a pass over graphs replaces by other ops."""

import pytest

from multistream.testing import kit

CASES = """
import numpy as np
import tensorflow as tf

def matrix(kind):
    return [np.array([[1, 0]]).astype(kind), np.array([[0, 1]]).astype(kind)]

CASES = {
    **{kind: ([2, 2], matrix(kind)) for kind in ("float32", "float16", "int32", "int64", "bool")},
    "strings": ([2, 1], [[["a"]], [["b"]]]),
    "no elements": ([2, 0], [np.zeros([1, 0], np.float32)] * 2),
    "no rows": (0, [1]),
    "too few rows": ([1], [[1.0], [2.0]]),
    "a scalar": ([], [1.0]),
    "two rows in one": ([2], [[1.0, 2.0], [3.0, 4.0]]),
    "another rank": ([2, 2], [[1.0], [2.0]]),
    "another width": ([2, 2], [[[1.0]], [[2.0]]]),
}
for device in ("/GPU:0", "/CPU:0"):
    for name, (shape, values) in CASES.items():
        with tf.device(device):
            try:
                result = tf.raw_ops.ParallelConcat(shape=shape, values=values).numpy().tolist()
            except Exception as error:
                result = type(error).__name__
        print(device, name, result)
"""


@pytest.mark.parametrize("groups", [1, 4])
def test_parallel_concat(groups: int) -> None:
    """The results and errors with groups are those of stock TensorFlow."""
    stock = kit.ok(CASES)
    assert len(stock.splitlines()) == 2 * 13
    # TensorFlow 2.22.0rc0 itself loses the strings, eagerly and in graphs.
    stock = stock.replace("strings [[b''], [b'']]", "strings [[b'a'], [b'b']]")
    assert kit.ok(CASES, **kit.environment(groups)) == stock


def test_an_error_of_parallel_concat_names_the_argument() -> None:
    code = "import tensorflow as tf; tf.raw_ops.ParallelConcat(shape=0, values=[1])"
    done = kit.run(code, **kit.environment(4))
    assert "dimension of 'shape' [0] must be greater than the index of values[0]" in done.stderr

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves DeepCTR's DeepFM from one matrix: python -m zoo.deepctr_matrix_program SECONDS.

Run it in benchmarks/, with the variables of stream groups and capture. The matrix has all columns
as float32, as DeepCTR-Torch takes them; the function splits it. 16 threads compare the bits of each
result with those of one thread, which are close to the model's from columns. The output is JSON.
"""

import json
import os
import sys
from typing import Any

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # read when TensorFlow is imported

import numpy as np
import tensorflow as tf
from client_threads import run_checked

from zoo import models
from zoo.sizes import BATCH

_CLIENTS, _INPUTS, _COMPARED = 16, 6, 10


def main(seconds: float) -> None:
    """Measures the model."""
    with tf.device("/GPU:0"):  # a real GPU does not need it
        made = models.make("DeepCTR: DeepFM")
        inputs = [made.inputs() for _ in range(_INPUTS)]
        rows = [{name: x.reshape(BATCH, -1) for name, x in given.items()} for given in inputs]
        matrices = [np.concatenate(list(x.values()), 1).astype(np.float32) for x in rows]

        @tf.function(input_signature=[tf.TensorSpec([None, matrices[0].shape[1]])])
        def function(matrix: Any) -> Any:
            parts = tf.split(matrix, [x.shape[1] for x in rows[0].values()], axis=1)
            columns = {}
            for (name, x), part in zip(inputs[0].items(), parts, strict=True):
                numbers = tf.cast(part, x.dtype)
                columns[name] = numbers[:, 0] if x.ndim == 1 else numbers
            return made.call(columns)

        serve = tf.cuda.serving_callable(function)
        for i in range(_COMPARED * _INPUTS):
            serve(matrices[i % _INPUTS])
        results = [serve(x) for x in matrices]
        for given, result in zip(inputs, results, strict=True):
            right = made.call({name: tf.constant(x) for name, x in given.items()})
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-6)
        load, wrong = run_checked(
            lambda i: serve(matrices[int(i)]),
            np.arange(_INPUTS),
            [x.tobytes() for x in results],
            _CLIENTS,
            seconds,
            lambda _: tf.device("/GPU:0"),
        )
    if wrong:
        raise RuntimeError(f"{wrong} of {load.calls} results are not those of one thread")
    p50, p99, highest = load.percentiles
    figures = {"per_second": load.calls_per_second, "p50_ms": p50, "p99_ms": p99}
    print(json.dumps({**figures, "highest_ms": highest}))


if __name__ == "__main__":
    main(float(sys.argv[1]))

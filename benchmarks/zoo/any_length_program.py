# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Serves BERT with sentences of any length: python -m zoo.any_length_program SECONDS [LENGTH].

Run it in benchmarks/, with none of the runtime's variables, and with those of stream groups,
capture and `TF_MULTI_STREAM_CAPTURE_LENGTHS`. Each of 16 threads sends batches whose sentences have
1 to LENGTH (64) tokens, and compares each result with that of the function without capture: within
0.0001, as another length may give other last bits. The output is JSON.
"""

import json
import os
import sys
from typing import Any

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # read when TensorFlow is imported

import numpy as np
import tensorflow as tf
from client_threads import run_clients

from zoo import models
from zoo.sizes import BATCH

_CLIENTS, _TURNS = 16, 12


def main(seconds: float, longest: int = 64) -> None:
    """Measures the model."""
    random = np.random.RandomState(1)
    with tf.device("/GPU:0"):  # a real GPU does not need it
        made = models.make("Hugging Face: Bert")

        def signature(input_ids: Any, attention_mask: Any) -> Any:
            return made.call({"input_ids": input_ids, "attention_mask": attention_mask}).logits

        specs = [tf.TensorSpec([None, None], tf.int32)] * 2
        plain = tf.cuda.captured(tf.function(signature, input_signature=specs), mode="off")
        queries = [
            (
                random.randint(0, 2000, (BATCH, length)).astype(np.int32),
                (np.arange(length) < random.randint(1, length + 1, (BATCH, 1))).astype("i4"),
            )
            for length in range(1, longest + 1)
        ]
        right = [plain(*map(tf.constant, query)).numpy() for query in queries]
        function = tf.function(signature, input_signature=specs)
        if len(tf.cuda.stream_stats()) > 1:
            serve = tf.cuda.serving_callable(function.get_concrete_function())
        else:

            def serve(*query: Any) -> Any:
                return function(*map(tf.constant, query)).numpy()

        for _ in range(_TURNS):
            for query in queries:
                serve(*query)
        worst = [0.0] * _CLIENTS
        order = [random.permutation(longest) for _ in range(_CLIENTS)]

        def call(client: int, count: int) -> None:
            i = order[client][count % longest]
            difference = np.abs(serve(*queries[i]) - right[i]).max()
            worst[client] = max(worst[client], float(difference))

        load = run_clients(call, _CLIENTS, seconds, lambda _: tf.device("/GPU:0"))
    if max(worst) > 1e-4:
        raise RuntimeError(f"a result differs by {max(worst)}")
    p50, p99, highest = load.percentiles
    groups = tf.cuda.stream_stats()
    figures = {
        "calls_per_second": load.calls_per_second,
        "p50_ms": p50,
        "p99_ms": p99,
        "highest_ms": highest,
        "worst_difference": max(worst),
        "recordings": sum(group.recordings for group in groups),
        "recordings_mib": sum(group.recording_bytes for group in groups) / 2**20,
        "replayed": sum(g.steps_replayed for g in groups)
        / max(1, sum(g.steps_started for g in groups)),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))

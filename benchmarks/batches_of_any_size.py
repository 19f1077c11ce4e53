# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""Serves batches of any size from several threads, and compares every result.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        TF_MULTI_STREAM_CAPTURE_BATCHES=8,16,24,32 \
        python benchmarks/batches_of_any_size.py [--most 32] [--threads 16] [--seconds 3]

Without `TF_MULTI_STREAM_CAPTURE_BATCHES` each size has a recording of its own. Each result has to
have the bits of its batch by itself, or, if batches are padded, of its rows in the padded batch.
The model is that of frozen_model.py.

Exit status: 0, 1 if a result was wrong.
"""

from __future__ import annotations

import argparse
import bisect
import os
import sys

import numpy as np
import tensorflow as tf
from client_threads import run_clients
from frozen_model import MODEL, FrozenModel

GPU = "/GPU:0"
VARIABLE = "TF_MULTI_STREAM_CAPTURE_BATCHES"


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=str(MODEL), help="a frozen graph of make_model.py")
    parser.add_argument("--most", type=int, default=32, help="rows of the largest batch")
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--warm", type=float, default=1, help="seconds before")
    options = parser.parse_args(arguments)
    padded = sorted(int(rows) for rows in os.environ.get(VARIABLE, "").split(",") if rows)
    model = FrozenModel(options.model)
    (rows,) = model.inputs(max([options.most, *padded]), 1)
    with tf.device(GPU):
        serve = tf.cuda.serving_callable(model.predict)
        # They run as always, the first time of each size.
        expected = {size: serve(rows[:size]) for size in {*range(1, options.most + 1), *padded}}
    sizes = np.random.default_rng(5).integers(1, options.most + 1, (options.threads, 4096))
    wrong = [0] * options.threads

    def call(number: int, count: int) -> None:
        size = sizes[number, count % sizes.shape[1]]
        result = serve(rows[:size])
        alone = expected[size]
        exact = result.tobytes() == alone.tobytes()
        if not exact and padded and size < padded[-1]:
            of = expected[padded[bisect.bisect_left(padded, size)]]
            exact = result.tobytes() == of[:size].tobytes()
        wrong[number] += result.shape != alone.shape or not exact

    run_clients(call, options.threads, options.warm, lambda _: tf.device(GPU))
    load = run_clients(call, options.threads, options.seconds, lambda _: tf.device(GPU))
    stats = tf.cuda.stream_stats()
    print(f"batches of 1 to {options.most} rows, padded to {padded or 'none'}: {load}")
    print(
        f"{load.calls} results compared, {sum(wrong)} wrong;"
        f" {sum(group.recordings for group in stats)} recordings of"
        f" {sum(group.recording_bytes for group in stats) / 2**20:.1f} MiB,"
        f" {sum(group.steps_replayed for group in stats)} of"
        f" {sum(group.steps_started for group in stats)} steps replayed"
    )
    return int(sum(wrong) > 0)


if __name__ == "__main__":
    sys.exit(main())

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
"""Does it pay to capture a graph in pieces, on both sides of an op that cannot be captured?

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto python3 captured_pieces.py

Two halves of 50 small layers each, in 10 branches, and between them the rows of positive sum, which
the GPU has to tell the host the number of. It is called in three ways: whole; the halves and the
middle by themselves, by three calls, as a user can who splits the model; and the halves alone, with
nothing between, which no way of capturing pieces can pass. Prints a line of CSV for each.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from client_threads import run_checked

GPU = "/GPU:0"
BATCH, WIDTH, BRANCHES, LAYERS = 16, 64, 10, 5
INPUTS = 8
RANDOM = np.random.default_rng(7)
ROWS = [tf.TensorSpec([BATCH, WIDTH], tf.float32)]

Rows = Callable[[Any], Any]


def half(seed: int) -> Rows:
    """Branches of small layers, and their mean."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=[BRANCHES, LAYERS, WIDTH, WIDTH]).astype(np.float32) / 8

    def run(x: Any) -> Any:
        branches = []
        for branch in weights:
            y = x
            for layer in branch:
                y = tf.math.sin(tf.nn.relu(y @ layer) + 0.1)
            branches.append(y)
        return tf.add_n(branches) / BRANCHES

    return run


def middle(x: Any) -> Any:
    """Rows of positive sum; zeros in place of the others."""
    rows = tf.where(tf.reduce_sum(x, axis=1) > 0)
    return tf.scatter_nd(rows, tf.gather(x, rows[:, 0]), tf.shape(x, out_type=tf.int64))


def served(*parts: Rows) -> Rows:
    """One serving callable that runs some functions one after another."""

    def run(x: Any) -> Any:
        with tf.device(GPU):
            for part in parts:
                x = part(x)
            return tf.identity(x)

    callable_: Rows = tf.cuda.serving_callable(tf.function(run, input_signature=ROWS))
    return callable_


def ways() -> dict[str, Rows]:
    """Each way's name, and a call of it."""
    first, last = half(1), half(2)
    pieces = [served(first), served(middle), served(last)]

    def in_pieces(x: Any) -> Any:
        for piece in pieces:
            x = piece(x)
        return x

    return {
        "whole": served(first, middle, last),
        "three calls": in_pieces,
        "nothing between": served(first, last),
    }


def steps() -> tuple[int, int]:
    """Steps that were started so far, and those of them that were replayed."""
    groups = tf.cuda.stream_stats()
    return sum(group.steps_started for group in groups), sum(g.steps_replayed for g in groups)


def measure(call: Rows, inputs: list[np.ndarray], threads: int, seconds: float) -> tuple[str, int]:
    """Calls from several threads; returns what to print, and how many results were wrong."""
    with tf.device(GPU):
        for _ in range(3):
            expected = [call(x).tobytes() for x in inputs]
    load_it = functools.partial(
        run_checked, call, inputs, expected, threads, around=lambda _: tf.device(GPU)
    )
    load_it(seconds / 2)  # records
    before = steps()
    load, wrong = load_it(seconds)
    started, replayed = (after - then for after, then in zip(steps(), before, strict=True))
    steps_a_call = f"{started / load.calls:.2f},{replayed / load.calls:.2f}"
    return f"{load.csv},{wrong},{steps_a_call}", wrong


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,16")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args(arguments)
    inputs = [RANDOM.normal(size=[BATCH, WIDTH]).astype(np.float32) for _ in range(INPUTS)]
    total = 0
    print(
        "way,threads,calls_per_second,p50_ms,p99_ms,longest_ms,cpu_us,results,wrong,"
        "steps_a_call,replayed_a_call"
    )
    for name, call in ways().items():
        for threads in (int(number) for number in options.threads.split(",")):
            text, wrong = measure(call, inputs, threads, options.seconds)
            print(f"{name},{threads},{text}", flush=True)
            total += wrong
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())

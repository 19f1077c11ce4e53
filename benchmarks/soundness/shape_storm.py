# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Does capture pay, or cost, where inputs have hundreds of lengths?

Threads call a model of attention and dense layers with sequences whose lengths are drawn by Zipf's
law from as many as are asked for. The function that is captured and the same one that is not take
turns, a slice each, so that their throughputs compare. Each result is compared, bit by bit, with
what the function gives without capture; memory is looked at each second.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/soundness/shape_storm.py --minutes 10

Prints a line of JSON. Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing.

Exit status: 0; 1 if a result is wrong, or on a GPU if captured calls reach less than `--least` of
the others' throughput or memory grows; 2 if the command line is not understood.
"""

import argparse
import pathlib
import random
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from served import (
    GPU,
    WIDTH,
    layers,
    least_median_most,
    memory_report,
    total,
    watch_memory,
)

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from client_threads import run_checked
from programs import above_zero, end, verdict_of, whole

LAYERS = 4
DRAWN = 8192  # lengths that clients take in turn
CAPTURED, PLAIN = "auto", "off"


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--minutes", type=above_zero, default=10.0, help="of all slices together [10]")
    add("--slice-seconds", type=above_zero, default=5.0, help="of one slice [5]")
    add("--lengths", type=whole(2, 4096), default=512, help="how many there are [512]")
    add("--exponent", type=above_zero, default=1.1, help="of Zipf's law [1.1]")
    add("--threads", type=whole(1, 256), default=16, help="clients [16]")
    add("--seed", type=whole(0, 10**9), default=1, help="of lengths and inputs [1]")
    add("--least", type=float, default=0.95, help="of the throughput without capture [0.95]")
    return parser.parse_args(arguments)


def draw_lengths(count: int, exponent: float, seed: int) -> list[int]:
    """Draws lengths from 1 to `count`; which of them are frequent is drawn, too."""
    draw = random.Random(seed)
    lengths = list(range(1, count + 1))
    draw.shuffle(lengths)
    weights = [1 / rank**exponent for rank in range(1, count + 1)]
    return draw.choices(lengths, weights, k=DRAWN)


def make_callables(seed: int) -> dict[str, Any]:
    """Makes one model as two functions: captured, and not."""
    with tf.device(GPU):
        weights = [tf.Variable(w) for w in layers(seed, LAYERS)]

    def callable_of(mode: str) -> Any:
        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def model(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                for w in weights:
                    attention = tf.nn.softmax(tf.matmul(x, x, transpose_b=True))
                    x = tf.tanh(tf.matmul(tf.matmul(attention, x), w)) + x
                return x[:1]

        return tf.cuda.serving_callable(tf.cuda.captured(mode=mode)(model))

    return {mode: callable_of(mode) for mode in (CAPTURED, PLAIN)}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Runs the slices; returns the line to print."""
    call = make_callables(options.seed)
    draw = np.random.default_rng(options.seed)
    lengths = draw_lengths(options.lengths, options.exponent, options.seed)
    of_length = {n: draw.normal(size=[n, WIDTH]).astype(np.float32) for n in sorted(set(lengths))}
    with tf.device(GPU):
        bits = {n: call[PLAIN](x).tobytes() for n, x in of_length.items()}
    rates: dict[str, list[float]] = {CAPTURED: [], PLAIN: []}
    calls = {CAPTURED: 0, PLAIN: 0}
    wrong, order = 0, [PLAIN, CAPTURED]
    until = time.monotonic() + 60 * options.minutes
    watcher = watch_memory()
    while time.monotonic() < until or not rates[CAPTURED]:
        for mode in order:
            first = draw.integers(len(lengths))  # so that slices have different lengths
            turned = lengths[first:] + lengths[:first]
            load, bad = run_checked(
                call[mode],
                [of_length[n] for n in turned],
                [bits[n] for n in turned],
                options.threads,
                options.slice_seconds,
                lambda _: tf.device(GPU),
            )
            rates[mode].append(load.calls_per_second)
            calls[mode] += load.calls
            wrong += bad
        order.reverse()
    watcher.stop()
    pairs = [a / b for a, b in zip(rates[CAPTURED], rates[PLAIN], strict=True)]
    return {
        "lengths": options.lengths,
        "lengths_that_came": len(of_length),
        "threads": options.threads,
        "slices": len(pairs),
        "calls": calls,
        "wrong": wrong,
        "calls_per_second": {mode: least_median_most(each) for mode, each in rates.items()},
        "ratio": round(statistics.median(rates[CAPTURED]) / statistics.median(rates[PLAIN]), 4),
        "ratio_of_slices": {"min": round(min(pairs), 4), "max": round(max(pairs), 4)},
        "replayed": total("steps_replayed"),
        "recordings_made": total("recordings_made"),
        "recordings": total("recordings"),
        "recording_mib": round(total("recording_bytes") / 2**20, 1),
        **memory_report(watcher.samples),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    found = run(options)
    slow = f"captured calls reach {found['ratio']} of the others' throughput"
    return int(verdict_of(found, slow if found["ratio"] < options.least else ""))


if __name__ == "__main__":
    end(main())

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the programs that serve share: layers, what the runtime has counted, memory over time."""

import pathlib
import statistics
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from watcher import Sample, Watcher, growth, take_sample

GPU = "/GPU:0"
WIDTH = 64
# Growth of memory that is not flat: both in MiB, and as a fraction of the least.
MOST_MIB, MOST_GROWTH = 24.0, 0.05
FIGURES = ("heap_mib", "group_mib", "resident_mib")


def layers(seed: int, count: int) -> np.ndarray:
    """Weights of dense layers, an array [count, WIDTH, WIDTH]."""
    draw = np.random.default_rng(seed).normal(size=[count, WIDTH, WIDTH])
    return (draw / 8).astype(np.float32)


def save_layers(path: str, weights: Sequence[np.ndarray]) -> None:
    """Saves a model of dense layers, whose signature has an argument `x` and a result `y`."""
    module = tf.Module()
    module.weights = [tf.Variable(w) for w in weights]

    @tf.function(input_signature=[tf.TensorSpec([None, len(weights[0])], name="x")])
    def serve(x: tf.Tensor) -> dict[str, tf.Tensor]:
        for w in module.weights:
            x = tf.tanh(tf.matmul(x, w))
        return {"y": x}

    tf.saved_model.save(module, path, signatures={"serving_default": serve})


def total(field: str) -> int:
    """A figure of tf.cuda.stream_stats, of all stream groups together."""
    return sum(getattr(group, field) for group in tf.cuda.stream_stats())


def least_median_most(values: Sequence[float]) -> dict[str, float]:
    """The least, the median and the most, rounded."""
    three = {"min": min(values), "median": statistics.median(values), "max": max(values)}
    return {name: round(float(value), 1) for name, value in three.items()}


def watch_memory() -> Watcher:
    """Takes a sample of this process's memory each second, until it is stopped."""
    return Watcher(float("inf"), lambda: take_sample(tf.cuda.stream_stats), print)


def memory_report(samples: Sequence[Sample]) -> dict[str, Any]:
    """The least, median and most MiB, and what has grown of malloc and the stream groups."""
    values = {name: [getattr(sample, name) for sample in samples] for name in FIGURES}
    grown = []
    for name in FIGURES[:2]:
        found = growth([sample.seconds for sample in samples], values[name])
        most = max(MOST_MIB, MOST_GROWTH * min(values[name]))
        if found is not None and found.steady and found.in_all > most:
            grown.append(f"{name} grew by {found.in_all:.0f}")
    return {
        "memory": {name: least_median_most(of_name) for name, of_name in values.items()},
        "grown": "; ".join(grown),
    }

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What do the clients of one model notice while another one is loaded again and again?

Threads call two SavedModels in one process, as those of a model server do. First both are as they
are; then one is loaded again every `--pause` seconds, in turn in one of two versions: the new one
is called until it is captured, calls go to it, and the old one is dropped. Each result has to be,
bit by bit, that of a version which was current during the call.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/soundness/model_reloads.py --reloads 50

Prints a line of JSON. Needs a GPU, or TF_MULTI_STREAM_EMULATED_GPUS=1, of which times mean nothing.

Exit status: 0; 1 if a result is wrong, or on a GPU if the other model's 99th percentile is more
than `--most` times its own without reloads or memory grows; 2 if the command line is not
understood.
"""

import argparse
import gc
import os
import pathlib
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from served import GPU, WIDTH, layers, memory_report, save_layers, total, watch_memory

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from client_threads import Load, run_clients
from programs import above_zero, end, verdict_of, whole

LAYERS, ROWS, INPUTS = 24, 16, 8
VERSIONS = 2
WARM_CALLS = 3  # on each stream group: two run as always, the third is recorded


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--reloads", type=whole(1, 10**6), default=50, help="how many [50]")
    add("--pause", type=above_zero, default=2.0, help="seconds between two [2]")
    add("--quiet", type=above_zero, default=30.0, help="seconds before the first [30]")
    add("--threads", type=whole(2, 256), default=8, help="clients, half of each model's [8]")
    add("--most", type=float, default=2.0, help="times the 99th percentile without reloads [2]")
    return parser.parse_args(arguments)


def load(path: str) -> Any:
    """Loads a model and calls it until it is captured on each group; returns its callable."""
    with tf.device(GPU):
        loaded = tf.saved_model.load(path)
        call = tf.cuda.serving_callable(loaded.signatures["serving_default"])
        for group in range(tf.cuda.stream_group_count()):
            with tf.cuda.stream_group(group):
                for _ in range(WARM_CALLS):
                    call(x=np.zeros([ROWS, WIDTH], np.float32))
    return call


class Served:
    """A model that is served, first from the first folder, and the bits of each version."""

    def __init__(self, paths: Sequence[str], inputs: Sequence[np.ndarray]) -> None:
        self._paths, self._inputs = paths, inputs
        self._expected = []
        for path in paths:
            call = load(path)
            with tf.device(GPU):
                self._expected.append([call(x=x)["y"].tobytes() for x in inputs])
        self._call = load(paths[0])
        self._begun = self._done = 0
        self.wrong = 0

    def reload(self) -> None:
        call = load(self._paths[(self._begun + 1) % len(self._paths)])
        self._begun += 1
        self._call = call
        self._done = self._begun
        gc.collect()

    def query(self, number: int, count: int) -> None:
        i = (number + count) % len(self._inputs)
        least = self._done
        found = self._call(x=self._inputs[i])["y"].tobytes()
        most = self._begun
        possible = range(least, min(most, least + len(self._paths) - 1) + 1)
        if all(found != self._expected[version % len(self._paths)][i] for version in possible):
            self.wrong += 1


def figures(of: Load) -> dict[str, float]:
    """Throughput and latencies."""
    times = {f"{n}_ms": t for n, t in zip(("p50", "p99", "longest"), of.percentiles, strict=True)}
    return {
        "calls_per_second": round(of.calls_per_second, 1),
        **{name: round(value, 3) for name, value in times.items()},
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Serves without and with reloads; returns the line to print."""
    # Dropping a model collects garbage. As in the model server, the objects of TensorFlow's import
    # are frozen, so that the collector skips them.
    gc.collect()
    gc.freeze()
    draw = np.random.default_rng(1)
    inputs = list(draw.normal(size=[INPUTS, ROWS, WIDTH]).astype(np.float32))
    seconds: list[float] = []
    ended = threading.Event()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as executor:
        paths = [os.path.join(folder, str(seed)) for seed in range(1 + VERSIONS)]
        for seed, path in enumerate(paths):
            save_layers(path, layers(seed, LAYERS))
        steady, reloaded = Served(paths[:1], inputs), Served(paths[1:], inputs)

        def clients(until: float | threading.Event) -> list[Load]:
            running = [
                executor.submit(
                    run_clients, m.query, options.threads // 2, until, lambda _: tf.device(GPU)
                )
                for m in (steady, reloaded)
            ]
            return [each.result() for each in running]

        def reloads() -> None:
            for _ in range(options.reloads):
                start = time.perf_counter()
                reloaded.reload()
                seconds.append(time.perf_counter() - start)
                time.sleep(options.pause)

        clients(min(2.0, options.quiet))  # kernels, and recordings
        quiet = clients(options.quiet)
        watcher = watch_memory()
        reloading = executor.submit(reloads)
        reloading.add_done_callback(lambda _: ended.set())
        during = clients(ended)
        reloading.result()
        watcher.stop()
    return {
        "reloads": len(seconds),
        "longest_reload_seconds": round(max(seconds), 3),
        "threads": options.threads,
        "calls": sum(each.calls for each in (*quiet, *during)),
        "wrong": steady.wrong + reloaded.wrong,
        "other_without_reloads": figures(quiet[0]),
        "other_during_reloads": figures(during[0]),
        "reloaded_during_reloads": figures(during[1]),
        "p99_ratio": round(during[0].percentiles[1] / quiet[0].percentiles[1], 3),
        "replayed": total("steps_replayed"),
        "recordings_made": total("recordings_made"),
        **memory_report(watcher.samples),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    found = run(options)
    slow = f"the other model's 99th percentile is {found['p99_ratio']} times its own without"
    return int(verdict_of(found, slow if found["p99_ratio"] > options.most else ""))


if __name__ == "__main__":
    end(main())

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
"""Serves a model from many threads while its weights change, and compares every result.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/changing_weights.py [--threads 16] [--seconds 60] [--change-ms 10]

The weights go to and fro between two versions: added to in place, and each `--assign-every`th time
assigned, which puts them into other memory. A result has to be, bit by bit, that of a version which
the weights had during the call. What each version gives is computed before, by a process of one
stream group that captures nothing.

Exit status: 0, 1 if a result was wrong.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf
from frozen_model import MODEL, FrozenModel

GPU = "/GPU:0"
STEP = 1 / 1024
INPUTS = 32


class Weights:
    """The model's weights, with the number of the version that they have."""

    def __init__(self, model: FrozenModel) -> None:
        self._weights = model.weights
        with tf.device(GPU):
            self._values = [tf.identity(self._weights), self._weights + STEP]
        self.begun = 0
        self.done = 0

    def change(self, assign: bool = False) -> None:
        """Gives them their next version."""
        self.begun += 1
        with tf.device(GPU):
            if assign:
                self._weights.assign(self._values[self.begun % 2])
            else:
                self._weights.assign_add(
                    tf.fill(self._weights.shape, [-STEP, STEP][self.begun % 2])
                )
        self.done = self.begun


def write_expected(path: str, model_path: str, batch: int) -> None:
    """Writes what both versions give, [2, INPUTS, ...]."""
    model = FrozenModel(model_path, changing=True)
    weights = Weights(model)
    expected = []
    for _ in range(2):
        expected.append(
            [model.predict(tf.constant(x)).numpy() for x in model.inputs(batch, INPUTS)]
        )
        weights.change()
    np.save(path, np.array(expected))


def expected_of(options: argparse.Namespace) -> np.ndarray:
    """Runs `write_expected` in a process of its own."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith("TF_MULTI_STREAM_CAPTURE")}
    settings["TF_GPU_STREAM_GROUP_COUNT"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "expected.npy")
        command = [sys.executable, __file__, "--write-expected", path]
        command += ["--model", options.model, "--batch", str(options.batch)]
        subprocess.run(command, env=settings, check=True)
        return np.load(path)


class Clients:
    """Threads that call a model while its weights change, and compare what it gives."""

    def __init__(self, options: argparse.Namespace, expected: list[list[bytes]]) -> None:
        model = FrozenModel(options.model, changing=True)
        self._options = options
        self._expected = expected
        self._inputs = model.inputs(options.batch, INPUTS)
        self._weights = Weights(model)
        with tf.device(GPU):
            self._serve = tf.cuda.serving_callable(model.predict)
        self._ended = threading.Event()
        self._calls = [0] * options.threads
        self._wrong = [0] * options.threads
        self._during_change = [0] * options.threads

    def _change(self) -> None:
        options = self._options
        while options.change_ms > 0 and not self._ended.wait(options.change_ms / 1000):
            self._weights.change(assign=self._weights.begun % options.assign_every == 0)

    def _client(self, number: int) -> None:
        weights, expected = self._weights, self._expected
        with tf.device(GPU):
            while not self._ended.is_set():
                i = (self._calls[number] + number) % INPUTS
                least = weights.done
                found = self._serve(self._inputs[i]).tobytes()
                most = weights.begun
                versions = range(least, min(most, least + 1) + 1)
                if not any(found == expected[version % 2][i] for version in versions):
                    self._wrong[number] += 1
                    if self._wrong[number] == 1:
                        print(f"wrong: input {i}, versions {least} to {most}", flush=True)
                self._calls[number] += 1
                self._during_change[number] += most > least

    def run(self) -> str:
        """Runs them; returns what they found."""
        threads = [
            threading.Thread(target=self._client, args=(i,)) for i in range(self._options.threads)
        ]
        threads.append(threading.Thread(target=self._change))
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        time.sleep(self._options.seconds)
        while min(self._calls) < self._options.calls and all(x.is_alive() for x in threads):
            time.sleep(0.01)
        self._ended.set()
        for thread in threads:
            thread.join()
        calls = sum(self._calls)
        return (
            f"{calls} results compared, {self.wrong} wrong,"
            f" {calls / (time.perf_counter() - start):.0f} a second; weights changed"
            f" {self._weights.done} times, during {sum(self._during_change)} calls"
        )

    @property
    def wrong(self) -> int:
        """How many results were wrong."""
        return sum(self._wrong)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--model", default=str(MODEL), help="a frozen graph of make_model.py")
    add("--batch", type=int, default=16)
    add("--threads", type=int, default=16)
    add("--seconds", type=float, default=60)
    add("--calls", type=int, default=0, help="of each thread, at least, however long that takes")
    add("--change-ms", type=float, default=10, help="pause between two changes; 0: no change")
    add("--assign-every", type=int, default=100, help="of the changes, which one assigns")
    add("--write-expected", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.write_expected:
        write_expected(options.write_expected, options.model, options.batch)
        return 0

    expected = [[y.tobytes() for y in version] for version in expected_of(options)]
    clients = Clients(options, expected)
    print(clients.run())
    stats = tf.cuda.stream_stats()
    names = ("steps_replayed", "replays_verified", "recordings_made")
    print(
        ", ".join(f"{name} {sum(getattr(group, name) for group in stats)}" for name in names),
        f"in {max(group.longest_recording_micros for group in stats) / 1e3:.1f} ms at most",
    )
    return int(clients.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

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
"""How long a call holds Python's lock, and how many calls threads make in a second.

    TF_GPU_STREAM_GROUP_COUNT=4 python benchmarks/serving_callable.py [--threads 16] [--seconds 3]

With TF_MULTI_STREAM_EMULATED_GPUS=1, or on a GPU: a SavedModel's signature with arrays, and
`tf.cuda.serving_callable` of it. The model is one layer; with `--model FILE` a graph of
tensorflow/examples/multistream/make_model.py. The lock's time is CPU time of a call that does
nothing in C++, so that it does not depend on what else runs.

Meanwhile another thread, which makes no calls, sleeps for a millisecond at a time: how late it goes
on is how long it waits for the lock.

Exit status: 0; 1 if the results of both ways differ.
"""

import argparse
import contextlib
import ctypes
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf
from client_threads import run_clients
from frozen_model import FrozenModel

GPU = "/GPU:0"


class Model(tf.Module):
    """One layer."""

    def __init__(self) -> None:
        self.weights = tf.Variable(tf.random.normal([64, 10]))

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, "x")])
    def serve(self, x: Any) -> Any:
        """Scores of rows."""
        with tf.device(GPU):
            return {"y": tf.nn.softmax(tf.matmul(x, self.weights))}


def save_and_load(model: Any, function: Any) -> tuple[Any, Any]:
    """Returns a SavedModel, which has the variables, and its signature of this function."""
    with tempfile.TemporaryDirectory() as folder, tf.device(GPU):
        tf.saved_model.save(model, folder, signatures=function)
        loaded = tf.saved_model.load(folder)
    return loaded, loaded.signatures["serving_default"]


def micros_of(call: Callable[[], Any], calls: int = 20000) -> float:
    """CPU time of one call on this thread, in microseconds."""
    call()
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls * 1e6


@contextlib.contextmanager
def another_thread() -> Iterator[list[float]]:
    """Runs a thread that sleeps, 1 ms at a time; gives how late it went on, in milliseconds."""
    late: list[float] = []
    ended = threading.Event()

    def sleep() -> None:
        while not ended.is_set():
            start = time.perf_counter()
            time.sleep(0.001)
            late.append((time.perf_counter() - start) * 1e3 - 1)

    thread = threading.Thread(target=sleep)
    thread.start()
    try:
        yield late
    finally:
        ended.set()
        thread.join()


def main() -> None:
    """Measures both ways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--model", default="", help="a frozen graph")
    parser.add_argument("--compiled", action="store_true", help="by XLA, which needs --model")
    options = parser.parse_args()
    if options.model:
        frozen = FrozenModel(options.model, compiled=options.compiled)
        model, function, x = frozen, frozen.predict, frozen.inputs(16, 1)[0]
    else:
        model = Model()
        function, x = model.serve, np.random.default_rng(0).normal(size=(16, 64))
    x = x.astype(function.input_signature[0].dtype.as_numpy_dtype)
    _keep, signature = save_and_load(model, function)
    serve = tf.cuda.serving_callable(signature)
    name, result = function.input_signature[0].name, next(iter(signature.structured_outputs))
    ways: dict[str, Callable[[], Any]] = {
        "signature": lambda: np.asarray(signature(**{name: tf.constant(x)})[result]),
        "serving_callable": lambda: serve(**{name: x})[result],
    }
    if len({call().tobytes() for call in ways.values()}) != 1:
        raise SystemExit("The results differ.")
    for call in ways.values():  # the first calls on each group take long
        for _ in range(4 * tf.cuda.stream_group_count()):
            call()

    nothing = ctypes.CDLL(None)["getuid"]
    nothing.argtypes, nothing.restype = serve._call.argtypes, None
    real, serve._call = serve._call, nothing
    print(f"serving_callable: {micros_of(ways['serving_callable']):.1f} us with Python's lock")
    serve._call = real
    for threads in sorted({1, max(1, options.threads // 2), options.threads}):
        for way, call in ways.items():
            with another_thread() as late:
                load = run_clients(
                    lambda *_, call=call: call(), threads, options.seconds, lambda _: tf.device(GPU)
                )
            p50, p99 = np.percentile(late, [50, 99])
            print(
                f"{threads:3} threads, {way}: {load}; another thread late by p50 {p50:.3f}, p99"
                f" {p99:.3f}, longest {max(late):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

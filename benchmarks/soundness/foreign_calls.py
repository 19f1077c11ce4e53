# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Are results right, and recordings made, while other code of the process calls CUDA as it likes?

Threads call a captured model with ever new numbers of rows, and one trains a variable, so that
steps are recorded all the time. Beside them a thread makes CUDA calls of one kind
(foreign_cuda.py), then of the next. Each result is compared, bit by bit, with what the model gives
without capture, and each call has to succeed.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/soundness/foreign_calls.py

Prints a line of JSON for each kind. Needs a GPU; with TF_MULTI_STREAM_EMULATED_GPUS=1 there are no
such calls, and times mean nothing. With --pass-gate, and TF_MULTI_STREAM_TEST_FAULTS=true, calls
that wait for all of the GPU end the captures that run, and fail: no result may be wrong then. The
driver itself may crash where such a call meets a capture.

Exit status: 0; 1 if a result is wrong, a call failed or on a GPU nothing was recorded; 2 if the
command line is not understood.
"""

import argparse
import json
import pathlib
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf
from foreign_cuda import GLOBAL_CAPTURES, ForeignCuda
from served import GPU, WIDTH, layers, total
from tensorflow.python.multistream import loader

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from client_threads import run_checked
from programs import TIMES_MEAN_NOTHING, above_zero, end, gpus_are_emulated, verdict, whole

LAYERS = 20
ROWS = 256  # the most
CALLS_OF_SIZE = 5  # of a group, one after another: from the third on there is a recording
NO_CALLS = "none"
PASS_GATE = 4  # TestFault::kPassGate


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--seconds", type=above_zero, default=3.0, help="of each kind of call [3]")
    add("--threads", type=whole(1, 256), default=4, help="clients [4]")
    add("--kinds", nargs="*", default=[], help="of calls [all]")
    add("--pass-gate", action="store_true", help="waits for the GPU end captures")
    return parser.parse_args(arguments)


class Bench:
    """Calls dense layers, and trains a counter, beside calls of one kind after another."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        with tf.device(GPU):
            self._weights = [tf.constant(w) for w in layers(1, LAYERS)]
            self._bias = tf.Variable(tf.zeros([WIDTH]))
            self._counter = tf.Variable(tf.zeros([]))
        draw = np.random.default_rng(2)
        plain = self._inference("off")
        self._inputs: list[np.ndarray] = []
        self._expected: list[bytes] = []
        for rows in range(1, ROWS + 1):
            x = draw.normal(size=[rows, WIDTH]).astype(np.float32)
            again = CALLS_OF_SIZE * max(1, len(tf.cuda.stream_stats()))
            self._inputs += [x] * again
            self._expected += [plain(x).tobytes()] * again

    def _inference(self, mode: str) -> Callable[[np.ndarray], np.ndarray]:
        """Makes a function of its own for `mode` of `tf.cuda.captured`."""

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def infer(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                for weights in self._weights:
                    x = tf.tanh(tf.matmul(x, weights)) + self._bias
                return x

        call: Callable[[np.ndarray], np.ndarray] = tf.cuda.serving_callable(
            tf.cuda.captured(mode=mode)(infer)
        )
        return call

    def _training(self) -> Any:
        """Makes a function that adds one to the counter."""

        @tf.cuda.captured
        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH])])
        def train(x: tf.Tensor) -> tf.Tensor:
            with tf.device(GPU):
                self._counter.assign_add(1.0)
                return tf.reduce_sum(x)

        return train

    def run(
        self, kind: str, calls: Callable[[], object], bind: Callable[[], object]
    ) -> dict[str, Any]:
        """Runs the model beside `calls`, whose thread calls `bind` first; returns what to print."""
        ended = threading.Event()
        errors: list[str] = []
        trained = made_calls = 0

        def train() -> None:
            nonlocal trained
            step = self._training()
            try:
                while not ended.is_set():
                    step(tf.constant(self._inputs[trained % len(self._inputs)]))
                    trained += 1
            except tf.errors.OpError as error:
                errors.append(f"{type(error).__name__}: {str(error)[:300]}")

        def call() -> None:
            nonlocal made_calls
            bind()
            while not ended.is_set():
                calls()
                made_calls += 1

        recorded, replayed = total("recordings_made"), total("steps_replayed")
        count = float(self._counter.numpy())
        options = self._options
        with ThreadPoolExecutor(2) as executor:
            beside = [executor.submit(each) for each in (train, call)]
            try:
                infer = self._inference("auto")
                load, wrong = run_checked(
                    infer, self._inputs, self._expected, options.threads, options.seconds
                )
            finally:
                ended.set()
        for each in beside:
            each.result()
        return {
            "kind": kind,
            "rounds_of_calls": made_calls,
            "inferences": load.calls,
            "wrong": wrong,
            "trained": trained,
            "lost": trained - (float(self._counter.numpy()) - count),
            "errors": errors,
            "recordings_made": total("recordings_made") - recorded,
            "replayed": total("steps_replayed") - replayed,
        }


def problems_of(found: dict[str, Any], codes: dict[str, int], pass_gate: bool) -> list[str]:
    """The problems in the findings beside calls that returned `codes`."""
    problems = [f"{found[name]} {name}" for name in ("wrong", "lost") if found[name]]
    problems += found["errors"]
    if not gpus_are_emulated() and not pass_gate:
        if found["kind"] != GLOBAL_CAPTURES:
            failed = {call: n for call, n in codes.items() if not call.endswith(": 0")}
            problems += [f"{call} ({n} times)" for call, n in failed.items()]
        if not found["recordings_made"]:
            problems.append("nothing was recorded")
    return [f"{found['kind']}: {problem}" for problem in problems]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    options = parse_arguments(arguments)
    bench = Bench(options)
    pause = threading.Event()
    kinds: dict[str, Callable[[], object]] = {NO_CALLS: lambda: pause.wait(0.01)}
    codes: dict[str, int] = {}
    bind: Callable[[], object] = pause.is_set
    if gpus_are_emulated():
        print(TIMES_MEAN_NOTHING, file=sys.stderr)
    else:
        cuda = ForeignCuda()
        kinds, codes, bind = kinds | cuda.kinds(), cuda.codes, cuda.bind
        for kind, why in cuda.left_out.items():
            print(f"left out: {kind}: {why}", file=sys.stderr)
    if unknown := set(options.kinds) - set(kinds):
        print(f"--kinds {' '.join(sorted(unknown))}: there are {', '.join(kinds)}", file=sys.stderr)
        return 2
    if options.pass_gate and not loader.library.TFMS_InjectTestFault(PASS_GATE, 1 << 30):
        print("--pass-gate needs TF_MULTI_STREAM_TEST_FAULTS=true", file=sys.stderr)
        return 2
    problems: list[str] = []
    for kind in options.kinds or kinds:
        codes.clear()
        found = bench.run(kind, kinds[kind], bind)
        print(json.dumps(found | {"codes": dict(codes)}), flush=True)
        problems += problems_of(found, codes, options.pass_gate)
    return int(verdict(problems))


if __name__ == "__main__":
    end(main())

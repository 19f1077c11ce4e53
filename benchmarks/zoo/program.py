# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures one model in this process: python -m zoo.program MODEL MODE SECONDS RESULTS.

MODE is `inference` (calls of a `tf.function`), `training` (Keras's `train_on_batch` with Adam),
`fit` (the same by `fit` over a `tf.data.Dataset`; a time is an epoch's, by step), `fit_xla` (the
same with `jit_compile=True`), `fit_10` (with `steps_per_execution=10`) or `serving` (16 threads
call a signature with a batch of any size; with stream groups, by `tf.cuda.serving_callable`). The
file RESULTS gets the results, or losses, of the same inputs in every process. The last line of the
output is the figures as JSON.
"""

import contextlib
import importlib
import json
import os
import pathlib
import sys
import time
from typing import Any

import numpy as np
from client_threads import run_checked

_LEGACY = ("DeepCTR", "Hugging Face", "TensorFlow Recommenders")
_INPUTS = 6
_COMPARED = 10  # calls of each input, in which recordings are made and replayed
_CLIENTS = 16
_STEPS = 60  # of an epoch


def main(name: str, mode: str, seconds: float, results: pathlib.Path) -> None:
    """Measures the model; prints one line of JSON."""
    is_legacy = name.split(":", maxsplit=1)[0] in _LEGACY
    if is_legacy:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # read when TensorFlow is imported
    tf = importlib.import_module("tensorflow")
    with tf.device("/GPU:0"):  # a real GPU does not need it
        made = importlib.import_module("zoo.models").make(name)
        inputs = [made.inputs() for _ in range(_INPUTS)]
        options: dict[str, Any] = {"jit_compile": mode == "fit_xla"}  # Keras 3 compiles by itself
        if mode == "fit_10":
            options["steps_per_execution"] = 10
        epochs = None
        epochs_are_timed = mode.startswith("fit")
        if mode == "training":
            step = _training(tf, made.keras, inputs, options)
        elif epochs_are_timed:
            step, epochs = _fit(tf, made.keras, inputs, options)
        elif mode == "serving":
            step = _serving(tf, made.call, inputs)
        else:
            step = _inference(tf, made.call, inputs)
        compared = _INPUTS if epochs_are_timed else _COMPARED * _INPUTS
        found = [step(i % _INPUTS) for i in range(compared)]
        np.savez(results, *(x for of_step in found for x in of_step))
        if mode == "serving":
            load, wrong = run_checked(
                lambda i: step(int(i))[0],
                np.arange(_INPUTS),
                [found[i][0].tobytes() for i in range(_INPUTS)],
                _CLIENTS,
                seconds,
                lambda _: tf.device("/GPU:0"),
            )
            if wrong:
                raise RuntimeError(f"{wrong} of {load.calls} results are not those of one thread")
            times, seconds = load.milliseconds, load.seconds
        else:
            times = _times(step, seconds) if epochs is None else epochs(seconds)
            seconds = sum(times) / 1e3
        figures: dict[str, Any] = {
            "per_second": len(times) / seconds,
            "median_ms": float(np.median(times)),
            "p99_ms": float(np.percentile(times, 99)),
            "lowest_ms": float(np.min(times)),
            "highest_ms": float(np.max(times)),
        }
        with contextlib.suppress(RuntimeError):  # steps are not captured in this process
            report = tf.cuda.capture_report(lambda: step(0))
            figures["share"] = report.share
            ends = [x.end for x in report.counts if x.end != "replayed" and not x.is_piece]
            figures["in_the_way"] = ends[0].removeprefix("in pieces ") if ends else ""
    print(json.dumps(figures))


def _times(step: Any, seconds: float) -> list[float]:
    """How many milliseconds each step took that began within `seconds`."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(times) < _INPUTS:
        start = time.perf_counter()
        step(len(times) % _INPUTS)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _arrays(tf: Any, result: Any) -> list[Any]:
    return [x.numpy() for x in tf.nest.flatten(result) if hasattr(x, "numpy")]


def _inference(tf: Any, call: Any, inputs: list[Any]) -> Any:
    function = tf.function(call, reduce_retracing=True)
    tensors = [
        tf.nest.map_structure(lambda x: tf.constant(x) if isinstance(x, np.ndarray) else x, given)
        for given in inputs
    ]
    return lambda i: _arrays(tf, function(tensors[i]))


def _serving(tf: Any, call: Any, inputs: list[Any]) -> Any:
    """Calls of a signature, as a loaded SavedModel has it: by name, with a batch of any size."""

    def named(given: Any) -> dict[str, Any]:
        if isinstance(given, dict):
            return given
        return {f"x{i}": x for i, x in enumerate(given if isinstance(given, list) else [given])}

    def signature(**tensors: Any) -> Any:
        if isinstance(inputs[0], dict):
            result = call(tensors)
        else:
            flat = [tensors[f"x{i}"] for i in range(len(tensors))]
            result = call(flat if isinstance(inputs[0], list) else flat[0])
        return [x for x in tf.nest.flatten(result) if hasattr(x, "dtype")]

    specs = {
        name: tf.TensorSpec([None, *x.shape[1:]], tf.as_dtype(x.dtype), name)
        for name, x in named(inputs[0]).items()
    }
    concrete = tf.function(signature).get_concrete_function(**specs)
    arrays = [named(x) for x in inputs]
    if len(tf.cuda.stream_stats()) > 1:
        serve = tf.cuda.serving_callable(concrete)
        return lambda i: serve(**arrays[i])
    return lambda i: _arrays(tf, concrete(**{k: tf.constant(x) for k, x in arrays[i].items()}))


def _compile(tf: Any, model: Any, inputs: list[Any], options: dict[str, Any]) -> list[Any]:
    """Compiles the model for training; returns labels for each of the inputs."""
    outputs = model(tf.nest.map_structure(tf.constant, inputs[0]), training=False)
    outputs = tf.nest.flatten(outputs.logits if hasattr(outputs, "logits") else outputs)
    random = np.random.RandomState(1)
    labels = [
        tuple(random.randint(0, 2, tuple(x.shape)).astype(np.float32) for x in outputs)
        for _ in inputs
    ]
    model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss="mse", **options)
    return labels if len(outputs) > 1 else [of_output[0] for of_output in labels]


def _training(tf: Any, model: Any, inputs: list[Any], options: dict[str, Any]) -> Any:
    labels = _compile(tf, model, inputs, options)
    return lambda i: [np.ravel(model.train_on_batch(inputs[i], labels[i]))[:1]]


def _fit(tf: Any, model: Any, inputs: list[Any], options: dict[str, Any]) -> Any:
    """Returns a function that trains for an epoch, and one that trains for some seconds.

    The first returns the loss, the second the milliseconds of a step in each epoch.
    """
    labels = _compile(tf, model, inputs, options)
    batches = [
        (tuple(x) if isinstance(x, list) else x, y) for x, y in zip(inputs, labels, strict=True)
    ]
    with tf.device("/CPU:0"):
        stacked = tf.nest.map_structure(lambda *x: np.stack(x), *batches)
        dataset = tf.data.Dataset.from_tensor_slices(stacked).repeat().prefetch(2)

    class Epochs(tf.keras.callbacks.Callback):
        def __init__(self, seconds: float) -> None:
            super().__init__()
            self.end = time.monotonic() + seconds
            self.times: list[float] = []

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.start = time.perf_counter()

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.times.append((time.perf_counter() - self.start) * 1e3 / _STEPS)
            self.model.stop_training = time.monotonic() >= self.end

    def train(seconds: float) -> tuple[Any, list[float]]:
        epochs = Epochs(seconds)
        history = model.fit(
            dataset, steps_per_epoch=_STEPS, epochs=100_000, verbose=0, callbacks=[epochs]
        )
        return np.float32(history.history["loss"][-1]), epochs.times

    return lambda _: [train(0)[0]], lambda seconds: train(seconds)[1]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), pathlib.Path(sys.argv[4]))

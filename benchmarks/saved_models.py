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
"""Serves six kinds of SavedModels from several threads, and compares every result.

    TF_GPU_STREAM_GROUP_COUNT=8 TF_MULTI_STREAM_CAPTURE=auto \
        python benchmarks/saved_models.py [--models bert,mlp] [--threads 1,8,16] [--seconds 2]

The models have random weights. Each is called as its signature, and with `tf.cuda.serving_callable`
where there is one: the stock wheel runs this program as well. Every result has to have the bits of
an earlier one.

Exit status: 0, 1 if a result was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from client_threads import run_checked
from frozen_model import MODEL, FrozenModel

GPU = "/GPU:0"
INPUTS = 8
RANDOM = np.random.default_rng(7)

layers = keras.layers


def _bert() -> tuple[Any, list[np.ndarray]]:
    """4 layers of 64 tokens, 4 heads, width 256."""
    tokens = keras.Input((64,), dtype="int64")
    x = layers.Embedding(1000, 256)(tokens)
    for _ in range(4):
        attended = layers.MultiHeadAttention(4, 64, flash_attention=False)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        wide = layers.Dense(256)(layers.Dense(1024, activation="gelu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, wide]))
    model = keras.Model(tokens, layers.Dense(2)(x[:, 0]))
    return model, [RANDOM.integers(0, 1000, (1, 64)) for _ in range(INPUTS)]


def _images(model: Any, size: int) -> tuple[Any, list[np.ndarray]]:
    return model, [RANDOM.random((1, size, size, 3), np.float32) for _ in range(INPUTS)]


def _resnet() -> tuple[Any, list[np.ndarray]]:
    """ResNet50, one image."""
    return _images(keras.applications.ResNet50(weights=None), 224)


def _inception() -> tuple[Any, list[np.ndarray]]:
    """InceptionV3, one image."""
    return _images(keras.applications.InceptionV3(weights=None), 299)


def _dlrm() -> tuple[Any, list[np.ndarray]]:
    """26 tables, their products in pairs, 3 layers; batch 64."""
    ids = keras.Input((26,), dtype="int64")
    rows = [layers.Embedding(1000, 16)(ids[:, i]) for i in range(26)]
    stack = keras.ops.stack(rows, 1)
    pairs = keras.ops.matmul(stack, keras.ops.transpose(stack, (0, 2, 1)))
    x = layers.Concatenate()([layers.Flatten()(stack), layers.Flatten()(pairs)])
    for width in (128, 64):
        x = layers.Dense(width, activation="relu")(x)
    model = keras.Model(ids, layers.Dense(1, activation="sigmoid")(x))
    return model, [RANDOM.integers(0, 1000, (64, 26)) for _ in range(INPUTS)]


def _mlp() -> tuple[Any, list[np.ndarray]]:
    """Two layers; batch 16."""
    x = keras.Input((64,))
    model = keras.Model(x, layers.Dense(10)(layers.Dense(128, activation="relu")(x)))
    return model, [RANDOM.random((16, 64), np.float32) for _ in range(INPUTS)]


def _recommender() -> tuple[Any, list[np.ndarray]]:
    """The one of about 300 small kernels that multistream_inference serves; batch 16."""
    model = FrozenModel(str(MODEL))
    return lambda x, training: model.predict(x), model.inputs(16, INPUTS)


MODELS: dict[str, Callable[[], tuple[Any, list[np.ndarray]]]] = {
    "bert": _bert,
    "resnet50": _resnet,
    "inception": _inception,
    "dlrm": _dlrm,
    "mlp": _mlp,
    "recommender": _recommender,
}


def save(name: str, folder: str) -> list[np.ndarray]:
    """Builds and saves a model.

    Args:
        name: of `MODELS`.
        folder: gets it, with a signature of an argument `x` and a result `y`.

    Returns:
        Inputs.
    """
    with tf.device(GPU):
        model, inputs = MODELS[name]()

        @tf.function(input_signature=[tf.TensorSpec([None, *inputs[0].shape[1:]], inputs[0].dtype)])
        def serve(x: Any) -> Any:
            with tf.device(GPU):
                return {"y": tf.identity(model(x, training=False))}

        module = tf.Module()
        module.model, module.serve = model, serve
        tf.saved_model.save(module, folder, signatures=serve.get_concrete_function())
    return inputs


def load(name: str) -> tuple[Any, Any, list[np.ndarray]]:
    """Builds and saves a model, and loads it.

    Args:
        name: of `MODELS`.

    Returns:
        What keeps it, its signature, and inputs.
    """
    with tempfile.TemporaryDirectory() as folder, tf.device(GPU):
        inputs = save(name, folder)
        loaded = tf.saved_model.load(folder)
    return loaded, loaded.signatures["serving_default"], inputs


def measure(
    call: Callable[[np.ndarray], np.ndarray],
    inputs: list[np.ndarray],
    threads: int,
    seconds: float,
) -> tuple[str, int]:
    """Calls from several threads; returns what to print, and how many results were wrong."""
    with tf.device(GPU):
        for _ in range(3):
            expected = [call(x).tobytes() for x in inputs]
    load, wrong = run_checked(call, inputs, expected, threads, seconds, lambda _: tf.device(GPU))
    return f"{load.csv},{wrong}", wrong


def ways_of(signature: Any) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Ways to call a signature of one argument and the result `y`."""
    (name,) = signature.structured_input_signature[1]
    ways = {"signature": lambda x: signature(**{name: tf.constant(x)})["y"].numpy()}
    if hasattr(getattr(tf, "cuda", None), "serving_callable"):
        serve = tf.cuda.serving_callable(signature)
        ways["serving_callable"] = lambda x: serve(**{name: x})["y"]
    return ways


def replays() -> int:
    """Steps that were replayed so far; 0 with the stock wheel."""
    if not hasattr(tf, "cuda"):
        return 0
    return sum(group.steps_replayed for group in tf.cuda.stream_stats())


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", default="1,8,16")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args(arguments)
    names = options.models.split(",")
    if unknown := sorted(set(names) - set(MODELS)):
        parser.error(f"--models: there is no {unknown[0]!r}; there are {', '.join(MODELS)}")
    total = 0
    print(
        "model,call,threads,calls_per_second,p50_ms,p99_ms,longest_ms,cpu_us,results,wrong,replayed"
    )
    for name in names:
        _keep, signature, inputs = load(name)
        for way, call in ways_of(signature).items():
            for threads in (int(number) for number in options.threads.split(",")):
                before = replays()
                text, wrong = measure(call, inputs, threads, options.seconds)
                print(f"{name},{way},{threads},{text},{replays() - before}", flush=True)
                total += wrong
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())

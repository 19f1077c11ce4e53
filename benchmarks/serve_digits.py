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
r"""Trains a classifier of handwritten digits and serves it from several threads.

The digits are the 1,797 images of 8 x 8 pixels that scikit-learn carries. The
classifier is trained on the CPU, saved as a SavedModel, loaded on the GPU, and called
through its signature by `--threads` client threads.

    python benchmarks/serve_digits.py --threads 8

With TF_GPU_STREAM_GROUP_COUNT=4 the calls run on four stream groups of a GPU;
nothing in this file changes. It also runs on stock TensorFlow. Training and serving
can be two processes, and the outputs of one process can be compared with those of
another:

    python benchmarks/serve_digits.py train --out /tmp/digits
    python benchmarks/serve_digits.py serve --model /tmp/digits --save /tmp/stock.npy
    TF_GPU_STREAM_GROUP_COUNT=4 \\
        python benchmarks/serve_digits.py serve --model /tmp/digits --compare /tmp/stock.npy

Exit status: 0, 1 after an error or if an output differs, 2 if the command line is
not understood.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

try:
    from sklearn import datasets
except ImportError:
    datasets = None

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import itertools

import tensorflow as tf
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import tolerance, whole

SEED = 20260
TRAINING_IMAGES = 1297
HIDDEN = 64


@dataclasses.dataclass(frozen=True)
class Digits:
    """Images and their labels.

    Args:
        images: float32, [count, 64], pixels from 0 to 1.
        labels: int64, [count], from 0 to 9.
    """

    images: np.ndarray
    labels: np.ndarray


def load_digits() -> tuple[Digits, Digits]:
    """Loads the digits that scikit-learn carries.

    Returns:
        The training set (1,297 images) and the test set (500), in a fixed order.

    Raises:
        ImportError: scikit-learn is not installed.
    """
    if datasets is None:
        raise ImportError("the digits come with scikit-learn; run: pip install scikit-learn")
    images, labels = datasets.load_digits(return_X_y=True)
    images = (images / 16.0).astype(np.float32)
    labels = labels.astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    training, test = order[:TRAINING_IMAGES], order[TRAINING_IMAGES:]
    return Digits(images[training], labels[training]), Digits(images[test], labels[test])


class Classifier(tf.Module):
    """Two hidden layers; `serve` is its signature."""

    def __init__(self) -> None:
        super().__init__()
        random = np.random.default_rng(SEED)
        sizes = [64, HIDDEN, HIDDEN, 10]
        self.weights = [
            tf.Variable(random.normal(0, np.sqrt(2 / rows), (rows, columns)), dtype=tf.float32)
            for rows, columns in itertools.pairwise(sizes)
        ]
        self.biases = [tf.Variable(tf.zeros([columns])) for columns in sizes[1:]]

    def logits(self, images: tf.Tensor) -> tf.Tensor:
        """Returns a score for each image and digit."""
        x = images
        for weights, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = tf.nn.relu(x @ weights + bias)
        return x @ self.weights[-1] + self.biases[-1]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32, name="images")])
    def serve(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns a probability for each image and digit."""
        return {"probabilities": tf.nn.softmax(self.logits(images))}


def train(folder: str, epochs: int) -> float:
    """Trains the classifier on the CPU and saves it.

    Args:
        folder: where the SavedModel goes.
        epochs: passes over the training set.

    Returns:
        The accuracy on the test set, from 0 to 1.
    """
    training, test = load_digits()
    batch, rate, decay = 32, 0.05, 0.9
    random = np.random.default_rng(SEED)
    with tf.device("/CPU:0"):
        model = Classifier()
        parameters = [*model.weights, *model.biases]
        momenta = [tf.Variable(tf.zeros_like(parameter)) for parameter in parameters]

        @tf.function
        def step(images: tf.Tensor, labels: tf.Tensor) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(
                    tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model.logits(images))
                )
            gradients = tape.gradient(loss, parameters)
            for parameter, momentum, gradient in zip(parameters, momenta, gradients, strict=True):
                momentum.assign(decay * momentum + gradient)
                parameter.assign_sub(rate * momentum)

        for _ in range(epochs):
            order = random.permutation(len(training.labels))
            for start in range(0, len(order) - batch + 1, batch):
                chosen = order[start : start + batch]
                step(tf.constant(training.images[chosen]), tf.constant(training.labels[chosen]))
        guesses = np.argmax(model.logits(tf.constant(test.images)).numpy(), axis=1)
        tf.saved_model.save(model, folder, signatures={"serving_default": model.serve})
    return float(np.mean(guesses == test.labels))


@dataclasses.dataclass(frozen=True)
class Served:
    """What serving the test set gave.

    Args:
        probabilities: float32, [count, 10], the outputs of the first round.
        changed: calls whose output was not, bit by bit, that of the first round.
        calls: number of calls.
        seconds: first call's start to last call's end.
        accuracy: from 0 to 1.
    """

    probabilities: np.ndarray
    changed: int
    calls: int
    seconds: float
    accuracy: float


def serving_device() -> str:
    """The first GPU, if TensorFlow has one, an emulated one too; else the CPU."""
    return "/GPU:0" if tf.config.list_logical_devices("GPU") else "/CPU:0"


def serve(folder: str, threads: int, rounds: int, batch: int) -> Served:
    """Loads a SavedModel and serves the test set from client threads.

    Args:
        folder: the SavedModel.
        threads: number of client threads.
        rounds: times that the test set is served.
        batch: images of one call.

    Returns:
        The outputs and figures.
    """
    _, test = load_digits()
    # By itself, TensorFlow takes a GPU, but not an emulated one.
    device = serving_device()
    with tf.device(device):
        signature = tf.saved_model.load(folder).signatures["serving_default"]
    # The last batch is as large as the others: another shape could take another kernel,
    # which may round in another way.
    last = len(test.labels) - batch
    starts = [min(start, last) for start in range(0, len(test.labels), batch)]
    with tf.device(device):
        images = [tf.constant(test.images[start : start + batch]) for start in starts]
        signature(images=images[0])  # traces and allocates

    work = [(turn, index) for turn in range(rounds) for index in range(len(starts))]
    nothing = np.zeros((0, 10), np.float32)
    outputs = [nothing] * len(work)
    errors: list[Exception] = []
    start_line = threading.Barrier(threads + 1)

    def client(number: int) -> None:
        start_line.wait()
        try:
            for position in range(number, len(work), threads):
                if errors:
                    return
                with tf.device(device):
                    result = signature(images=images[work[position][1]])
                outputs[position] = result["probabilities"].numpy()
        except Exception as error:  # handed to the caller below
            errors.append(error)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
    for thread in clients:
        thread.start()
    start_line.wait()
    began = time.perf_counter()
    for thread in clients:
        thread.join()
    seconds = time.perf_counter() - began
    if errors:
        raise errors[0]

    probabilities = np.zeros((len(test.labels), 10), np.float32)
    changed = 0
    for (turn, index), output in zip(work, outputs, strict=True):
        if turn == 0:
            probabilities[starts[index] : starts[index] + batch] = output
        elif output.tobytes() != outputs[index].tobytes():
            changed += 1
    accuracy = float(np.mean(np.argmax(probabilities, axis=1) == test.labels))
    return Served(probabilities, changed, len(work), seconds, accuracy)


def steps_of_groups() -> list[tuple[str, int]]:
    """Counts the steps that each stream group has run.

    Returns:
        A name and a number for each group; empty on stock TensorFlow or without groups.
    """
    cuda: Any = getattr(tf, "cuda", None)
    if cuda is None or not cuda.multi_stream_is_enabled():
        return []

    return [
        (f"gpu {stats.gpu} group {stats.group}", stats.steps_started)
        for stats in cuda.stream_stats()
    ]


def count_different(outputs: np.ndarray, reference: np.ndarray, tolerance: float) -> int:
    """Counts rows that differ.

    Args:
        outputs: float32, [count, 10].
        reference: the same from another process.
        tolerance: largest absolute difference allowed; 0 compares bits.

    Returns:
        Number of rows with an element that differs.

    Raises:
        ValueError: the two have different shapes or types.
    """
    if outputs.shape != reference.shape or outputs.dtype != reference.dtype:
        raise ValueError(
            f"it holds {reference.dtype}{list(reference.shape)},"
            f" the outputs are {outputs.dtype}{list(outputs.shape)}"
        )
    if tolerance == 0:
        same = outputs.view(np.uint32) == reference.view(np.uint32)
    else:
        same = np.abs(outputs - reference) <= tolerance
    return int(np.sum(~np.all(same, axis=1)))


def report(options: argparse.Namespace, folder: str) -> int:
    """Serves, prints the figures, compares and saves; returns the exit status."""
    if options.compare is not None:
        reference = np.load(options.compare)
    served = serve(folder, options.threads, options.rounds, options.batch)
    print(f"accuracy {served.accuracy:.4f}")
    print(
        f"{served.calls} calls of {options.batch} images from {options.threads} threads in"
        f" {served.seconds:.3f} s: {served.calls / served.seconds:.1f} queries/s"
        f" on {serving_device()}"
    )
    groups = steps_of_groups()
    if groups and gpus_are_emulated():
        print(TIMES_MEAN_NOTHING)
    for name, steps in groups:
        print(f"{name}: {steps} steps")
    print(f"{served.changed} of {served.calls} calls changed from the first round")
    wrong = served.changed
    if options.save is not None:
        with open(options.save, "wb") as file:
            np.save(file, served.probabilities)
    if options.compare is not None:
        different = count_different(served.probabilities, reference, options.tolerance)
        largest = float(np.max(np.abs(served.probabilities - reference)))
        print(
            f"compared {len(reference)} outputs with {options.compare}, {different} wrong,"
            f" largest difference {largest:g}"
        )
        wrong += different
    return 1 if wrong else 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "command",
        nargs="?",
        choices=["all", "train", "serve"],
        default="all",
        help="all (the default) trains into a temporary folder, then serves",
    )
    parser.add_argument("--out", help="train: folder of the SavedModel")
    parser.add_argument("--epochs", type=whole(1, 10_000), default=30, help="[30]")
    parser.add_argument("--model", help="serve: folder of the SavedModel")
    parser.add_argument("--threads", type=whole(1, 256), default=8, help="[8]")
    parser.add_argument("--rounds", type=whole(1, 100_000), default=20, help="[20]")
    parser.add_argument("--batch", type=whole(1, 500), default=10, help="images a call [10]")
    parser.add_argument("--save", metavar="PATH", help="write the outputs to PATH")
    parser.add_argument("--compare", metavar="PATH", help="compare with the outputs in PATH")
    parser.add_argument(
        "--tolerance", type=tolerance, default=0.0, help="largest difference [0: same bits]"
    )
    options = parser.parse_args(arguments)
    if options.command == "train" and options.out is None:
        parser.error("train needs --out DIR, the folder of the SavedModel")
    if options.command == "serve" and options.model is None:
        parser.error("serve needs --model DIR, a SavedModel that train made")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    try:
        if options.command == "serve":
            return report(options, options.model)
        if options.command == "train":
            accuracy = train(options.out, options.epochs)
            print(f"{options.out}: accuracy {accuracy:.4f} on the CPU")
            return 0
        with tempfile.TemporaryDirectory() as folder:
            train(folder, options.epochs)
            return report(options, folder)
    except ImportError as error:
        print(f"serve_digits: {error}", file=sys.stderr)
    except (OSError, ValueError, tf.errors.OpError) as error:
        named = [
            f"--{name} {getattr(options, name)}"
            for name in ("model", "out", "save", "compare")
            if getattr(options, name) is not None
        ]
        print(f"serve_digits: {' '.join(named)}: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

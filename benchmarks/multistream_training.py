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
r"""Trains a model of equal branches on one stream and on several, and compares the two.

The model has `--branches` branches of `--layers` dense layers each, all on the same
batch; their sum is trained towards a target with the mean squared error:

         +-- dense - tanh - ... - dense - tanh --+   group 0
    x ---+-- dense - tanh - ... - dense - tanh --+-- sum -- loss
         +-- ...                               --+   group i

It is built twice from the same seed: without scopes, where all of it runs on one
stream, and with branch i in `tf.cuda.stream_scope(tf.cuda.get_stream(i % groups))`.
Both are trained for the same steps, in blocks that take turns, so that a machine that
slows down slows both down. Losses and weights of the two must be the same.

    export TF_GPU_STREAM_GROUP_COUNT=4 TF_NODE_LEVEL_MULTISTREAM=true
    python benchmarks/multistream_training.py --mode session --optimizer adam

Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for one: the results are
compared all the same, and the times mean nothing. Ops are deterministic
(tf.config.experimental.enable_op_determinism).

Exit status: 0, 1 after an error or if the two differ, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import importlib
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import tolerance, whole

tf1 = tf.compat.v1
GPU = "/GPU:0"

# Steps before the measured ones: the first ones build graphs and allocate.
WARM_UP = 10
# Measured parts of each training.
BLOCKS = 5

RATES = {"sgd": 0.5, "adam": 0.001}


@dataclasses.dataclass(frozen=True)
class Steps:
    """Some steps of training.

    Args:
        losses: of each step.
        seconds: that each step took.
    """

    losses: list[float]
    seconds: list[float]


@dataclasses.dataclass(frozen=True)
class Training:
    """A model that is being trained.

    Args:
        train: goes on for so many steps.
        weights: returns the weights as they are now.
    """

    train: Callable[[int], Steps]
    weights: Callable[[], list[np.ndarray]]


@dataclasses.dataclass
class Side:
    """What one of the two trainings gave.

    Args:
        losses: of every step, warm-up included.
        seconds: of the measured steps.
        groups: the stream groups whose memory had been used after the warm-up.
        weights: at the end.
    """

    losses: list[float]
    seconds: list[float]
    groups: list[int]
    weights: list[np.ndarray]

    @property
    def median_ms(self) -> float:
        """Median time of a measured step in milliseconds."""
        return 1000.0 * statistics.median(self.seconds)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The two trainings.

    Args:
        one: on one stream.
        scoped: with scopes.
        peaks: the most memory that each stream group has used, in bytes.
        reports: of the stream sanitizer; None if it is off.
    """

    one: Side
    scoped: Side
    peaks: list[int]
    reports: int | None

    @property
    def largest_difference(self) -> float:
        """Largest difference of the losses of a step; not a number if a loss is none."""
        return float(np.max(np.abs(np.subtract(self.one.losses, self.scoped.losses))))

    @property
    def same_weights(self) -> bool:
        """Whether the weights at the end agree bit by bit."""
        pairs = zip(self.one.weights, self.scoped.weights, strict=True)
        return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)

    @property
    def ratio(self) -> float:
        """How many times as fast a step with scopes is."""
        return self.one.median_ms / self.scoped.median_ms

    def speed(self, what: str) -> str:
        """Says how many times as fast `what` is, where that means anything."""
        measured = f"({len(self.one.seconds)} of {len(self.one.losses)} steps measured)"
        if gpus_are_emulated():
            return f"{TIMES_MEAN_NOTHING} {measured}"
        return f"{what} is {self.ratio:.2f} times as fast {measured}"

    def failure(self, tolerance: float) -> str:
        """Says what is wrong.

        Args:
            tolerance: largest difference of losses allowed; 0 compares weights as well.

        Returns:
            A sentence; empty if all is well.
        """
        if not self.largest_difference <= tolerance:
            pairs = zip(self.one.losses, self.scoped.losses, strict=True)
            step, (a, b) = next(
                (i, pair) for i, pair in enumerate(pairs) if not abs(pair[0] - pair[1]) <= tolerance
            )
            return (
                f"the losses differ by up to {self.largest_difference:g}, more than {tolerance:g}:"
                f" in step {step} they are {a!r} on one stream and {b!r} with scopes"
            )
        if tolerance == 0 and not self.same_weights:
            return "the losses are the same, and the weights at the end are not"
        if self.reports:
            return f"the stream sanitizer has {self.reports} reports"
        return ""

    def figures(self) -> dict[str, Any]:
        """Everything but the weights, for JSON."""
        return {
            **{
                name: {
                    "losses": side.losses,
                    "seconds": side.seconds,
                    "median_ms": side.median_ms,
                    "groups": side.groups,
                }
                for name, side in (("one_stream", self.one), ("scopes", self.scoped))
            },
            "ratio": self.ratio,
            "largest_difference": self.largest_difference,
            "same_weights": self.same_weights,
            "peak_bytes_in_use": self.peaks,
            "sanitizer_reports": self.reports,
        }

    def __str__(self) -> str:
        lines = []
        for name, side in (("one stream: ", self.one), ("with scopes:", self.scoped)):
            lines.append(
                f"{name} loss {side.losses[0]:.6g} -> {side.losses[-1]:.6g},"
                f" median step {side.median_ms:.3f} ms, groups {side.groups}"
            )
        lines.append(self.speed("a step with scopes"))
        lines.append(f"largest difference of the losses: {self.largest_difference:g}")
        lines.append(f"weights at the end: {'the same bits' if self.same_weights else 'different'}")
        for group, peak in enumerate(self.peaks):
            lines.append(f"group {group}: peak {peak / 1024:.1f} KiB")
        if self.reports is not None:
            lines.append(f"sanitizer reports: {self.reports}")
        return "\n".join(lines)


def check_environment() -> list[str]:
    """Checks that this process can run work on several streams.

    Returns:
        Why scopes have no effect here, a sentence each; empty if they have.

    Raises:
        RuntimeError: there is no multi-stream TensorFlow, or no GPU.
    """
    if not hasattr(tf, "cuda"):
        raise RuntimeError("this TensorFlow has no tf.cuda; install the multi-stream wheel")
    try:
        gpus = tf.config.list_physical_devices("GPU")
    except tf.errors.FailedPreconditionError as error:
        raise RuntimeError(error.message) from error
    if not gpus:
        raise RuntimeError(
            "TensorFlow finds no GPU; set TF_MULTI_STREAM_EMULATED_GPUS=1 for an emulated one"
        )
    missing = []
    groups = tf.cuda.stream_group_count()
    if groups < 2:
        missing.append("there is 1 stream group: set TF_GPU_STREAM_GROUP_COUNT to 2 or more")
    name = "TF_NODE_LEVEL_MULTISTREAM"
    if os.environ.get(name, "").lower() not in ("true", "1"):
        missing.append(f"{name} is not on: set {name}=true")
    return missing


def sanitizer_reports() -> int | None:
    """Number of races that the stream sanitizer has reported; None if it is off."""
    if os.environ.get("TF_MULTI_STREAM_SANITIZER", "").lower() not in ("log", "abort"):
        return None
    library: Any = importlib.import_module("tensorflow.python.multistream.loader").library
    count = library.TFMS_SanitizerReports
    count.restype = ctypes.c_int64
    return int(count())


def groups_used() -> list[int]:
    """The stream groups whose memory this process has used."""
    return [stats.group for stats in tf.cuda.stream_stats() if stats.peak_bytes_in_use > 0]


def on_group(group: int, scoped: bool) -> Any:
    """A scope of a stream group.

    Args:
        group: any number; groups are counted round.
        scoped: False gives a context that does nothing.

    Returns:
        The context manager.
    """
    if not scoped:
        return contextlib.nullcontext()
    return tf.cuda.stream_scope(tf.cuda.get_stream(group % tf.cuda.stream_group_count()))


def timed(step: Callable[[], Any]) -> Callable[[int], Steps]:
    """Makes `Training.train` of a function that trains for a step and returns its loss."""

    def train(steps: int) -> Steps:
        result = Steps([], [])
        for _ in range(steps):
            began = time.perf_counter()
            loss = float(step())
            result.seconds.append(time.perf_counter() - began)
            result.losses.append(loss)
        return result

    return train


def compare(make: Callable[[bool], Training], steps: int) -> Comparison:
    """Trains without and with scopes and compares.

    Args:
        make: makes the training; its argument is whether with scopes.
        steps: of each of the two, more than `WARM_UP`.

    Returns:
        The comparison.
    """
    trainings, sides = [], []
    for scoped in (False, True):
        training = make(scoped)
        losses = training.train(WARM_UP).losses
        trainings.append(training)
        sides.append(Side(losses, [], groups_used(), []))
    measured = steps - WARM_UP
    blocks = min(BLOCKS, measured)
    for block in range(blocks):
        size = measured * (block + 1) // blocks - measured * block // blocks
        for side, training in zip(sides, trainings, strict=True):
            done = training.train(size)
            side.losses.extend(done.losses)
            side.seconds.extend(done.seconds)
    for side, training in zip(sides, trainings, strict=True):
        side.weights = training.weights()
    peaks = [stats.peak_bytes_in_use for stats in tf.cuda.stream_stats() if stats.gpu == 0]
    return Comparison(sides[0], sides[1], peaks, sanitizer_reports())


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is trained, and from where.

    Args:
        x: float32, [batch, width].
        target: float32, [batch, width].
        kernels: float32, [branch][layer], [width, width] each, at the start.
        biases: float32, [branch][layer], [width] each, at the start.
    """

    x: np.ndarray
    target: np.ndarray
    kernels: list[list[np.ndarray]]
    biases: list[list[np.ndarray]]


def make_problem(options: argparse.Namespace) -> Problem:
    """Draws inputs, target and first weights; the same seed gives the same ones."""
    random = np.random.default_rng(options.seed)
    width = options.width

    def draw(*shape: int) -> np.ndarray:
        return random.normal(0, 1, shape).astype(np.float32)

    x = draw(options.batch, width)
    shape = [range(options.layers)] * options.branches
    return Problem(
        x=x,
        target=np.sin(x @ draw(width, width) / np.float32(np.sqrt(width))),
        kernels=[[draw(width, width) / np.float32(np.sqrt(width)) for _ in row] for row in shape],
        biases=[[0.1 * draw(width) for _ in row] for row in shape],
    )


def model_loss(
    x: Any, target: Any, kernels: list[list[Any]], biases: list[list[Any]], scoped: bool
) -> Any:
    """Builds the model of sessions and functions; returns the loss."""
    outputs = []
    for group, (branch, branch_biases) in enumerate(zip(kernels, biases, strict=True)):
        with on_group(group, scoped):
            y = x
            for kernel, bias in zip(branch, branch_biases, strict=True):
                y = tf.tanh(tf.matmul(y, kernel) + bias)
            outputs.append(y)
    return tf.reduce_mean(tf.math.squared_difference(tf.add_n(outputs), target))


def variables_like(rows: list[list[np.ndarray]], make: Any) -> list[list[Any]]:
    """Makes a variable of each array."""
    return [[make(array) for array in row] for row in rows]


def flat(*rows: list[list[Any]]) -> list[Any]:
    """All elements of lists of lists."""
    return [element for lists in rows for row in lists for element in row]


def make_session_training(options: argparse.Namespace, scoped: bool) -> Training:
    """A graph, a session and an optimizer of tf.compat.v1."""
    problem = make_problem(options)
    rate = RATES[options.optimizer]
    with tf.Graph().as_default() as graph, tf.device(GPU):

        def variable(array: np.ndarray) -> Any:
            return tf1.Variable(array, use_resource=True)

        kernels = variables_like(problem.kernels, variable)
        biases = variables_like(problem.biases, variable)
        x, target = (tf1.placeholder(tf.float32, a.shape) for a in (problem.x, problem.target))
        loss = model_loss(x, target, kernels, biases, scoped)
        if options.optimizer == "adam":
            optimizer = tf1.train.AdamOptimizer(rate)
        else:
            optimizer = tf1.train.GradientDescentOptimizer(rate)
        train = optimizer.minimize(loss)
        initializer = tf1.global_variables_initializer()
    session = tf1.Session(graph=graph, config=tf1.ConfigProto(allow_soft_placement=True))
    session.run(initializer)
    call = session.make_callable([loss, train], [x, target])
    return Training(
        timed(lambda: call(problem.x, problem.target)[0]),
        lambda: session.run(flat(kernels, biases)),
    )


def keras_optimizer(options: argparse.Namespace) -> Any:
    """The optimizer for functions and Keras."""
    rate = RATES[options.optimizer]
    if options.optimizer == "adam":
        return tf.keras.optimizers.Adam(rate)
    return tf.keras.optimizers.SGD(rate)


def make_function_training(options: argparse.Namespace, scoped: bool) -> Training:
    """A tf.function with a gradient tape."""
    problem = make_problem(options)
    optimizer = keras_optimizer(options)
    with tf.device(GPU):
        kernels = variables_like(problem.kernels, tf.Variable)
        biases = variables_like(problem.biases, tf.Variable)
        variables = flat(kernels, biases)
        optimizer.build(variables)
        x, target = tf.constant(problem.x), tf.constant(problem.target)

    @tf.function
    def step(x: Any, target: Any) -> Any:
        with tf.device(GPU):
            with tf.GradientTape() as tape:
                loss = model_loss(x, target, kernels, biases, scoped)
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

    return Training(timed(lambda: step(x, target)), lambda: [v.numpy() for v in variables])


class Branch(tf.keras.layers.Layer):
    """One branch as a Keras layer.

    Args:
        width: of each dense layer.
        layers: number of dense layers.
        group: stream group.
        scoped: whether the layers are called in its scope.
    """

    def __init__(self, width: int, layers: int, group: int, scoped: bool) -> None:
        super().__init__()
        self.dense = [tf.keras.layers.Dense(width, activation="tanh") for _ in range(layers)]
        self.group = group
        self.scoped = scoped

    def build(self, shape: Any) -> None:
        """Makes the weights."""
        for layer in self.dense:
            layer.build(shape)
        super().build(shape)

    def call(self, x: Any) -> Any:
        """Returns the output of the last dense layer."""
        with on_group(self.group, self.scoped):
            for layer in self.dense:
                x = layer(x)
        return x


class PlacedModel(tf.keras.Model):
    """A Keras model whose training is on the GPU, an emulated one too.

    Without a device, the ops of Keras's training function go to a GPU by themselves, and
    those for an emulated GPU to the CPU.
    """

    def train_step(self, *arguments: Any) -> Any:
        """Trains for one step."""
        with tf.device(GPU):
            return super().train_step(*arguments)


class StepTimes(tf.keras.callbacks.Callback):
    """Collects loss and time of the steps of a `fit` of epochs of one step."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = Steps([], [])
        self._began = 0.0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Starts the clock."""
        self._began = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stops the clock when the loss is there."""
        self.steps.losses.append(float(logs["loss"]))
        self.steps.seconds.append(time.perf_counter() - self._began)


def make_keras_training(options: argparse.Namespace, scoped: bool) -> Training:
    """A functional Keras model and `fit`."""
    problem = make_problem(options)
    with tf.device(GPU):
        inputs = tf.keras.Input([options.width])
        branches = [
            Branch(options.width, options.layers, group, scoped)
            for group in range(options.branches)
        ]
        outputs = [branch(inputs) for branch in branches]
        total = tf.keras.layers.Add()(outputs) if len(outputs) > 1 else outputs[0]
        model = PlacedModel(inputs, total)
        for branch, kernels, biases in zip(branches, problem.kernels, problem.biases, strict=True):
            branch.set_weights(flat([list(pair) for pair in zip(kernels, biases, strict=True)]))
    model.compile(keras_optimizer(options), "mse", jit_compile=False)
    batches = tf.data.Dataset.from_tensors((problem.x, problem.target)).repeat()

    def train(steps: int) -> Steps:
        times = StepTimes()
        # An epoch a step: Keras reports the mean loss of an epoch so far.
        model.fit(
            batches, epochs=steps, steps_per_epoch=1, verbose=0, shuffle=False, callbacks=[times]
        )
        return times.steps

    return Training(train, model.get_weights)


MODES = {
    "session": make_session_training,
    "function": make_function_training,
    "keras": make_keras_training,
}


def add_common_options(parser: argparse.ArgumentParser, steps: int) -> None:
    """Adds the options of every comparison; `steps` is the default of --steps."""
    parser.add_argument(
        "--steps",
        type=whole(WARM_UP + 1, 1_000_000),
        default=steps,
        help=f"of each of the two, with {WARM_UP} of warm-up [{steps}]",
    )
    parser.add_argument("--seed", type=whole(0, 2**31 - 1), default=20260, help="[20260]")
    parser.add_argument(
        "--tolerance",
        type=tolerance,
        default=0.0,
        help="largest difference of losses [0: same bits, weights too]",
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mode", choices=list(MODES), default="session", help="[session]")
    parser.add_argument("--branches", type=whole(1, 1024), default=4, help="[4]")
    parser.add_argument("--layers", type=whole(1, 1024), default=12, help="of a branch [12]")
    parser.add_argument("--width", type=whole(1, 65_536), default=64, help="of a layer [64]")
    parser.add_argument("--batch", type=whole(1, 1_000_000), default=32, help="rows [32]")
    parser.add_argument("--optimizer", choices=list(RATES), default="sgd", help="[sgd]")
    add_common_options(parser, steps=300)
    return parser.parse_args(arguments)


def run(name: str, options: argparse.Namespace, work: Callable[[], tuple[Comparison, Any]]) -> int:
    """Checks the environment, does the work, prints and writes what came out.

    Args:
        name: of the program, for messages.
        options: with `tolerance`, `json` and others, which are written with the figures.
        work: returns the comparison and further figures by name.

    Returns:
        The exit status.
    """
    try:
        for missing in check_environment():
            print(f"{name}: scopes have no effect: {missing}", file=sys.stderr)
        tf.config.experimental.enable_op_determinism()
        tf.get_logger().setLevel("ERROR")  # no advice to write for TensorFlow 2
        comparison, others = work()
        print(comparison, flush=True)
        if options.json is not None:
            settings = {key: value for key, value in vars(options).items() if key != "json"}
            everything = {"options": settings, **comparison.figures(), **others}
            options.json.write_text(json.dumps(everything, indent=1))
    except (ImportError, OSError, RuntimeError, ValueError, tf.errors.OpError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    if failure := comparison.failure(options.tolerance):
        print(f"{name}: {failure}", file=sys.stderr)
        return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)

    def work() -> tuple[Comparison, Any]:
        print(
            f"{options.mode}, {options.optimizer}: {options.branches} branches of"
            f" {options.layers} layers, width {options.width}, batch {options.batch},"
            f" {tf.cuda.stream_group_count()} stream groups",
            flush=True,
        )
        make = MODES[options.mode]
        return compare(lambda scoped: make(options, scoped), options.steps), {}

    return run("multistream_training", options, work)


if __name__ == "__main__":
    sys.exit(main())

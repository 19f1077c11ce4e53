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
import dataclasses
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf
from option_types import whole
from process_groups import GPU, on_group
from training_comparison import Comparison, Steps, Training, add_common_options, compare, run, timed

tf1 = tf.compat.v1

RATES = {"sgd": 0.5, "adam": 0.001}


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

    status: int = run("multistream_training", options, work)
    return status


if __name__ == "__main__":
    sys.exit(main())

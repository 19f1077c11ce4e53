# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that train: from the same start, each loss and the weights at the end compared."""

import contextlib
import pathlib
import random
import sys
from typing import Any

import numpy as np
import tensorflow as tf
from draw import KINDS
from models import (
    GPU,
    ROWS,
    WIDTH,
    Results,
    Work,
    assign_all,
    branch_weights,
    branches,
    cases_of,
    matrix,
    new_session,
    on_gpu,
    placed_model,
    random_of,
    tf1,
)
from tally import Tally

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "soundness"))
from updated_variables import Variables, make_inputs
from updating_threads import Callables, Together

RATE = 0.05
STEPS = 8


class Training(Work):
    """Trains a model of branches; a subclass makes it and says how."""

    def __init__(self, *arguments: Any) -> None:
        place = arguments[0]
        self.x = cases_of(place, self.name)[3]
        self.target = np.sin(3 * self.x).astype(np.float32)
        self.start = branch_weights(place, self.name)
        super().__init__(*arguments)

    def restart(self) -> None:
        assign_all(self.variables, self.values)

    def train(self) -> np.ndarray:
        raise NotImplementedError

    def weights(self) -> list[np.ndarray]:
        return [v.numpy() for v in self.variables]

    def results(self) -> Results:
        self.restart()
        losses = {f"loss {i}": np.asarray(self.train()) for i in range(STEPS)}
        return {**losses, **{f"weights {i}": w for i, w in enumerate(self.weights())}}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        self.restart()
        steps = draw.randint(1, STEPS)
        for i in range(steps):
            tally.step()
            loss = self.train()
            tally.verify(loss, self.reference[f"loss {i}"], f"{self.name}, loss of step {i}")
        if steps == STEPS:
            for i, w in enumerate(self.weights()):
                tally.verify(w, self.reference[f"weights {i}"], f"{self.name}, weights {i}")

    def loss(self, x: Any, target: Any, layers: list[list[Any]]) -> Any:
        y = branches(self.place, x, layers, scoped=True)
        return tf.reduce_mean(tf.math.squared_difference(y, target))


class TrainSession(Training):
    """A graph, a session and an optimizer of tf.compat.v1."""

    name = "train_session"

    def make(self) -> None:
        with tf.Graph().as_default() as graph, tf.device(GPU):
            layers = [[tf1.Variable(w, use_resource=True) for w in row] for row in self.start]
            x, target = (tf1.placeholder(tf.float32, self.x.shape) for _ in range(2))
            loss = self.loss(x, target, layers)
            train = tf1.train.GradientDescentOptimizer(RATE).minimize(loss)
            self.initializer = tf1.global_variables_initializer()
            self.variables = [w for row in layers for w in row]
        self.session = new_session(graph)
        self.session.run(self.initializer)
        self.callable = self.session.make_callable([loss, train], [x, target])

    def restart(self) -> None:
        self.session.run(self.initializer)

    def train(self) -> np.ndarray:
        return np.asarray(self.callable(self.x, self.target)[0])

    def weights(self) -> list[np.ndarray]:
        return list(self.session.run(self.variables))

    def close(self) -> None:
        self.session.close()


class TrainFunction(Training):
    """A tf.function with a gradient tape."""

    name = "train_function"

    def make(self) -> None:
        with tf.device(GPU):
            layers = [[tf.Variable(w) for w in row] for row in self.start]
            self.values = [tf.constant(w) for row in self.start for w in row]
            self.inputs = tf.constant(self.x), tf.constant(self.target)
        self.variables = [w for row in layers for w in row]

        @tf.function
        def step(x: Any, target: Any) -> Any:
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    loss = self.loss(x, target, layers)
                gradients = tape.gradient(loss, self.variables)
                for w, gradient in zip(self.variables, gradients, strict=True):
                    w.assign_sub(RATE * gradient)
                return loss

        self.function = step

    def train(self) -> np.ndarray:
        return np.asarray(self.function(*self.inputs))


class Prefetched(TrainFunction):
    """Batches that a data set puts on the GPU in advance, for a step that is captured."""

    name = "prefetched"

    def make(self) -> None:
        super().make()
        self.captured = tf.cuda.captured(self.function)
        scales = np.linspace(0.5, 1.5, STEPS, dtype=np.float32)
        x, target = self.x, self.target
        data = tf.data.Dataset.from_tensor_slices(scales).map(lambda s: (s * x, s * target))
        # TensorFlow cannot run the copying function on an emulated GPU.
        to_gpu = tf.data.experimental.prefetch_to_device(GPU)
        self.data = data.apply(to_gpu) if self.place.gpu else data.prefetch(2)

    def restart(self) -> None:
        super().restart()
        self.batches = iter(self.data)

    def train(self) -> np.ndarray:
        return np.asarray(self.captured(*next(self.batches)))


class MixedPrecision(Training):
    """Half precision, with Keras's LossScaleOptimizer around momentum; scale and slots count, too.

    Some batches make gradients infinite: these steps are skipped, and the scale is halved.
    """

    name = "mixed_precision"
    infinite = (3, 6)

    def make(self) -> None:
        with tf.device(GPU):
            self.batches = [
                tf.constant(self.x * np.float32("inf") if i in self.infinite else self.x)
                for i in range(max(self.infinite) + 2)
            ]
            layers = [tf.Variable(w) for w in self.start[0]]
            optimizer = tf.keras.optimizers.LossScaleOptimizer(
                tf.keras.optimizers.SGD(0.1, momentum=0.9),
                initial_scale=1024.0,
                dynamic_growth_steps=2,
            )
            optimizer.build(layers)
        self.variables = [*layers, *(v.value for v in optimizer.variables)]
        self.values = [v.numpy() for v in self.variables]

        @on_gpu(ROWS)
        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                y = tf.cast(x, tf.float16)
                for w in layers:
                    y = tf.tanh(tf.matmul(y, tf.cast(w, tf.float16)))
                # An infinite input spreads through a product; tanh would hide it.
                loss = tf.reduce_mean(tf.square(tf.cast(y, tf.float32)))
                loss += 0.0 * tf.reduce_mean(x) * tf.reduce_mean(layers[0])
                scaled = optimizer.scale_loss(loss)
            optimizer.apply_gradients(zip(tape.gradient(scaled, layers), layers, strict=True))
            return loss

        self.function = step

    def restart(self) -> None:
        self.steps = 0
        super().restart()

    def train(self) -> np.ndarray:
        """Trains on the next batch; the loss of one that is infinite counts as 0."""
        loss = self.function(self.batches[self.steps]).numpy()
        self.steps += 1
        return np.asarray(np.nan_to_num(loss))


class KerasFit(Work):
    """Keras's fit of a model with dropout, from the same start and the same seed."""

    name = "keras_fit"
    batch, batches, epochs = 8, 4, (1, 2)

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        self.x = draw.normal(0, 1, (self.batch * self.batches, WIDTH)).astype(np.float32)
        self.y = np.sin(3 * self.x[:, :4]).astype(np.float32)
        layers = tf.keras.layers
        with tf.device(GPU):
            inputs = tf.keras.Input([WIDTH])
            hidden = layers.Dense(WIDTH, activation="tanh")(inputs)
            hidden = layers.Dropout(0.5, seed=7)(hidden)
            self.model = placed_model("train_step")(inputs, layers.Dense(4)(hidden))
            optimizer = tf.keras.optimizers.Adam(0.01)
            trained = self.model.trainable_variables
            optimizer.build(trained)
            self.model.compile(optimizer, "mse", jit_compile=False)
            others = [*self.model.non_trainable_variables, *optimizer.variables]
        self.variables = [*trained, *others]
        self.start = [matrix(draw, *v.shape) for v in trained] + [v.numpy() for v in others]

    def fit(self, epochs: int) -> list[np.ndarray]:
        assign_all(self.variables, self.start)
        more = {"batch_size": self.batch, "shuffle": False, "verbose": 0}
        self.model.fit(self.x, self.y, epochs=epochs, **more)
        return [v.numpy() for v in self.variables]

    def results(self) -> Results:
        return {f"{n} {i}": v for n in self.epochs for i, v in enumerate(self.fit(n))}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        epochs = draw.choice(self.epochs)
        tally.step()
        for i, found in enumerate(self.fit(epochs)):
            tally.check("" if np.all(np.isfinite(found)) else "not finite", "weights after fit")
            tally.verify(found, self.reference[f"{epochs} {i}"], f"variable {i} after fit")


class CapturedTraining(Work):
    """Captured training of the same variables from several threads, as in captured_updates.py.

    Worker 0 reads, assigns and fails, all others train; at the end all counts are exact.
    """

    name = "captured_training"

    def make(self) -> None:
        self.tally: Tally | None = None
        place = self.place
        if place.groups == 1:
            return  # the reference process has nothing to compare with
        variables = Variables("auto", place.folder)
        callables = Callables(variables, make_inputs(place.seed))
        # With op determinism, TensorFlow adds to rows of a GPU's variable on the host, and two
        # threads may both begin with the same values: stock TensorFlow loses such updates, too. On
        # an emulated GPU such ops run one after another.
        left_out = {"rows"} if place.gpu else set()
        self.together = Together(
            callables,
            KINDS["captured_training"],
            [i for i, name in enumerate(variables.function_names) if name not in left_out],
            range(len(callables.inputs)),
            str(place.seed),
            failing={"matrices"} if place.gpu else {"matrices", "rows"},
            pace=0.0,
        )

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Runs a block of steps, or an action that disturbs the other threads' steps."""
        self.tally = tally
        tally.step()
        with tf.device(GPU):
            if worker:
                self.together.train(worker, draw)
            elif draw.random() < 0.5:
                self.together.read(draw)
            else:
                self.together.disturb(draw)
        self.report("captured training")

    def close(self) -> None:
        """Compares the variables with their expected values, after all steps."""
        if self.tally is not None:
            self.together.check_end()
            self.report("variables at the end")

    def report(self, what: str) -> None:
        """Counts a result, which is wrong if there is a problem that has not been told."""
        assert self.tally is not None
        problems = self.together.problems
        with contextlib.suppress(IndexError):  # another thread has told the last one
            self.tally.check(problems.pop(0) if problems else "", what)

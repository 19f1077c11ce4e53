# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that train: from the same start, each loss and the weights at the end compared."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import tensorflow as tf
from models import (
    GPU,
    Place,
    Results,
    Work,
    branch_weights,
    branches,
    cases_of,
    session_config,
    tf1,
)
from tally import Tally

RATE = 0.05
STEPS = 8


class Training(Work):
    """Trains a model of branches; a subclass makes it and says how."""

    name = ""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.x = cases_of(place, self.name)[3]
        self.target = np.sin(3 * self.x).astype(np.float32)
        self.start = branch_weights(place, self.name)
        self.make()

    def make(self) -> None:
        """Makes the model."""
        raise NotImplementedError

    def restart(self) -> None:
        """Gives the variables the values of the start."""
        raise NotImplementedError

    def train(self) -> np.ndarray:
        """Trains for a step; returns the loss."""
        raise NotImplementedError

    def weights(self) -> list[np.ndarray]:
        """The variables as they are."""
        raise NotImplementedError

    def results(self) -> Results:
        """The losses, and the weights after them."""
        self.restart()
        losses = {f"loss {i}": np.asarray(self.train()) for i in range(STEPS)}
        return {**losses, **{f"weights {i}": w for i, w in enumerate(self.weights())}}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Trains from the start, and compares."""
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
        """Builds the model."""
        y = branches(self.place, x, layers, scoped=True)
        return tf.reduce_mean(tf.math.squared_difference(y, target))


class TrainSession(Training):
    """A graph, a session and an optimizer of tf.compat.v1."""

    name = "train_session"

    def make(self) -> None:
        """Makes graph and session."""
        with tf.Graph().as_default() as graph, tf.device(GPU):
            layers = [[tf1.Variable(w, use_resource=True) for w in row] for row in self.start]
            x = tf1.placeholder(tf.float32, self.x.shape)
            target = tf1.placeholder(tf.float32, self.x.shape)
            loss = self.loss(x, target, layers)
            train = tf1.train.GradientDescentOptimizer(RATE).minimize(loss)
            self.initializer = tf1.global_variables_initializer()
            self.variables = [w for row in layers for w in row]
        self.session = tf1.Session(graph=graph, config=session_config())
        self.session.run(self.initializer)
        self.callable = self.session.make_callable([loss, train], [x, target])

    def restart(self) -> None:
        """Runs the initializer."""
        self.session.run(self.initializer)

    def train(self) -> np.ndarray:
        """Runs a step."""
        return np.asarray(self.callable(self.x, self.target)[0])

    def weights(self) -> list[np.ndarray]:
        """Reads the variables."""
        return list(self.session.run(self.variables))

    def close(self) -> None:
        """Closes the session."""
        self.session.close()


class TrainFunction(Training):
    """A tf.function with a gradient tape."""

    name = "train_function"

    def make(self) -> None:
        """Makes variables and functions."""
        with tf.device(GPU):
            self.layers = [[tf.Variable(w) for w in row] for row in self.start]
            self.constants = [tf.constant(w) for row in self.start for w in row]
            self.inputs = tf.constant(self.x), tf.constant(self.target)
        self.variables = [w for row in self.layers for w in row]

        @tf.function
        def step(x: Any, target: Any) -> Any:
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    loss = self.loss(x, target, self.layers)
                gradients = tape.gradient(loss, self.variables)
                for w, gradient in zip(self.variables, gradients, strict=True):
                    w.assign_sub(RATE * gradient)
                return loss

        self.function = step

    def restart(self) -> None:
        """Assigns, op by op."""
        for w, value in zip(self.variables, self.constants, strict=True):
            w.assign(value)

    def train(self) -> np.ndarray:
        """Calls the function."""
        return np.asarray(self.function(*self.inputs))

    def weights(self) -> list[np.ndarray]:
        """Reads the variables."""
        return [w.numpy() for w in self.variables]

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that serve: the same model and inputs again and again, from several threads."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import tensorflow as tf
from models import (
    CASES,
    GPU,
    WIDTH,
    Place,
    Results,
    Work,
    branch_weights,
    branches,
    cases_of,
    matrix,
    random_of,
    session_config,
    tf1,
)
from tally import Tally
from tensorflow.core.protobuf import rewriter_config_pb2


class Serving(Work):
    """Serves a model; a subclass makes it and says how it is called."""

    name = ""

    def __init__(self, place: Place, reference: Results) -> None:
        super().__init__(place, reference)
        self.cases = cases_of(place, self.name)
        self.make()

    def make(self) -> None:
        """Makes the model."""
        raise NotImplementedError

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the model."""
        raise NotImplementedError

    def results(self) -> Results:
        """The output for each input."""
        return {str(i): np.asarray(self.call(x)) for i, x in enumerate(self.cases)}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls the model with an input, and compares."""
        case = draw.randrange(CASES)
        tally.step()
        found = self.call(self.cases[case])
        tally.verify(found, self.reference[str(case)], f"{self.name}, input {case}")


class Function(Serving):
    """A tf.function with variables, among them a table of embeddings."""

    name = "function"
    scoped = True

    def make(self) -> None:
        """Makes variables and function."""
        draw = random_of(self.place, self.name)
        with tf.device(GPU):
            self.layers = [
                [tf.Variable(w) for w in row] for row in branch_weights(self.place, self.name)
            ]
            self.table = tf.Variable(matrix(draw, 512, WIDTH))

        def model(x: Any) -> Any:
            with tf.device(GPU):
                rows = tf.cast(tf.abs(x[:, :4]) * 100.0, tf.int32) % 512
                looked_up = tf.reduce_max(tf.gather(self.table, rows), axis=1)
                return branches(self.place, x + looked_up, self.layers, self.scoped)

        self.function = self.decorate(
            tf.function(model, input_signature=[tf.TensorSpec([None, WIDTH])])
        )

    def decorate(self, function: Any) -> Any:
        """Decorates the function; returns the callable."""
        return function

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the function."""
        return np.asarray(self.function(tf.constant(x)))


class AutoStream(Function):
    """`Function`, split by tf.cuda.auto_stream, which has no effect at graph level."""

    name = "auto_stream"
    scoped = False

    def decorate(self, function: Any) -> Any:
        """Marks the function."""
        return tf.cuda.auto_stream("cost")(function)


class Pinned(Function):
    """Calls in tf.cuda.stream_group, which run on that group."""

    name = "pinned"

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls the model on a group, compares, and checks that the group has run a step."""
        group, case = draw.randrange(self.place.groups), draw.randrange(CASES)
        before = tf.cuda.stream_stats()[group].steps_started
        with tf.cuda.stream_group(group):
            tally.step()
            found = self.call(self.cases[case])
        tally.verify(found, self.reference[str(case)], f"pinned to {group}, input {case}")
        ran = tf.cuda.stream_stats()[group].steps_started - before
        tally.check("" if ran > 0 else f"group {group} has started no step", "pinned")


class SavedModel(Serving):
    """The signature of a SavedModel."""

    name = "saved_model"

    def make(self) -> None:
        """Saves the model, and loads it on the GPU."""
        module = tf.Module()
        module.layers = [
            [tf.Variable(w) for w in row] for row in branch_weights(self.place, self.name)
        ]

        @tf.function(input_signature=[tf.TensorSpec([None, WIDTH], name="x")])
        def serve(x: Any) -> dict[str, Any]:
            return {"y": branches(self.place, x, module.layers, scoped=True)}

        folder = os.path.join(self.place.folder, self.name)
        tf.saved_model.save(module, folder, signatures={"serving_default": serve})
        with tf.device(GPU):
            self.loaded = tf.saved_model.load(folder)
        self.signature = self.loaded.signatures["serving_default"]

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the signature."""
        with tf.device(GPU):
            return np.asarray(self.signature(x=tf.constant(x))["y"])


class ServingCallable(SavedModel):
    """`SavedModel`, called by tf.cuda.serving_callable, without the GIL."""

    name = "serving_callable"

    def make(self) -> None:
        """Binds the signature."""
        super().make()
        self.serve = tf.cuda.serving_callable(self.signature)

    def call(self, x: np.ndarray) -> np.ndarray:
        """Calls the serving callable."""
        with tf.device(GPU):
            return np.asarray(self.serve(x=x)["y"])


class KerasPredict(Serving):
    """Keras's predict, with a data set of its own for each call."""

    name = "keras_predict"

    def make(self) -> None:
        """Makes the model and gives it its weights."""

        class Placed(tf.keras.Model):
            """Runs on the GPU, an emulated one too."""

            def predict_step(self, data: Any) -> Any:
                with tf.device(GPU):
                    return super().predict_step(data)

        draw = random_of(self.place, self.name)
        with tf.device(GPU):
            inputs = tf.keras.Input([WIDTH])
            x = inputs
            dense = [tf.keras.layers.Dense(WIDTH, activation="tanh") for _ in range(3)]
            for layer in dense:
                x = layer(x)
            self.model = Placed(inputs, x)
            for layer in dense:
                layer.set_weights([matrix(draw, WIDTH, WIDTH), matrix(draw, WIDTH)])
        self.model.compile(jit_compile=False)

    def call(self, x: np.ndarray) -> np.ndarray:
        """Predicts."""
        return np.asarray(self.model.predict(x, batch_size=16, verbose=0))


class Session(Serving):
    """A session of tf.compat.v1 on a frozen model."""

    name = "session"

    def make(self) -> None:
        """Makes graph and session."""
        layers = branch_weights(self.place, self.name)
        with tf.Graph().as_default() as graph, tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None, WIDTH])
            y = branches(self.place, x, layers, scoped=True)
        self.session = tf1.Session(graph=graph, config=self.config())
        self.callable = self.session.make_callable(y, [x])

    def config(self) -> Any:
        """The session's configuration."""
        return session_config()

    def call(self, x: np.ndarray) -> np.ndarray:
        """Runs the session."""
        return np.asarray(self.callable(x))

    def close(self) -> None:
        """Closes the session."""
        self.session.close()


class SessionPolicy(Session):
    """`Session` whose configuration asks for streams and a policy, as in DeepRec."""

    name = "session_policy"

    def config(self) -> Any:
        """Asks for all groups."""
        config = session_config()
        if self.place.groups > 1:
            rewrite = config.graph_options.rewrite_options
            rewrite.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
            rewrite.multi_stream_opts.multi_stream_num = self.place.groups
            policy = rewriter_config_pb2.MultiStreamPartitionPolicy.Value("FULL_GRAPH_PARTITION")
            rewrite.multi_stream_opts.partition_policy = policy
        return config

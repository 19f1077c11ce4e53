# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that serve: the same model and inputs again and again, from several threads."""

import os
import random
from typing import Any

import numpy as np
import tensorflow as tf
from models import (
    CASES,
    GPU,
    ROWS,
    WIDTH,
    Results,
    Work,
    branch_variables,
    branch_weights,
    branches,
    cases_of,
    layer_scope,
    matrix,
    new_session,
    on_gpu,
    placed_model,
    random_of,
    tf1,
)
from tally import Tally, distance
from tensorflow.core.protobuf import rewriter_config_pb2


class Serving(Work):
    """Serves a model, whose callable `function` a subclass makes; may replace the inputs, too."""

    # How far results may be off, as a fraction of the largest number; 0: the same bits.
    tolerance = 0.0

    def __init__(self, *arguments: Any) -> None:
        self.cases: list[Any] = cases_of(arguments[0], self.name)
        super().__init__(*arguments)

    def call(self, x: Any) -> np.ndarray:
        return np.asarray(self.function(tf.constant(x)))

    def results(self) -> Results:
        if self.tolerance and self.reference:
            return {}
        return {str(i): self.call(x) for i, x in enumerate(self.cases)}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        self.compare(draw.randrange(CASES), tally)

    def compare(self, case: int, tally: Tally, where: str = "") -> None:
        tally.step()
        found, expected = self.call(self.cases[case]), self.reference[str(case)]
        what = f"{self.name}{where}, input {case}"
        if self.tolerance:
            tally.check(distance(found, expected, self.tolerance), what)
        else:
            tally.verify(found, expected, what)


class Function(Serving):
    """A tf.function with variables, among them a table of embeddings."""

    name = "function"
    scoped = True

    def make(self) -> None:
        with tf.device(GPU):
            layers = branch_variables(self.place, self.name)
            table = tf.Variable(matrix(random_of(self.place, self.name), 512, WIDTH))

        @on_gpu(ROWS)
        def model(x: Any) -> Any:
            ids = tf.cast(tf.abs(x[:, :4]) * 100.0, tf.int32) % 512
            looked_up = tf.reduce_max(tf.gather(table, ids), axis=1)
            return branches(self.place, x + looked_up, layers, self.scoped)

        self.function = model


class AutoStream(Function):
    """`Function`, split by tf.cuda.auto_stream, which has no effect at graph level."""

    name = "auto_stream"
    scoped = False

    def make(self) -> None:
        super().make()
        self.function = tf.cuda.auto_stream("cost")(self.function)


class Pinned(Function):
    """Calls in tf.cuda.stream_group, which run on that group."""

    name = "pinned"

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        """Calls the model on a group, compares, and checks that the group has run a step."""
        group = draw.randrange(self.place.groups)
        before = tf.cuda.stream_stats()[group].steps_started
        with tf.cuda.stream_group(group):
            self.compare(draw.randrange(CASES), tally, f" to {group}")
        ran = tf.cuda.stream_stats()[group].steps_started - before
        tally.check("" if ran > 0 else f"group {group} has started no step", "pinned")


class SavedModel(Serving):
    """The signature of a SavedModel."""

    name = "saved_model"

    def make(self) -> None:
        module = tf.Module()
        module.layers = branch_variables(self.place, self.name)

        @tf.function(input_signature=[ROWS])
        def serve(x: Any) -> dict[str, Any]:
            return {"y": branches(self.place, x, module.layers, scoped=True)}

        folder = os.path.join(self.place.folder, self.name)
        tf.saved_model.save(module, folder, signatures={"serving_default": serve})
        with tf.device(GPU):
            self.loaded = tf.saved_model.load(folder)
        self.function = self.loaded.signatures["serving_default"]

    def call(self, x: np.ndarray) -> np.ndarray:
        with tf.device(GPU):
            return np.asarray(self.function(x=tf.constant(x))["y"])


class ServingCallable(SavedModel):
    """`SavedModel`, called by tf.cuda.serving_callable, without the GIL."""

    name = "serving_callable"

    def make(self) -> None:
        super().make()
        self.serve = tf.cuda.serving_callable(self.function)

    def call(self, x: np.ndarray) -> np.ndarray:
        with tf.device(GPU):
            return np.asarray(self.serve(x=x)["y"])


class KerasPredict(Serving):
    """Keras's predict, with a data set of its own for each call."""

    name = "keras_predict"

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        with tf.device(GPU):
            x = inputs = tf.keras.Input([WIDTH])
            dense = [tf.keras.layers.Dense(WIDTH, activation="tanh") for _ in range(3)]
            for layer in dense:
                x = layer(x)
            self.model = placed_model("predict_step")(inputs, x)
            for layer in dense:
                layer.set_weights([matrix(draw, WIDTH, WIDTH), matrix(draw, WIDTH)])
        self.model.compile(jit_compile=False)

    def call(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict(x, batch_size=16, verbose=0))


class Session(Serving):
    """A session of tf.compat.v1 on a frozen model."""

    name = "session"

    def make(self) -> None:
        layers = branch_weights(self.place, self.name)
        with tf.Graph().as_default() as graph, tf.device(GPU):
            x = tf1.placeholder(tf.float32, [None, WIDTH])
            y = branches(self.place, x, layers, scoped=True)
        self.session = self.session_of(graph)
        self.function = self.session.make_callable(y, [x])

    def session_of(self, graph: Any) -> Any:
        return new_session(graph)

    def call(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.function(x))

    def close(self) -> None:
        self.session.close()


class SessionPolicy(Session):
    """`Session` whose configuration asks for streams and a policy, as in DeepRec."""

    name = "session_policy"

    def session_of(self, graph: Any) -> Any:
        """Makes a session that asks for all groups."""
        config = tf1.ConfigProto(allow_soft_placement=True)
        if self.place.groups > 1:
            rewrite = config.graph_options.rewrite_options
            rewrite.use_multi_stream = rewriter_config_pb2.RewriterConfig.ON
            rewrite.multi_stream_opts.multi_stream_num = self.place.groups
            policy = rewriter_config_pb2.MultiStreamPartitionPolicy.Value("FULL_GRAPH_PARTITION")
            rewrite.multi_stream_opts.partition_policy = policy
        return tf1.Session(graph=graph, config=config)


class Strings(Serving):
    """A static hash table and Keras's StringLookup on the host, an embedding, and a layer."""

    name = "strings"
    words = 200

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        words = [f"word {i}" for i in range(self.words)]
        # A fourth of the strings are in no table.
        self.cases = [
            np.array([f"word {i}" for i in draw.integers(0, self.words * 4 // 3, 8 + 4 * case)])
            for case in range(CASES)
        ]
        ids = tf.lookup.KeyValueTensorInitializer(words, tf.range(self.words, dtype=tf.int64))
        self.table = tf.lookup.StaticHashTable(ids, default_value=self.words)
        self.lookup = tf.keras.layers.StringLookup(vocabulary=words)
        with tf.device(GPU):
            embedding = tf.Variable(matrix(draw, self.words + 1, WIDTH))
            weights = tf.Variable(matrix(draw, WIDTH, WIDTH))

        @on_gpu(tf.TensorSpec([None], tf.string))
        def model(text: tf.Tensor) -> tf.Tensor:
            with tf.device("/CPU:0"):
                first, second = self.table.lookup(text), self.lookup(text)
            return tf.matmul(tf.gather(embedding, first) - tf.gather(embedding, second), weights)

        self.function = model


class NestedCalls(Serving):
    """A layer, NumPy code that calls a function of another layer, and a third layer.

    The NumPy code blocks a thread: each outer call needs another one that launches the inner
    call's ops.
    """

    name = "nested_calls"

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        with tf.device(GPU):
            first, second, third = (tf.Variable(matrix(draw, WIDTH, WIDTH)) for _ in range(3))

        @on_gpu(ROWS)
        def inner(x: tf.Tensor) -> tf.Tensor:
            return tf.tanh(tf.matmul(x, second))

        def in_numpy(x: np.ndarray) -> np.ndarray:
            return np.asarray(inner(tf.constant(x)))

        @on_gpu(ROWS)
        def outer(x: tf.Tensor) -> tf.Tensor:
            hidden = tf.numpy_function(in_numpy, [tf.matmul(x, first)], tf.float32)
            return tf.matmul(tf.ensure_shape(hidden, [None, WIDTH]), third)

        self.function = outer


class Recurrent(Serving):
    """An LSTM and a GRU side by side, on sequences of different lengths, padded at the end.

    On a GPU the layers are cuDNN's, which copies memory of the host.
    """

    name = "recurrent"
    # cuDNN may choose another algorithm in another process.
    tolerance = 1e-3
    times, features, units = 12, 16, 32

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        self.cases = []
        for case in range(CASES):
            x = draw.normal(0, 1, (4 + case, self.times, self.features)).astype(np.float32)
            lengths = draw.integers(1, self.times + 1, len(x))
            self.cases.append((x, np.arange(self.times) < lengths[:, None]))
        # An emulated GPU has no cuDNN.
        cudnn = self.place.gpu and "auto"
        with tf.device(GPU):
            kinds = tf.keras.layers.LSTM, tf.keras.layers.GRU
            layers = [kind(self.units, use_cudnn=cudnn) for kind in kinds]
            for layer in layers:
                layer.build((None, self.times, self.features))
                layer.set_weights(
                    [draw.normal(0, 0.3, w.shape).astype(np.float32) for w in layer.weights]
                )
        shape = [None, self.times]

        @on_gpu(tf.TensorSpec([*shape, self.features]), tf.TensorSpec(shape, tf.bool))
        def model(x: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
            outputs = []
            for i, layer in enumerate(layers):
                with layer_scope(self.place, i, 0):
                    outputs.append(layer(x, mask=mask))
            return outputs[0] + outputs[1]

        self.function = model

    def call(self, x: Any) -> np.ndarray:
        with tf.device(GPU):
            return np.asarray(self.function(*map(tf.constant, x)))


class Compiled(Serving):
    """A tf.function with `jit_compile`, called by eager code and by another function.

    In another process, and for another stream group of a GPU, XLA may choose other algorithms,
    whose last bits differ.
    """

    name = "compiled"
    tolerance = 0.02

    def make(self) -> None:
        self.cases = [(which, x) for which in range(2) for x in self.cases[:3]]
        with tf.device(GPU):
            layers = branch_variables(self.place, self.name)[0]

        @tf.function(jit_compile=True, input_signature=[ROWS])
        def compiled(x: tf.Tensor) -> tf.Tensor:
            for w in layers:
                x = tf.tanh(tf.matmul(x, w))
            return x

        self.functions = [compiled, on_gpu(ROWS)(lambda x: compiled(x) + 1.0)]
        # Results of this process; on an emulated GPU all calls of a process give the same bits.
        self.own: Results = {}

    def call(self, x: Any) -> np.ndarray:
        with tf.device(GPU):
            return np.asarray(self.functions[x[0]](tf.constant(x[1])))

    def results(self) -> Results:
        """Results of both functions, which may differ a little from process to process."""
        self.own = {str(i): self.call(x) for i, x in enumerate(self.cases)}
        if not self.reference:
            return self.own
        for name, value in self.own.items():
            if problem := distance(value, self.reference[name], self.tolerance):
                raise ValueError(f"compiled, {name}: {problem}")
        return {}

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        case = draw.randrange(len(self.cases))
        tally.step()
        found = self.call(self.cases[case])
        problem = distance(found, self.own[str(case)], self.tolerance if self.place.gpu else 0.0)
        tally.check(problem, f"compiled, input {case}")


class Evictions(Serving):
    """A function that is called with many shapes, some of them often: recordings are evicted."""

    name = "evictions"
    # Numbers of rows; their recordings together are more than a MiB. Half of the calls use the
    # first few sizes.
    sizes, wide, often = range(1, 49, 2), 512, 4

    def make(self) -> None:
        draw = random_of(self.place, self.name)
        self.cases = [draw.normal(0, 1, (n, WIDTH)).astype(np.float32) for n in self.sizes]
        with tf.device(GPU):
            shapes = (WIDTH, self.wide), (self.wide, 8)
            first, second = (tf.Variable(matrix(draw, *shape)) for shape in shapes)

        @on_gpu(ROWS)
        def model(x: tf.Tensor) -> tf.Tensor:
            hidden = tf.tanh(tf.matmul(x, first))
            return tf.matmul(tf.tanh(hidden * 2.0) + hidden, second)

        self.function = tf.cuda.serving_callable(model)

    def call(self, x: np.ndarray) -> np.ndarray:
        with tf.device(GPU):
            return np.asarray(self.function(x))

    def step(self, worker: int, draw: random.Random, tally: Tally) -> None:
        most = self.often if draw.random() < 0.5 else len(self.cases)
        self.compare(draw.randrange(most), tally)

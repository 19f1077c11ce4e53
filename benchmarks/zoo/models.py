# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models of public packages, as their users write them, with random weights and int32 ids."""

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from zoo.sizes import BATCH, BERT, GPT2, ROWS, TOKENS, deepfm_inputs


class Made(NamedTuple):
    """A model.

    Attributes:
      call: calls it with one input, in inference.
      inputs: makes the next input: an array, or a list or dict of arrays.
      keras: the Keras model, which can be trained; None for a function.
    """

    call: Callable[[Any], Any]
    inputs: Callable[[], Any]
    keras: Any = None


_Builder = Callable[[np.random.RandomState], Made]
_BUILDERS: dict[str, _Builder] = {}


def names() -> list[str]:
    """All models, as "package: model"."""
    return list(_BUILDERS)


def make(name: str) -> Made:
    """Makes a model; ImportError if its package is not installed (build/requirements-zoo.txt)."""
    tf.keras.utils.set_random_seed(7)
    return _BUILDERS[name](np.random.RandomState(0))


def _model(package: str, *of_package: str) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Adds models of a package, made by the function with the model's name."""

    def add(build: Callable[..., Made]) -> Callable[..., Made]:
        for name in of_package:
            _BUILDERS[f"{package}: {name}"] = functools.partial(build, name=name)
        return build

    return add


def _of_keras(model: Any, inputs: Callable[[], Any]) -> Made:
    return Made(lambda x: model(x, training=False), inputs, model)


def _ids(random: np.random.RandomState, *shape: int, below: int = ROWS) -> Any:
    return random.randint(0, below, shape).astype(np.int32)


def _floats(random: np.random.RandomState, *shape: int) -> Any:
    return random.rand(*shape).astype(np.float32)


def _texts(random: np.random.RandomState, *shape: int, below: int) -> Any:
    """Words of which a vocabulary of 500 lacks some."""
    return np.char.add("k", _ids(random, *shape, below=below).astype(str))


def _deepctr_modules() -> tuple[Any, Any]:
    return importlib.import_module("deepctr.models"), importlib.import_module(
        "deepctr.feature_column"
    )


@_model("DeepCTR", "DeepFM", "xDeepFM", "MMOE")
def _deepctr(random: np.random.RandomState, name: str) -> Made:
    """26 categorical columns, 13 numbers, and one column of up to 10 genres."""
    models, feature = _deepctr_modules()
    columns = [feature.SparseFeat(f"C{i}", ROWS, embedding_dim=8) for i in range(26)]
    columns += [feature.DenseFeat(f"I{i}", 1) for i in range(13)]
    columns += [
        feature.VarLenSparseFeat(feature.SparseFeat("genres", 50, embedding_dim=8), 10, "mean")
    ]
    if name == "MMOE":
        model = models.MMOE(columns, task_types=("binary", "binary"), task_names=("click", "buy"))
    else:
        model = getattr(models, name)(columns, columns)

    return _of_keras(model, lambda: deepfm_inputs(random))


@_model("DeepCTR", "DIN")
def _din(random: np.random.RandomState, name: str) -> Made:
    """A user, an item, and the items of the user's history, as many as a length says."""
    models, feature = _deepctr_modules()
    history = feature.SparseFeat("hist_item", ROWS, embedding_dim=8, embedding_name="item")
    columns = [feature.SparseFeat(x, ROWS, embedding_dim=8) for x in ("user", "item")]
    columns += [
        feature.DenseFeat("age", 1),
        feature.VarLenSparseFeat(history, 20, length_name="seq_length"),
    ]

    def inputs() -> Any:
        lengths = random.randint(1, 20, BATCH).astype(np.int32)
        shown = np.arange(20)[None] < lengths[:, None]
        return {
            **{x: _ids(random, BATCH) for x in ("user", "item")},
            "age": _floats(random, BATCH, 1),
            "seq_length": lengths,
            "hist_item": (_ids(random, BATCH, 20) * shown).astype(np.int32),
        }

    return _of_keras(models.DIN(columns, ["item"]), inputs)


@_model("Hugging Face", "Bert", "GPT2")
def _hugging_face(random: np.random.RandomState, name: str) -> Made:
    """Two layers of 64 units, 32 tokens."""
    transformers = importlib.import_module("transformers")

    if name == "GPT2":
        return _of_keras(
            transformers.TFGPT2LMHeadModel(transformers.GPT2Config(**GPT2)),
            lambda: {"input_ids": _ids(random, BATCH, TOKENS)},
        )
    return _of_keras(
        transformers.TFBertForSequenceClassification(transformers.BertConfig(**BERT)),
        lambda: {
            "input_ids": _ids(random, BATCH, TOKENS),
            "attention_mask": np.ones([BATCH, TOKENS], np.int32),
        },
    )


@_model("TensorFlow Recommenders", "query tower and index")
def _index(random: np.random.RandomState, name: str) -> Made:
    """The 10 best of 1,000 candidates, all of which are scored."""
    tfrs = importlib.import_module("tensorflow_recommenders")
    layers = tf.keras.layers
    with tf.device("/CPU:0"):  # an emulated GPU would take the table
        lookup = layers.StringLookup(vocabulary=[f"k{i}" for i in range(500)])
    query = [lookup, layers.Embedding(501, 32), layers.Dense(32, "relu"), layers.Dense(16)]
    index = tfrs.layers.factorized_top_k.BruteForce(tf.keras.Sequential(query), k=10)
    index.index(tf.random.stateless_normal([ROWS, 16], [1, 2]))
    return Made(index, lambda: _texts(random, BATCH, below=600))


@_model("Keras applications", "MobileNetV3Small", "ResNet50V2", "ConvNeXtTiny")
def _application(random: np.random.RandomState, name: str) -> Made:
    model = getattr(tf.keras.applications, name)
    made = model(weights=None, input_shape=(64, 64, 3), classes=10)
    return _of_keras(made, lambda: _floats(random, 2, 64, 64, 3))


@_model("Keras", "MLP")
def _mlp(random: np.random.RandomState, name: str) -> Made:
    """With batch normalization and dropout."""
    layers = tf.keras.layers
    x = h = tf.keras.Input((32,))
    for _ in range(4):
        h = layers.Activation("relu")(layers.BatchNormalization()(layers.Dense(64)(h)))
        h = layers.Dropout(0.2)(h)
    return _of_keras(
        tf.keras.Model(x, layers.Dense(1, "sigmoid")(h)), lambda: _floats(random, BATCH, 32)
    )


@_model("Keras", "wide and deep")
def _wide_and_deep(random: np.random.RandomState, name: str) -> Made:
    """With Keras's preprocessing layers: words, hashed numbers, buckets, normalized numbers."""
    layers = tf.keras.layers
    word, number = tf.keras.Input((1,), dtype="string"), tf.keras.Input((1,), dtype="int64")
    dense, age = tf.keras.Input((4,)), tf.keras.Input((1,))
    normalize = layers.Normalization()
    normalize.adapt(random.rand(100, 4))
    with tf.device("/CPU:0"):  # an emulated GPU would take the table
        lookup = layers.StringLookup(vocabulary=[f"k{i}" for i in range(500)])
    embedded = [
        layers.Embedding(501, 8)(lookup(word)),
        layers.Embedding(64, 8)(layers.Hashing(64)(number)),
        layers.Embedding(5, 8)(layers.Discretization(bin_boundaries=[0.2, 0.5, 0.8])(age)),
    ]
    h = layers.Concatenate()([*(layers.Flatten()(x) for x in embedded), normalize(dense)])
    for units in (64, 32):
        h = layers.Dense(units, "relu")(h)
    model = tf.keras.Model([word, number, dense, age], layers.Dense(1, "sigmoid")(h))
    return _of_keras(
        model,
        lambda: [
            *(_texts(random, BATCH, 1, below=600), _ids(random, BATCH, 1).astype(np.int64)),
            *(_floats(random, BATCH, 4), _floats(random, BATCH, 1)),
        ],
    )


@_model("Keras", "LSTM", "RNN of cells")
def _recurrent(random: np.random.RandomState, name: str) -> Made:
    """By cuDNN, or by a loop."""
    layers = tf.keras.layers
    x = tf.keras.Input((20, 16))
    recurrent = layers.LSTM(32) if name == "LSTM" else layers.RNN(layers.GRUCell(32))
    return _of_keras(
        tf.keras.Model(x, layers.Dense(1)(recurrent(x))), lambda: _floats(random, BATCH, 20, 16)
    )


@_model("Keras", "transformer", "mixed-precision transformer")
def _transformer(random: np.random.RandomState, name: str) -> Made:
    layers = tf.keras.layers
    if name.startswith("mixed"):
        tf.keras.mixed_precision.set_global_policy("mixed_float16")
    x = tf.keras.Input((32,), dtype="int32")
    h = layers.Embedding(2000, 64)(x)
    for _ in range(2):
        attention = layers.MultiHeadAttention(4, 16, dropout=0.1)
        h = layers.LayerNormalization()(h + attention(h, h, use_causal_mask=name == "transformer"))
        h = layers.LayerNormalization()(h + layers.Dense(64)(layers.Dense(128, "gelu")(h)))
    model = tf.keras.Model(x, layers.Dense(2, dtype="float32")(h[:, 0]))
    return _of_keras(model, lambda: _ids(random, BATCH, 32, below=2000))


@_model("Keras", "DLRM")
def _dlrm(random: np.random.RandomState, name: str) -> Made:
    """One input with the ids of all 26 columns."""
    layers = tf.keras.layers
    x, z = tf.keras.Input((26,), dtype="int32"), tf.keras.Input((13,))
    bottom = layers.Dense(16, "relu")(layers.Dense(64, "relu")(z))
    rows = [layers.Embedding(ROWS, 16)(x[:, i]) for i in range(26)]
    stacked = tf.keras.ops.stack([*rows, bottom], 1)
    pairs = tf.keras.ops.matmul(stacked, tf.keras.ops.transpose(stacked, (0, 2, 1)))
    top = layers.Dense(64, "relu")(layers.Concatenate()([layers.Flatten()(pairs), bottom]))
    return _of_keras(
        tf.keras.Model([x, z], layers.Dense(1, "sigmoid")(top)),
        lambda: [_ids(random, BATCH, 26), _floats(random, BATCH, 13)],
    )


@_model("KerasRS", "DLRM")
def _keras_rs(random: np.random.RandomState, name: str) -> Made:
    keras_rs = importlib.import_module("keras_rs")
    layers = tf.keras.layers
    x, z = tf.keras.Input((8,), dtype="int32"), tf.keras.Input((16,))
    bottom = layers.Dense(16, "relu")(z)
    rows = [layers.Embedding(ROWS, 16)(x[:, i]) for i in range(8)]
    pairs = keras_rs.layers.DotInteraction()([*rows, bottom])
    top = layers.Dense(32, "relu")(layers.Concatenate()([pairs, bottom]))
    return _of_keras(
        tf.keras.Model([x, z], layers.Dense(1, "sigmoid")(top)),
        lambda: [_ids(random, BATCH, 8), _floats(random, BATCH, 16)],
    )


def _weights(*shape: int) -> Any:
    return tf.Variable(tf.random.stateless_normal(shape, [len(shape), 3]) * 0.1)


@_model("TensorFlow", "sparse columns")
def _sparse(random: np.random.RandomState, name: str) -> Made:
    """Six columns with 1 to 4 ids in a row."""
    tables = [_weights(ROWS, 16) for _ in range(6)]
    hidden, last = _weights(96, 32), _weights(32, 1)

    def call(columns: Any) -> Any:
        rows = [
            tf.nn.safe_embedding_lookup_sparse(table, column, combiner="mean")
            for table, column in zip(tables, columns, strict=True)
        ]
        return tf.sigmoid(tf.nn.relu(tf.concat(rows, 1) @ hidden) @ last)

    def column() -> Any:
        counts = random.randint(1, 5, BATCH)
        places = [[row, i] for row, count in enumerate(counts) for i in range(count)]
        return tf.SparseTensor(places, _ids(random, len(places)).astype(np.int64), [BATCH, 5])

    return Made(call, lambda: [column() for _ in range(6)])


@_model("TensorFlow", "table of words")
def _table(random: np.random.RandomState, name: str) -> Made:
    keys, values = [f"k{i}" for i in range(500)], tf.range(500, dtype=tf.int64)
    with tf.device("/CPU:0"):  # an emulated GPU would take the table
        initial = tf.lookup.KeyValueTensorInitializer(keys, values)
        words = tf.lookup.StaticHashTable(initial, 0)
    table, last = _weights(501, 32), _weights(32, 4)

    def call(x: Any) -> Any:
        return tf.nn.softmax(tf.reduce_mean(tf.gather(table, words.lookup(x)), 1) @ last)

    return Made(call, lambda: _texts(random, BATCH, 3, below=600))


@_model("TensorFlow", "parse_example")
def _parse_example(random: np.random.RandomState, name: str) -> Made:
    tables = [_weights(ROWS, 16) for _ in range(4)]
    hidden, last = _weights(72, 32), _weights(32, 1)
    spec = {f"c{i}": tf.io.FixedLenFeature([1], tf.int64) for i in range(4)}
    spec["d"] = tf.io.FixedLenFeature([8], tf.float32)

    def call(examples: Any) -> Any:
        with tf.device("/CPU:0"):
            parsed = tf.io.parse_example(examples, spec)
        rows = [tf.gather(table, parsed[f"c{i}"][:, 0]) for i, table in enumerate(tables)]
        return tf.sigmoid(tf.nn.relu(tf.concat([*rows, parsed["d"]], 1) @ hidden) @ last)

    def example() -> bytes:
        train = tf.train
        feature = {
            f"c{i}": train.Feature(int64_list=train.Int64List(value=_ids(random, 1)))
            for i in range(4)
        }
        feature["d"] = train.Feature(float_list=train.FloatList(value=_floats(random, 8)))
        found = train.Example(features=train.Features(feature=feature))
        return bytes(found.SerializeToString(deterministic=True))

    # Arrays of bytes would lose zeros at the end.
    return Made(call, lambda: np.array([example() for _ in range(BATCH)], object))


@_model("TensorFlow", "loop by lengths")
def _by_lengths(random: np.random.RandomState, name: str) -> Made:
    """A recurrent loop that keeps the state of a row whose length is reached."""
    weights = _weights(48, 32)

    def call(inputs: Any) -> Any:
        x, lengths = inputs

        def step(i: Any, state: Any) -> Any:
            new = tf.tanh(tf.concat([x[:, i], state], 1) @ weights)
            return i + 1, tf.where((i < lengths)[:, None], new, state)

        first = (0, tf.zeros([tf.shape(x)[0], 32]))
        return tf.while_loop(lambda i, _: i < tf.shape(x)[1], step, first)[1]

    return Made(call, lambda: [_floats(random, BATCH, 12, 16), _ids(random, BATCH, below=12)])


@_model("TensorFlow", "branches by values")
def _by_values(random: np.random.RandomState, name: str) -> Made:
    weights = _weights(16, 16)

    def call(x: Any) -> Any:
        for _ in range(5):
            h = x @ weights
            x = tf.cond(tf.reduce_sum(x) > 0, lambda h=h: tf.tanh(h), lambda h=h: tf.nn.relu(h))
        return x

    return Made(call, lambda: _floats(random, BATCH, 16) - np.float32(0.5))

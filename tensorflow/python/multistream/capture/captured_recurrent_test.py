# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of Keras, which cuDNN computes on a GPU, are captured and have the same bits."""

import pytest

from multistream.testing import kit

LAYERS = """
import itertools
layers = tf.keras.layers

def compare(name, *made, captured=True, compare=compare):
    # Shapes take turns, so that a recording's lengths are not those of the last call.
    turns = itertools.count()
    def draw():
        i = next(turns)
        x = floats(*[(4, 7, 3), (4, 5, 3), (2, 7, 3)][i % 3])
        x[:, 4:] *= i % 2  # with a mask, shorter sequences
        return x
    with tf.device(GPU):
        x = tf.keras.Input((None, 3))
        h = x
        for layer in made:
            h = layer(h)
        model = tf.keras.Model(x, h)
    before = total("pieces_replayed")
    compare(name, lambda x: model(tf.tanh(x), training=False), draw, captured=captured, runs=15)
    check((total("pieces_replayed") > before) != captured, f"{name}: pieces")

compare("lstm", layers.LSTM(5))
compare("gru", layers.GRU(5), layers.Dense(2))
compare("sequences", layers.LSTM(5, return_sequences=True), layers.GRU(4, return_state=True))
compare("both directions", layers.Bidirectional(layers.LSTM(5)))
compare("batch", layers.Dense(3), layers.LSTM(5, go_backwards=True))
# In a piece, after an op whose result's shape depends on data.
rows = layers.Lambda(lambda x: tf.gather(x, tf.where(x[:, 0, 0] > -9)[:, 0]),
                     output_shape=lambda shape: shape)
compare("in a piece", rows, layers.LSTM(5), captured=False)
# A mask is a value of the GPU.
compare("masked", layers.Masking(), layers.LSTM(5), captured=False)
"""


def test_layers() -> None:
    kit.run_captured(LAYERS, capture="marked", TF_MULTI_STREAM_CAPTURE_PIECES="1")


TRAININGS = """
from tensorflow.keras import layers

def model(made):
    model = tf.keras.Sequential([layers.Embedding(20, 6), *[m() for m in made], layers.Dense(2)])
    model.build((None, 7))
    return model

data = [(np.stack([rng.permutation(20)[:7] for _ in range(n)]).astype(np.int32), floats(n, 2))
        for n in (4, 4, 2)]
for name, made in {
        "lstm": [lambda: layers.LSTM(5)], "gru": [lambda: layers.GRU(5)],
        "two": [lambda: layers.LSTM(5, return_sequences=True), lambda: layers.GRU(4)],
        "both directions": [lambda: layers.Bidirectional(layers.LSTM(5))]}.items():
    make = trained(lambda: model(made), lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9))
    report = alike(name, make, *data, captured=None, runs=30)
    check(report.share > 0.9, f"{name}: {report}")
"""


@pytest.mark.parametrize("verify", ["0", "1"])
def test_trainings(verify: str) -> None:
    kit.run_captured(
        TRAININGS,
        capture="marked",
        TF_DETERMINISTIC_OPS="1",
        TF_MULTI_STREAM_CAPTURE_VERIFY=verify,
    )


EMULATED = """
import numpy as np, tensorflow as tf
layers, x = tf.keras.layers, np.random.default_rng(1).normal(0, 1, (3, 6, 4)).astype(np.float32)
mask = np.arange(6)[None] < np.array([[6], [2], [1]])
tf.keras.utils.set_random_seed(1)  # of the weights

def by_keras(layer):
    other = type(layer).from_config({**layer.get_config(), "use_cudnn": False})
    other(x)
    other.set_weights(layer.get_weights())
    return other

@tf.function
def results(layer, x, mask):
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = layer(x, mask=mask)
        # In padding, cuDNN gives 0, and Keras's loop what was before.
        if mask is not None and found.shape.rank == 3:
            found *= tf.cast(mask, found.dtype)[:, :, None]
        loss = tf.reduce_sum(tf.cast(found, tf.float32) * tf.range(5, dtype=tf.float32))
    return found, tape.gradient(loss, [x, *[w.value for w in layer.trainable_variables]])

with tf.device("/GPU:0"):
    for made in (layers.LSTM(5, bias_initializer="uniform"), layers.GRU(5),
                 layers.LSTM(5, return_sequences=True, go_backwards=True),
                 layers.GRU(5, bias_initializer="uniform", return_sequences=True),
                 layers.GRU(5, dtype="float16")):
        for given in (None, tf.constant(mask)):
            made(x)
            if getattr(made, "go_backwards", False) and given is not None:
                continue
            atol = 1e-2 if made.dtype == "float16" else 1e-5
            found, right = (results(of, tf.constant(x), given) for of in (made, by_keras(made)))
            for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(right), strict=True):
                np.testing.assert_allclose(a, b, atol=atol)

    def layer(x=x, state=(3, 1, 5), parameters=4 * 5 * 11, lengths=(6, 2, 0), **more):
        given = {"rnn_mode": "lstm", "time_major": False, **more}
        state = tf.zeros(state)
        return tf.function(lambda: tf.raw_ops.CudnnRNNV3(
            input=x, input_h=state, input_c=state, params=tf.zeros([parameters]),
            sequence_lengths=tf.constant(lengths, tf.int32), **given))()

    layer()
    for error, said, more in (
            (tf.errors.UnimplementedError, "dropout 0.5", {"dropout": 0.5}),
            (tf.errors.UnimplementedError, "here with rnn_tanh", {"rnn_mode": "rnn_tanh"}),
            (tf.errors.InvalidArgumentError, "length 7 of sequence 1", {"lengths": (6, 7, 0)}),
            (tf.errors.InvalidArgumentError, "do not fit", {"parameters": 7}),
            (tf.errors.InvalidArgumentError, "do not fit", {"state": (3, 2, 5)})):
        try:
            layer(**more)
            raise SystemExit(f"no error that says {said}")
        except error as found:
            assert said in str(found), found
"""


@pytest.mark.skipif(kit.ON_GPU, reason="it is cuDNN that computes them")
def test_an_emulated_gpu_computes_what_keras_does() -> None:
    kit.ok(EMULATED, TF_MULTI_STREAM_EMULATED_GPUS="1")

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trainings as Keras's users write them: captured in large part, with the bits of other steps."""

import pathlib

import pytest

from multistream.testing import kit

MODELS = """
import keras
from keras import layers, optimizers as of

def dense():
    ids = keras.Input([6], dtype="int32")
    h = layers.Flatten()(layers.Embedding(50, 8)(ids))
    h = layers.Dropout(0.3)(layers.Dense(16, "relu")(h))
    return keras.Model(ids, layers.Dense(2)(h))

def norm():
    ids = keras.Input([6], dtype="int32")
    h = layers.LayerNormalization()(layers.BatchNormalization()(layers.Embedding(50, 8)(ids)))
    h = layers.Dense(16, "gelu")(layers.GaussianNoise(0.1)(layers.Flatten()(h)))
    return keras.Model(ids, layers.Dense(2)(h))

def rnn():
    ids = keras.Input([6], dtype="int32")
    h = layers.GRU(8, use_cudnn=False)(layers.Embedding(50, 8, mask_zero=True)(ids))
    return keras.Model(ids, layers.Dense(2)(h))

# The last batch of an epoch is smaller.
data = [(rng.integers(0, 50, (n, 6)).astype(np.int32), floats(n, 2)) for n in (8, 8, 5)]

def expect_share(name, share, *arguments, **options):
    report = alike(name, trained(*arguments, **options), *data, captured=None, runs=36)
    check(report.share >= share, f"{name}: {report}")
"""


def run(*code: str) -> None:
    kit.run_captured(MODELS, *code, capture="marked", TF_DETERMINISTIC_OPS="1")


def test_optimizers() -> None:
    """With sparse gradients of embeddings, equal ids in a batch, and a new mask in each step."""
    run("""
for optimizer, share in ((of.Adam, 0.95), (of.Adagrad, 0.6), (of.Ftrl, 0.9), (of.RMSprop, 0.8),
                         (of.Nadam, 0.9), (of.Lion, 0.9), (of.AdamW, 0.9)):
    expect_share(optimizer.__name__, share, dense, lambda: optimizer(0.01))
expect_share("SGD", 0.9, dense, lambda: of.SGD(0.05, momentum=0.9, weight_decay=0.01))
""")


def test_what_is_around_an_optimizer() -> None:
    run("""
schedule = lambda: of.schedules.CosineDecay(0.01, 100)
expect_share("schedule", 0.95, dense, lambda: of.Adam(schedule()))
expect_share("EMA", 0.9, dense, lambda: of.Adam(0.01, use_ema=True, ema_overwrite_frequency=7))
expect_share("clipnorm", 0.95, dense, lambda: of.Adam(0.01, clipnorm=0.1))
expect_share("global clipnorm", 0.95, norm, lambda: of.Adam(0.01, global_clipnorm=0.1))
expect_share("loss scale", 0.9, dense, lambda: of.LossScaleOptimizer(of.Adam(0.01), 2.0**15, 7))
expect_share("metrics", 0.95, dense, lambda: of.Adam(0.01), metrics=["mae", "mse"])
expect_share("recurrent", 0.9, rnn, lambda: of.Adam(0.01))
# Most steps leave out the branch with the update.
expect_share("accumulation", 0.1, dense, lambda: of.Adam(0.01, gradient_accumulation_steps=3))
""")


def test_what_all_variables_need_is_computed_once(tmp_path: pathlib.Path) -> None:
    """Keras computes the step's learning rate for each variable: a replay, for all of them."""
    run(
        f"ON_GPU, path = {kit.ON_GPU}, {str(tmp_path / 'trace.json')!r}\n",
        """
import json
with tf.device(GPU):
    function, variables = trained(dense, lambda: of.Adam(0.01))()
    step = tf.cuda.captured(mode="auto")(function)
    for i in range(20):
        step(*data[0])
    with tf.cuda.trace(path):
        step(*data[0])
    report = tf.cuda.capture_report(step, *data[0])
launched = sum(event["args"]["kernels"] for event in json.load(open(path))["traceEvents"]
               if event.get("cat") == "replay")
launches = max(count.launches for count in report.counts)
check(report.share == 1, str(report))
# At least seven for each further variable. On a GPU, an op may launch several kernels.
check(ON_GPU or 0 < launched <= launches - 28, f"{launched} of {launches}")
""",
    )


def test_seeds_of_a_checkpoint(tmp_path: pytest.TempPathFactory) -> None:
    """A model that is restored draws the masks again that it drew after it was saved."""
    run(
        f"path = {str(tmp_path)!r}\n",
        """
function, variables = trained(norm, lambda: of.Adam(0.01))()
step = tf.cuda.captured(mode="auto")(function)
with tf.device(GPU):
    for i in range(20):
        step(*data[i % 3])
    checkpoint = tf.train.Checkpoint(values=variables)
    saved = checkpoint.write(path + "/c")
    def following():
        return [bits(step(*data[i % 3])) for i in range(9)]
    after = following()
    check(following() != after, "the model does not change")
    checkpoint.read(saved).assert_consumed()
    check(following() == after, "restored")
report = tf.cuda.capture_report(step, *data[0])
check(report.share > 0.5, str(report))
""",
    )


@pytest.mark.parametrize("reduction", ["None", "tf.distribute.ReductionToOneDevice()"])
def test_two_gpus(reduction: str) -> None:
    """Steps of MirroredStrategy have the losses and weights of steps that are not captured."""
    kit.run_captured(
        """
from keras import optimizers as of
layers = tf.keras.layers
gpus = ["/GPU:0", "/GPU:1"]

def make():
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(gpus, REDUCTION)
    with strategy.scope():
        model = tf.keras.Sequential([
            tf.keras.Input([3], dtype="int32"), layers.Embedding(20, 8), layers.Flatten(),
            layers.Dense(16, "relu"), layers.Dropout(0.3), layers.BatchNormalization(),
            layers.Dense(1)])
        optimizer = of.Adam(0.01)
        optimizer.build(model.trainable_variables)
    def replica(ids, labels):
        at = tf.distribute.get_replica_context().replica_id_in_sync_group
        ids, labels = (tf.gather(t, tf.range(4) + 4 * at) for t in (ids, labels))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(ids, training=True) - labels) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss
    @tf.function(autograph=False)
    def step(ids, labels):
        losses = strategy.experimental_local_results(strategy.run(replica, args=(ids, labels)))
        return [tf.identity(loss) for loss in losses]
    values = [getattr(v, "value", v) for v in (*model.variables, *optimizer.variables)]
    return step, [v for value in values for v in getattr(value, "values", [value])]

data = [(rng.integers(0, 20, (8, 3)).astype(np.int32), floats(8, 1)) for _ in range(3)]
report = alike("mirrored", make, *data, captured=None, runs=40)
check("Collective" in str(report) or "has another device" in str(report), str(report))
""".replace("REDUCTION", reduction),
        TF_MULTI_STREAM_EMULATED_GPUS="2",
        TF_DETERMINISTIC_OPS="1",
    )

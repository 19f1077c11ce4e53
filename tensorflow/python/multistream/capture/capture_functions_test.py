# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions, Keras and SavedModels that are captured, whose variables change between the calls."""

import pytest

from multistream.testing.kit import run_captured

ARGUMENTS = """
w = floats(16, 4)

@on_gpu
def function(x, ids):
    y = tf.matmul(x, w)
    return {"y": tf.tanh(y) + tf.gather(tf.constant(w), ids), "sums": [tf.reduce_sum(y, 1)]}

x, ids = floats(6, 16), rng.integers(0, 16, 6).astype(np.int64)
with tf.device(GPU):
    expect("arguments on the GPU", function, tf.constant(x), tf.constant(ids))
with tf.device("/CPU:0"):
    expect("arguments on the host", function, tf.constant(x), tf.constant(ids))
expect("arrays", function, x, ids)

with tf.device(GPU):
    identity = on_gpu(lambda a, b: (b, a, a * 2.0))
    expect("arguments that are results", identity, tf.constant(x), tf.constant(ids))
    empty = on_gpu(lambda a: (a + 1.0, tf.shape(a)))
    expect("no rows, and a shape", empty, tf.zeros([0, 3]))
    for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.int64, tf.bool):
        flip = on_gpu(lambda a: tf.cast(tf.logical_not(tf.cast(a, tf.bool)), a.dtype))
        expect(f"{dtype.name} in and out", flip, tf.cast(tf.constant([0, 1, 0]), dtype))
    sizes = on_gpu(lambda a, n: tf.fill([n], 1.0) + a)
    expect("a size", sizes, tf.constant(1.0), tf.constant(3), captured=False)

    # Results belong to the caller.
    double = on_gpu(lambda x: x * 2.0)
    results = [tf.constant(floats(64, 64))]
    for _ in range(30):
        results.append(double(results[-1]))
    for x, y in zip(results, results[1:]):
        check((y.numpy() == 2 * x.numpy()).all(), "a result that is kept")
"""


@pytest.mark.parametrize(("groups", "verify"), [(2, "0"), (1, "1")])
def test_arguments_and_results(groups: int, verify: str) -> None:
    run_captured(ARGUMENTS, groups=groups, TF_MULTI_STREAM_CAPTURE_VERIFY=verify)


def test_variables_that_are_assigned_are_put_back() -> None:
    """No step is recorded again, and a kept old value does not change."""
    run_captured("""
tf.device(GPU).__enter__()
w, large = tf.Variable(tf.zeros([32, 8])), tf.Variable(tf.zeros([17 << 20]))  # 68 MiB
read = on_gpu(lambda x: x + w)
read_large = on_gpu(lambda x: (x + large[:4], large.read_value()[-4:]))

one = tf.ones([32, 8])
expect("zeros", read, one)
before = total("recordings_made")
for i in range(300):
    w.assign(tf.fill([32, 8], float(i)))
    check((read(one).numpy() == i + 1).all(), "assigned")
made = total("recordings_made") - before
check(made <= 1, f"recorded {made} times")

# The memory that the recordings read is somebody else's from here on.
before, replays, start = total("recordings_made"), replayed(), time.monotonic()
kept = w.read_value()
for i in range(1000):
    if i % 50 == 0: w.assign(tf.fill([32, 8], -1.0 - i))
    check((read(one).numpy() == -(i // 50) * 50).all(), "assigned, and the old value is kept")
    check((kept.numpy() == 299).all(), "kept")
    if i == 500: time.sleep(max(0, start + 0.2 - time.monotonic()))
check(total("recordings_made") > before, "recorded with another home")
check(replayed() > replays + 300, f"replayed {replayed() - replays}")

four = tf.ones([4])
replays = replayed()
for i in range(4):
    large.assign(tf.fill([17 << 20], float(i)))
    for _ in range(50):
        found = [r.numpy() for r in read_large(four)]
        check((found[0] == i + 1).all() and (found[1] == i).all(), "large")
check(replayed() > replays, "large ones are recorded again")
""")


def test_variables_restored_resized_and_deleted() -> None:
    run_captured("""
class Model(tf.Module):
    def __init__(self, seed, columns=4):
        rng = np.random.default_rng(seed)
        with tf.device(GPU):
            self.w = tf.Variable(
                rng.normal(0, 1, (8, columns)).astype(np.float32), shape=[8, None])
        self.call = on_gpu(lambda x: tf.tanh(tf.matmul(x, self.w)))

    def compare(self, what, runs=10):
        x = floats(3, 8)
        with tf.device(GPU):
            expected = tf.tanh(tf.matmul(x, self.w)).numpy()
        for _ in range(runs):
            check(self.call(x).numpy().tobytes() == expected.tobytes(), what)

model = Model(1)
model.compare("new")
import gc, tempfile
with tempfile.TemporaryDirectory() as folder:
    path = tf.train.Checkpoint(model=model).write(folder + "/one")
    model.w.assign(model.w + 1.0)
    model.compare("assigned")
    tf.train.Checkpoint(model=model).read(path)
    model.compare("restored")
model.w.assign(floats(8, 7))
model.compare("resized")
before = replayed()
for seed in range(30):
    Model(seed).compare("a new model in the place of the last one", runs=8)
check(replayed() > before, "replayed")
gc.collect()
model.compare("the first one")

# A gradient may need a variable's shape alone.
from tensorflow.python.ops import gen_resource_variable_ops
@on_gpu
def columns(x):
    shape = gen_resource_variable_ops.variable_shape(model.w.handle)
    return tf.tanh(x) * 0.0 + tf.cast(shape[1], tf.float32)
for count in (4, 6, 4, 9):
    model.w.assign(floats(8, count))
    for _ in range(6):
        check((columns(floats(2)).numpy() == count).all(), f"{count} columns")
""")


def test_variables_of_sessions() -> None:
    run_captured("""
with tf.Graph().as_default(), tf.device(GPU):
    x = tf1.placeholder(tf.float32, [None, 4])
    w = tf1.get_variable("w", [4, 4], initializer=tf1.ones_initializer(), use_resource=True)
    y, double = tf.matmul(x, w), w.assign(w * 2.0)
    for value in (2.0, 3.0):
        before = replayed()
        with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
            session.run(w.initializer)
            w.load(np.full([4, 4], value, np.float32), session)
            for i in range(12):
                for _ in range(6):
                    found = session.run(y, {x: np.ones([2, 4], np.float32)})
                    check((found == 4.0 * value * 2**i).all(), "this session's variable")
                session.run(double)
        check(replayed() > before, "replayed")
""")


CHANGES = """
with tf.device(GPU):
    w = tf.Variable(tf.zeros([64, 64]))
    table = tf.Variable(tf.zeros([1, 1]))  # an emulated GPU may read rows while they change
version = [0, 0]  # begun, ended

@on_gpu
def read(x):
    return x * w, x + tf.gather(table, tf.constant([0], tf.int64))

def change():
    tf.device(GPU).__enter__()
    for i in range(1, STEPS):
        version[0] = i
        if i % 7 == 0:
            w.assign(tf.fill([64, 64], float(i)))
        else:
            w.assign_add(tf.ones([64, 64]))
        table.scatter_update(tf.IndexedSlices(tf.fill([1, 1], float(i)), tf.constant([0])))
        version[1] = i
        time.sleep(0.02)
    version[0] = -1

def client():
    tf.device(GPU).__enter__()
    one = tf.ones([64, 64])
    while version[0] >= 0:
        least = version[1]
        product, total = (r.numpy() for r in read(one))
        most = abs(version[0]) if version[0] >= 0 else STEPS
        for found, name in ((product, "w"), (total - 1, "table")):
            check((found == found[0, 0]).all(), f"{name}: mixed")
            check(least <= found[0, 0] <= most, f"{name}: stale")

run_threads([change] + [client] * THREADS)
check(replayed() > 100, f"replayed {replayed()}")
if os.environ["TF_MULTI_STREAM_CAPTURE_VERIFY"] == "1":
    check(100 < total("replays_verified") < replayed(), f"{total('replays_verified')} verified")
"""


@pytest.mark.parametrize("verify", ["0", "1"])
def test_variables_change_under_load(verify: str) -> None:
    run_captured(CHANGES, groups=4, TF_MULTI_STREAM_CAPTURE_VERIFY=verify)


def test_keras_predict() -> None:
    run_captured("""
import keras
with tf.device(GPU):
    features, ids = keras.Input((16,)), keras.Input((4,), dtype="int64")
    y = keras.layers.Flatten()(keras.layers.Embedding(50, 8)(ids))
    y = keras.layers.Concatenate()([features, y])
    y = keras.layers.LayerNormalization()(keras.layers.Dense(32, activation="relu")(y))
    model = keras.Model([features, ids], keras.layers.Dense(3, activation="softmax")(y))
    model.compile(jit_compile=False)
x, i = floats(32, 16), rng.integers(0, 50, (32, 4))
def predict():
    with tf.device(GPU):
        return model.predict([x, i], verbose=0)
expect("predict", predict)
model.set_weights([w * 0.5 for w in model.get_weights()])
with tf.device(GPU):
    expected = model([x, i]).numpy()
check(np.abs(predict() - expected).max() < 1e-6, "after set_weights")
expect("predict with new weights", predict)
""")

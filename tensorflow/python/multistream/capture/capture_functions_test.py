# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions, Keras and SavedModels that are captured, whose variables change between the calls.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

from multistream.testing import kit

HELPERS = (
    kit.CAPTURE_HELPERS
    + """
import tempfile

rng = np.random.default_rng(1)

def floats(*shape, dtype=np.float32):
    return rng.normal(0, 1, shape).astype(dtype)

def expect(name, function, *arguments, captured=True, runs=12):
    # The first calls run as always; later ones give the same bits.
    before = replayed()
    first = bits(function(*arguments))
    for _ in range(runs):
        check(bits(function(*arguments)) == first, name)
    check((replayed() > before) == captured, f"{name}: {replayed() - before} steps were replayed")
"""
)


def run(code: str, groups: int = 2, **variables: str) -> None:
    """Runs code after HELPERS, with two groups whose steps are captured."""
    kit.run_checks(HELPERS + code, groups=groups, TF_MULTI_STREAM_CAPTURE="auto", **variables)


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
"""


def test_arguments_and_results() -> None:
    run(ARGUMENTS)


def test_each_replay_verified() -> None:
    run(ARGUMENTS, TF_MULTI_STREAM_CAPTURE_VERIFY="1")


def test_one_group() -> None:
    run(ARGUMENTS, groups=1)


def test_results_belong_to_the_caller() -> None:
    run("""
double = on_gpu(lambda x: x * 2.0)
with tf.device(GPU):
    inputs = [tf.constant(floats(64, 64)) for _ in range(40)]
    results = [double(x) for x in inputs]
    for x, y in zip(inputs, results):
        check((y.numpy() == 2 * x.numpy()).all(), "kept result")
    chained = inputs[0]
    for _ in range(30):
        chained = double(chained)
    check((chained.numpy() == inputs[0].numpy() * 2.0**30).all(), "result as the next argument")
check(replayed() > 40, "replayed")
""")


def test_variables_are_read_where_they_are() -> None:
    run("""
with tf.device(GPU):
    table = tf.Variable(floats(50, 8))
    w = tf.Variable(floats(8, 4))
    shift = tf.Variable(tf.zeros([4]))

def plain(ids):
    return tf.matmul(tf.gather(table, ids), w) + shift, w.read_value(), shift.read_value()

captured = on_gpu(plain)
ids = np.arange(9)
with tf.device(GPU):
    expect("variables", captured, ids)

def compare(what):
    with tf.device(GPU):
        check(bits(captured(ids)) == bits(plain(tf.constant(ids))), what)

for i in range(400):
    if i % 3 == 0: shift.assign_add(tf.ones([4]))
    if i % 100 == 50: w.assign(w * 0.5)
    if i % 70 == 60: table.scatter_update(tf.IndexedSlices(tf.ones([2, 8]) * i, [3, 5]))
    compare(f"change {i % 210}")
check(replayed() > 150, f"replayed {replayed()}")
""")


def test_variables_that_are_assigned_are_put_back() -> None:
    """No step is recorded again, and a kept old value does not change."""
    run("""
tf.device(GPU).__enter__()
w, large = tf.Variable(tf.zeros([32, 8])), tf.Variable(tf.zeros([17 << 20]))  # 68 MiB
read = on_gpu(lambda x: x + w)
read_large = on_gpu(lambda x: (x + large[:4], large.read_value()[-4:]))

def recordings():
    return sum(s.recordings_made for s in tf.cuda.stream_stats())

one = tf.ones([32, 8])
expect("zeros", read, one)
before = recordings()
for i in range(300):
    w.assign(tf.fill([32, 8], float(i)))
    check((read(one).numpy() == i + 1).all(), "assigned")
check(recordings() - before <= 1, f"recorded {recordings() - before} times")

# The memory that the recordings read is somebody else's from here on.
before, replays, start = recordings(), replayed(), time.monotonic()
kept = w.read_value()
for i in range(1000):
    if i % 50 == 0: w.assign(tf.fill([32, 8], -1.0 - i))
    check((read(one).numpy() == -(i // 50) * 50).all(), "assigned, and the old value is kept")
    check((kept.numpy() == 299).all(), "kept")
    if i == 500: time.sleep(max(0, start + 0.2 - time.monotonic()))
check(recordings() > before, "recorded with another home")
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
    run("""
class Model(tf.Module):
    def __init__(self, seed, columns=4):
        rng = np.random.default_rng(seed)
        with tf.device(GPU):
            self.w = tf.Variable(
                rng.normal(0, 1, (8, columns)).astype(np.float32), shape=[8, None])

        @tf.function(autograph=False)
        def call(x):
            with tf.device(GPU):
                return tf.tanh(tf.matmul(x, self.w))
        self.call = call

    def compare(self, what, runs=10):
        x = floats(3, 8)
        with tf.device(GPU):
            expected = tf.tanh(tf.matmul(x, self.w)).numpy()
        for _ in range(runs):
            check(self.call(x).numpy().tobytes() == expected.tobytes(), what)

model = Model(1)
model.compare("new")
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
import gc
gc.collect()
model.compare("the first one")
""")


def test_sessions_with_variables() -> None:
    run("""
with tf.Graph().as_default(), tf.device(GPU):
    x = tf1.placeholder(tf.float32, [None, 4])
    w = tf1.get_variable("w", [4, 4], initializer=tf1.ones_initializer(), use_resource=True)
    table = tf1.get_variable("t", [4, 4], initializer=tf1.ones_initializer(), use_resource=True)
    y = tf.matmul(x, w) + tf.gather(table, tf.constant([1, 1], tf.int64))
    double, other = w.assign(w * 2.0), table.scatter_add(tf.IndexedSlices(tf.ones([1, 4]), [1]))
    config = tf1.ConfigProto(allow_soft_placement=True)
    with tf1.Session(config=config) as session:
        session.run([w.initializer, table.initializer])
        for i in range(20):
            for _ in range(6):
                found = session.run(y, {x: np.ones([2, 4], np.float32)})
                check((found == 4.0 * 2**i + i + 1).all(), "variable")
            session.run([double, other])
    before = replayed()
    for value in (2.0, 3.0):
        with tf1.Session(config=config) as session:
            session.run(w.initializer)
            session.run(table.initializer)
            w.load(np.full([4, 4], value, np.float32), session)
            for _ in range(12):
                found = session.run(y, {x: np.ones([2, 4], np.float32)})
                check((found == 4.0 * value + 1).all(), "another session's variable")
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
        time.sleep(0.05)
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
"""


def test_variables_change_under_load() -> None:
    run(CHANGES, groups=4)


def test_variables_change_under_load_and_each_replay_verified() -> None:
    verified = """
stats = tf.cuda.stream_stats()
verified = sum(s.replays_verified for s in stats)
check(100 < verified < replayed(), f"verified {verified} of {replayed()}")
"""
    run(CHANGES + verified, groups=4, TF_MULTI_STREAM_CAPTURE_VERIFY="1")


def test_keras_predict() -> None:
    run("""
import keras
with tf.device(GPU):
    features, ids = keras.Input((16,)), keras.Input((4,), dtype="int64")
    y = keras.layers.Flatten()(keras.layers.Embedding(50, 8)(ids))
    y = keras.layers.Concatenate()([features, y])
    y = keras.layers.LayerNormalization()(keras.layers.Dense(32, activation="relu")(y))
    model = keras.Model([features, ids], keras.layers.Dense(3, activation="softmax")(y))
    model.compile(jit_compile=False)
x, i = floats(32, 16), rng.integers(0, 50, (32, 4))
predict = lambda: model.predict([x, i], verbose=0)
expect("predict", predict)
model.set_weights([w * 0.5 for w in model.get_weights()])
with tf.device(GPU):
    expected = model([x, i]).numpy()
check(np.abs(predict() - expected).max() < 1e-6, "after set_weights")
expect("predict with new weights", predict)
""")


def test_a_saved_model_reloaded_under_load() -> None:
    run("""
class Model(tf.Module):
    def __init__(self, scale):
        self.w = tf.Variable(floats(16, 8) * scale)

    @tf.function(input_signature=[tf.TensorSpec([None, 16])])
    def __call__(self, x):
        return {"y": tf.nn.softmax(tf.matmul(x, self.w))}

with tempfile.TemporaryDirectory() as folder, tf.device(GPU):
    for scale in (1, 2):
        model = Model(scale)
        tf.saved_model.save(model, f"{folder}/{scale}", signatures=model.__call__)
    def load(scale):
        loaded = tf.saved_model.load(f"{folder}/{scale}")
        return loaded, loaded.signatures["serving_default"]
    x = tf.constant(floats(5, 16))
    expected = {scale: load(scale)[1](x=x)["y"].numpy().tobytes() for scale in (1, 2)}
    check(expected[1] != expected[2], "two models")
    serving = [(1, load(1))]
    done = []

    def client():
        with tf.device(GPU):
            while not done:
                scale, (_, signature) = serving[0]
                check(signature(x=x)["y"].numpy().tobytes() == expected[scale], "result")

    def reload():
        with tf.device(GPU):
            for i in range(8):
                serving[0] = (1 + i % 2, load(1 + i % 2))
                before = replayed()
                check(eventually(lambda: replayed() > before + 50), "replayed after a reload")
        done.append(True)

    run_threads([reload] + [client] * 4)
""")

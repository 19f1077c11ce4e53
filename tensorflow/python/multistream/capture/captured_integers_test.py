# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps that take 32-bit integers from the host are captured, with the bits of uncaptured steps."""

from multistream.testing import kit

COMPARE = """
LOWEST, HIGHEST = -2**31, 2**31

def ints(*shape, lowest=LOWEST, below=HIGHEST):
    return lambda: rng.integers(lowest, below, shape).astype(np.int32)

def compare(name, function, *draws, compare=compare, **options):
    # A step that launches nothing is not captured.
    def with_launch(x, *arguments):
        return tf.tanh(x), function(*arguments)
    compare(name, with_launch, lambda: floats(2), *draws, **options)
"""

FUNCTIONS = """
table = tf.constant(floats(50, 4))
ids = ints(6, 2, lowest=0, below=50)
scalar = ints(lowest=0, below=6)

compare("gather", lambda i: tf.gather(table, i), ids)
compare("columns", lambda i: tf.gather(table, i[:, 0]) * tf.gather(table, i[:, 1]), ids)
compare("offsets", lambda i: tf.gather(table, (i + tf.constant([7, 30])) % 50), ids)
compare("mask", lambda i: tf.cast(tf.not_equal(i, 0), tf.float32)[:, :, None] * 2.0, ids)
compare("where", lambda i: tf.gather(table, tf.where(i > 9, i, tf.zeros_like(i))), ids)
compare("one hot", lambda i: tf.one_hot(i, 50), ids)
compare("to int64 and back", lambda i: tf.cast(tf.cast(i, tf.int64) * 3, tf.int32), ids)
compare("concatenated", lambda i, j: tf.gather(table, tf.concat([i, tf.stack([j, j], 1)], 0)),
        ids, ints(3, lowest=0, below=50))
compare("positions", lambda i: tf.gather(table, tf.range(tf.shape(i)[1]) + i[:, :1] % 3), ids)
compare("int32 results", lambda i: (i * 2, tf.reduce_sum(i, 1), tf.shape(i)), ids)
compare("of all 32 bits", lambda i: (i + i, i - 5, -i, i * i, tf.abs(i), tf.cumsum(i),
                                     tf.reduce_sum(i)), ints(5, 3))
# As float numbers, which move them on a GPU: infinite, signaling and quiet NaN, -0, denormal.
PATTERNS = np.array([0x7f800000, 0x7f800001, 0x7fc00001, 0x7fffffff, 1, 0x007fffff], np.int32)
PATTERNS = np.concatenate([PATTERNS, PATTERNS | LOWEST, [0, LOWEST]]).astype(np.int32)
def patterns():
    return rng.permutation(PATTERNS)
compare("moved bits", lambda i: (
    tf.reverse(tf.transpose(tf.reshape(i, [7, 2])), [1]), i[::3], tf.pad(i, [[1, 2]]),
    tf.tile(i, [2]), tf.broadcast_to(i[:, None], [14, 3]),
    i[:7] + i[7:], i[:7] - i[7:], i[:7] * i[7:], i[:7] == i[7:], i != i[::-1]), patterns)
# A GPU has no kernels for these: TensorFlow has them on the CPU.
compare("moved bits of the CPU", lambda i: (
    tf.stack(tf.unstack(i)), tf.split(i, 2), tf.concat([i, i], 0), tf.slice(i, [3], [5]),
    tf.zeros_like(i)), patterns)
compare("divided", lambda i: (i // 7, i % 7, i // -3, i % -3), ints(5, 3))
compare("no rows", lambda i: tf.gather(table, tf.reshape(i, [-1]) % 50), ints(0, 2))
compare("a scalar", lambda i: tf.gather(table, i) * tf.cast(i, tf.float32), scalar)
compare("an argument as it is", lambda i: (i, i + 1), ids)

def on_the_gpu(draw):
    def moved():
        with tf.device(GPU):
            return tf.identity(draw())
    return moved

def both(i):
    with tf.device("/CPU:0"):
        kept = tf.identity(i)
    return tf.gather(table, i), kept
compare("an argument that goes back to the host", both, on_the_gpu(ids))

def split_on_the_host(i):
    with tf.device("/CPU:0"):
        left, right = tf.split(i, 2, axis=1)
    return tf.gather(table, left) * tf.gather(table, right) + tf.gather(table, i), left + 1
compare("an argument that the host splits", split_on_the_host, on_the_gpu(ids))

# As on a GPU, where TensorFlow leaves the axis if only the op is moved to the host.
def split_at_an_axis_of_the_gpu(i):
    axis = tf.constant(1)
    with tf.device("/CPU:0"):
        left, right = tf.split(i, 2, axis=axis)
    return tf.gather(table, left) * tf.gather(table, right)
compare("an axis that the GPU has", split_at_an_axis_of_the_gpu, ids)

def with_a_float_of_the_gpu(i, x):
    with tf.device("/CPU:0"):
        picked = tf.gather(i, tf.argsort(x)[:3])
    return tf.gather(table, picked), x * 2.0
compare("ids that the host picks by an argument of the GPU", with_a_float_of_the_gpu, ids,
        on_the_gpu(lambda: floats(6)))
compare("unsigned, small and large", lambda i: [tf.cast(i, t) for t in
        (tf.uint8, tf.int8, tf.int64, tf.float16, tf.float64, tf.bool)], ints(9))
layers = tf.keras.layers
hashed, binned = layers.Hashing(40), layers.Discretization([0.2, 0.5, 0.8])
compare("layers that make ids",
        lambda i, x: tf.gather(table, hashed(i)) * tf.gather(table, binned(x)),
        ids, lambda: floats(6, 2))
compare("loop", lambda i: tf.while_loop(lambda k, y: k < 3, lambda k, y: (k + 1, y * 0.5),
                                        (0, tf.gather(table, i)))[1], ids)

# Values that decide shapes stay on the host.
compare("tiles", lambda i, n: tf.tile(tf.gather(table, i), tf.stack([n, 1, 1])), ids, scalar,
        captured=False)
compare("a range", lambda n: tf.cast(tf.range(n), tf.float32), scalar, captured=False)
compare("divided by a value", lambda i, n: tf.cast(i // (n + 1), tf.float32), ids, scalar,
        captured=False)

# An error of stock TensorFlow stays one.
inverse = tf.cuda.captured(mode="auto")(on_gpu(lambda i: 10 // i))
for _ in range(6):
    inverse(tf.constant([1, 2]))
fails(tf.errors.InvalidArgumentError, lambda: inverse(tf.constant([1, 0])).numpy())

# Asserts: a replay whose condition does not hold ends in the step's own error.
large = tf.constant(floats(200, 4))  # the lookup itself does not fail
def checked(i):
    with tf.control_dependencies([tf.debugging.assert_less(i, 50, message="an id is too large")]):
        return tf.gather(large, i)
compare("assert", checked, ids)

# As on a GPU, where a text is always on the CPU.
def with_text_of_the_host(i):
    with tf.device("/CPU:0"):
        text = tf.constant("an id is too large")
    with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(i < 50), [text, i])]):
        return tf.gather(large, i)
compare("a text of the host", with_text_of_the_host, ids)

for function in (checked, with_text_of_the_host):
    side = tf.cuda.captured(mode="auto")(on_gpu(function))
    before, right = replayed(), ids()
    for i in range(30):
        if i % 5 == 4:
            fails(tf.errors.InvalidArgumentError, lambda: side(right + np.int32(100)),
                  "an id is too large")
        else:
            check((side(right).numpy() == large.numpy()[right]).all(), "an assert that holds")
    check(replayed() > before + 20, f"replayed with asserts: {tf.cuda.capture_report()}")
"""


def test_functions() -> None:
    kit.run_captured(COMPARE, FUNCTIONS, capture="marked")


def test_models_with_variables_sessions_and_padding() -> None:
    kit.run_captured(
        COMPARE,
        """
with tf.device(GPU):
    embeddings = [tf.Variable(floats(20, 4)) for _ in range(3)]
    dense = tf.Variable(floats(12, 1))

@on_gpu
def model(ids):
    columns = [tf.gather(e, ids[:, i]) for i, e in enumerate(embeddings)]
    return tf.matmul(tf.concat(columns, 1), dense)

def expected(ids):
    columns = [e.numpy()[ids[:, i]] for i, e in enumerate(embeddings)]
    return np.concatenate(columns, 1) @ dense.numpy()

before = replayed()
for i in range(40):
    ids = rng.integers(0, 20, (1 + i % 8, 3)).astype(np.int32)
    check(np.allclose(model(ids).numpy(), expected(ids), atol=1e-5), "a padded batch")
    if i % 10 == 0:
        embeddings[0].assign(floats(20, 4))
check(replayed() > before + 15, f"replayed: {tf.cuda.capture_report()}")

with tf.Graph().as_default(), tf.device(GPU):
    fed = tf1.placeholder(tf.int32, [None, 3])
    table = tf.constant(floats(20, 4))
    y = tf.reduce_sum(tf.gather(table, (fed + 1) % 20), 1)
    with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
        before, rows = replayed(), session.run(table)
        for i in range(20):
            ids = rng.integers(0, 20, (8, 3)).astype(np.int32)
            found = session.run(y, {fed: ids})
            check(np.allclose(found, rows[(ids + 1) % 20].sum(1), atol=1e-5), "a session")
        check(replayed() > before, f"a session: {tf.cuda.capture_report()}")
""",
        TF_MULTI_STREAM_CAPTURE_BATCHES="4,8",
        TF_MULTI_STREAM_CAPTURE_VERIFY="3",
    )


def test_trainings_with_embeddings() -> None:
    kit.run_captured(
        """
first, last = floats(20, 4), floats(4, 1)

def training(optimizer):
    def make():
        variables = [tf.Variable(first), tf.Variable(last)]
        trained = optimizer()
        trained.build(variables)
        @on_gpu
        def step(ids):
            with tf.GradientTape() as tape:
                found = tf.gather(variables[0], ids[:, 0] + ids[:, 1])  # some twice
                loss = tf.reduce_sum(tf.tanh(found @ variables[1]))
            trained.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return loss
        return step, [*variables, *trained.variables]
    return make

batches = [(rng.integers(0, 10, (6, 2)).astype(np.int32),) for _ in range(5)]
for name in ("SGD", "Adam", "Adagrad"):
    optimizer = getattr(tf.keras.optimizers, name)
    # Adagrad's branch depends on a value. On a GPU, deterministic scattered updates wait for it.
    captured = None if ON_GPU else name != "Adagrad"
    alike(name, training(lambda: optimizer(0.1)), *batches, captured=captured)
""".replace("ON_GPU", str(kit.ON_GPU)),
        capture="marked",
    )


def test_tables_on_the_host() -> None:
    kit.run_captured(
        COMPARE,
        """
words = [f"word {i}" for i in range(20)]
ids = tf.lookup.KeyValueTensorInitializer(words, tf.range(20, dtype=tf.int64))
found = tf.lookup.StaticHashTable(ids, default_value=20)
lookup = tf.keras.layers.StringLookup(vocabulary=words)
grows = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -1, -2)
rows = tf.constant(floats(32, 4))

def model(text):
    with tf.device("/CPU:0"):
        a, b = found.lookup(text), lookup(text)
        c = tf.strings.to_hash_bucket_fast(text, 7)
        d = tf.cast(tf.strings.length(tf.strings.split(text).flat_values), tf.int32)[: tf.size(a)]
    e = tf.gather(rows, a) + tf.gather(rows, b) * tf.gather(rows, c)
    return e * tf.cast(d % 3, tf.float32)[:, None]

def texts(count):
    return lambda: np.array([f"word {i}" for i in rng.integers(0, 25, count)])

compare("strings", model, texts(6))
compare("more strings", model, texts(9))

def inserts(text):
    # The step itself changes the table, by a value of the GPU.
    with tf.device("/CPU:0"):
        a = found.lookup(text)
    sums = tf.cast(tf.gather(rows, a) > 0.0, tf.int64)
    with tf.device("/CPU:0"):
        with tf.control_dependencies([grows.insert(sums[:, 0], sums[:, 1])]):
            b = tf.abs(grows.lookup(a % 2))
    return tf.gather(rows, b)
compare("a table that the step changes", inserts, texts(6), captured=False)

with tf.device(GPU):  # as by default, where there is a GPU
    twenty = tf.constant(20, tf.int64)
with tf.device("/CPU:0"):
    of_gpu = tf.lookup.StaticHashTable(ids, default_value=twenty)
def with_its_default(text):
    with tf.device("/CPU:0"):
        a = of_gpu.lookup(text)
    return tf.gather(rows, a)
compare("a default value on the GPU", with_its_default, texts(6))
""",
        capture="marked",
    )


RANDOM = """
import random

def draw(seed):
    r = random.Random(seed)
    rows, columns = r.randint(1, 4), r.randint(1, 3)
    number = lambda: r.choice([1, 2, 7, -3, 1000, HIGHEST - 1, LOWEST])
    one = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "max": tf.maximum, "min": tf.minimum, "select": lambda a, b: tf.where(a < b, a, b),
        "where": lambda a, b: tf.where(tf.equal(a % 2, 0), b, a),
        "pair": lambda a, b: tf.reshape(tf.stack([a, b]), [-1, columns])[:rows],
        "concat": lambda a, b: tf.concat([a, b], 0)[rows // 2 : rows // 2 + rows],
        "through float": lambda a, b: tf.cast(tf.cast(a % 1000, tf.float32) * 0.5, tf.int32) + b,
    }
    steps = [(r.choice(sorted(one)), r.randrange(4), r.randrange(4), number(),
              r.choice(["", "", "neg", "abs", "mod", "div", "number", "sum", "cumsum", "turn",
                        "tile", "sizes", "rows", "loop", "branch"]))
             for _ in range(r.randint(2, 9))]

    def after(name, x, n):
        if name in ("mod", "div") and n == -1: n = 5
        return {"neg": lambda: -x, "abs": lambda: tf.abs(x), "mod": lambda: x % n,
                "div": lambda: x // n, "number": lambda: x * n,
                "sum": lambda: x + tf.reduce_sum(x, 1)[:, None],
                "cumsum": lambda: tf.cumsum(x, 1),
                "turn": lambda: tf.reshape(tf.transpose(x), [rows, columns]),
                "tile": lambda: tf.tile(x, [2, 1])[1 : 1 + rows],
                "sizes": lambda: x + tf.size(x) - tf.range(tf.shape(x)[1]),
                "rows": lambda: tf.gather(x, tf.abs(x[:, 0] % rows)),
                "loop": lambda: tf.while_loop(
                    lambda k, y: k < columns + 1, lambda k, y: (k + 1, y * 3 + k), (0, x))[1],
                "branch": lambda: tf.cond(tf.size(x) > 4, lambda: x - 1, lambda: x[:, ::-1]),
                "": lambda: x}[name]()

    def function(i, j, floating):
        values = [i, j, i[:, ::-1], j + 3]
        for name, a, b, n, then in steps:
            x = after(then, one[name](values[a], values[b]), n)
            values[a] = x
        looked_up = tf.gather(floating, values[steps[-1][1]] % 8)
        return looked_up, tf.cast(values[0], tf.float32), values[1], tf.cast(values[2], tf.int64)
    return function, ints(rows, columns), ints(rows, columns), lambda: floats(8, 2)
"""


def test_random_programs() -> None:
    kit.run_captured(
        COMPARE,
        RANDOM,
        f"""
for seed in range({20 * kit.PROGRAMS}):
    compare(f"program {{seed}}", *draw(seed), runs=8)
""",
        capture="marked",
    )

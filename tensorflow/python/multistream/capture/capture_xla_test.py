# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured steps with what XLA compiles: functions and clusters, on an emulated GPU for the CPU."""

from multistream.testing.kit import run_captured

CLUSTERS = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit=true --tf_xla_min_cluster_size=2"
AT_ONCE = "--tf_xla_enable_lazy_compilation=false"

HELPERS = """
w = floats(8, 4)
spec = [tf.TensorSpec([None, 8], tf.float32)]

def body(x, scale=2.0):
    return tf.nn.softmax(tf.tanh(tf.matmul(x, w)) * scale + 1.0)

def expect_rows(name, function, captured=True):
    for rows in (3, 5):
        expect(name, function, floats(rows, 8), captured=captured)

def called(function, compiled=True):
    inner = tf.function(function, jit_compile=True) if compiled else function
    @tf.function(input_signature=spec)
    def outer(x):
        with tf.device(GPU):
            return inner(tf.identity(x))
    return outer

def report():
    return str(tf.cuda.capture_report())
"""


def run(code: str, clusters: str = "", verify: str = "1", **more: str) -> None:
    """Runs code with two groups whose steps are captured, each replay verified."""
    # TF_XLA_FLAGS are read when XLA is first used.
    first = f"os.environ['TF_XLA_FLAGS'] = {clusters!r}\n"
    more |= {"TF_MULTI_STREAM_CAPTURE_VERIFY": verify}
    run_captured(first, HELPERS, code, **more)


def test_functions_that_a_function_calls() -> None:
    """Eager code calls an XLA function without an executor; `serving_callable` with one."""
    run("""
def with_noise(x):
    return x + 0.0 * tf.random.normal([8], name="noise")

expect_rows("called", called(body))
expect_rows("random", called(with_noise), captured=False)
with tf.device(GPU):
    alone = tf.function(body, jit_compile=True, input_signature=spec)
    expect_rows("by itself", alone, captured=False)
    serve = tf.cuda.serving_callable(alone.get_concrete_function())
    expect_rows("served", serve)
    x = floats(3, 8)
    check(bits(serve(x)) == bits(alone(x)), "served and called differ")
check("RandomStandardNormal 'noise" in report(), report())
""")


def test_clusters_of_sessions_and_functions() -> None:
    run(
        """
expect_rows("function", called(body, compiled=False))
with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 8])
    with tf.device(GPU):
        y = body(x)
    with tf1.Session() as session:
        expect_rows("session", lambda value: session.run(y, {x: value}))
check("xla_run" in report(), report())  # clusters there were
check(total("replays_verified") == replayed(), "not all are verified")
""",
        f"{CLUSTERS} {AT_ONCE}",
    )


def test_clusters_in_pieces() -> None:
    run(
        """
inner = tf.function(body, jit_compile=True)

@tf.function(input_signature=spec)
def outer(x):
    with tf.device(GPU):
        y = inner(tf.identity(x))
        y = tf.gather(y, tf.where(y[:, 0] > 0.2)[:, 0])
        return tf.tanh(tf.sin(inner(tf.concat([y, y], 1))) * 3.0)

before = total("pieces_replayed")
expect_rows("compiled functions around an op", outer, captured=False)
check(total("pieces_replayed") > before + 10, report())
check(tf.cuda.capture_report(outer, floats(3, 8)).share > 0.4, report())
""",
        TF_MULTI_STREAM_CAPTURE_PIECES="1",
    )


def test_variables_that_change_between_the_calls() -> None:
    """XLA's kernels read variables in place."""
    run(
        """
with tf.device(GPU):
    v = tf.Variable(tf.identity(w) + 0.0)  # in memory of the GPU's

outer = called(lambda x: tf.tanh(tf.matmul(x, v)) + 1.0)
x = floats(3, 8)
for turn in range(12):
    for _ in range(4):
        want = np.tanh(x @ v.numpy()) + 1.0
        check(np.allclose(outer(x).numpy(), want, rtol=1e-3, atol=1e-3), f"turn {turn}")
    with tf.device(GPU):
        if turn % 3:
            v.assign_add(tf.ones([8, 4]) * 0.25)
        else:
            v.assign(tf.identity(w) * float(turn))
check(replayed() > 8, report())
""",
        verify="0",
    )


def test_a_value_that_xla_compiles_in_is_in_the_way() -> None:
    """XLA reads an axis or a shape on the host, which waits for the GPU."""
    run("""
with tf.device(GPU):
    axis = tf.Variable(tf.zeros([1], tf.int64))
    shape = tf.Variable(np.array([-1, 4]))
    v = tf.Variable(tf.identity(w) + 0.0)

cases = {
    "axis": lambda x: tf.reduce_sum(x, axis=axis) * 2.0,
    "called": lambda x: tf.function(lambda x: tf.reduce_sum(x, axis=axis) * 2.0)(x + 1.0),
    "arithmetic": lambda x: tf.reduce_sum(x, axis=1 - axis),
    "shape": lambda x: tf.reshape(x, shape),
}
for name, case in cases.items():
    outer = called(case)
    for value in (0, 1):
        with tf.device(GPU):
            axis.assign([value])
            shape.assign([-1, 4 >> value])
        expect_rows(name, outer, captured=False)
        x = floats(3, 8)
        check(np.allclose(outer(x).numpy(), case(x).numpy(), 1e-4, 1e-4), name)
check("readvariableop_resource', as of an axis or a size" in report(), report())
expect_rows("no constant", called(lambda x: tf.matmul(x, v) + tf.cast(axis[0], tf.float32)))
expect_rows("a shape", called(lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]) @ w[:4]))
""")


def test_the_flag_that_is_in_the_way_is_named() -> None:
    run(
        f"""
function = called(body, compiled=False)
for _ in range(8):
    function(floats(3, 8))
check(replayed() == 0 and {AT_ONCE!r} in report(), report())
""",
        CLUSTERS,
    )


def test_variables_that_xla_changes() -> None:
    """tf-keras has XLA compile the update of each variable; here also dense and of rows."""
    run(
        """
values = [floats(20, 8), floats(8, 8), floats(8)]

def make(nested):
    table, w, b = variables = [tf.Variable(value) for value in values]
    slots = [[tf.Variable(tf.zeros_like(v)) for _ in range(2)] for v in variables]
    rate, count = tf.Variable(0.05), tf.Variable(0, dtype=tf.int64)

    def moments(gradient, m, v):
        m.assign_add((gradient - m) * 0.1)
        v.assign(v * 0.999 + tf.square(gradient) * 0.001)

    def update(i, gradient):
        m, v = slots[i]
        power = tf.pow(0.9, tf.cast(count + 1, tf.float32))
        (tf.function(moments) if nested else moments)(gradient, m, v)
        variables[i].assign_sub(rate * m / (1.0 - power) / (tf.sqrt(v) + 1e-4))

    def update_rows(gradient, ids):
        table.scatter_sub(tf.IndexedSlices(gradient * rate, ids))

    compiled = tf.function(update, jit_compile=True)
    compiled_rows = tf.function(update_rows, jit_compile=True)
    @on_gpu
    def step(ids, target):
        with tf.GradientTape() as tape:
            rows = tf.gather(table, ids)
            loss = tf.reduce_mean(tf.math.squared_difference(tf.tanh(rows @ w + b), target))
        of_rows, *gradients = tape.gradient(loss, [rows, w, b])
        for i, gradient in enumerate(gradients, 1):
            compiled(i, gradient)
        compiled_rows(of_rows, ids)
        count.assign_add(1)
        return loss, compiled_sum(w)
    compiled_sum = tf.function(tf.reduce_sum, jit_compile=True)
    return step, [*variables, *sum(slots, []), rate, count]

batches = [(rng.permutation(20)[:5], floats(5, 8)) for _ in range(3)]
for nested in (False, True):
    alike(f"nested: {nested}", lambda: make(nested), *batches)

def keep_old(i, variables):  # another reader keeps the memory of a value
    kept[:] = [tf.identity(variables[1]), variables[3].read_value()] if i % 4 == 0 else []
    if i % 9 == 0:
        variables[-2].assign(0.01 * (i + 1))

kept = []
alike("others use the variables", lambda: make(False), *batches, runs=40, between=keep_old)
""",
        verify="0",
    )


def test_clusters_that_change_variables() -> None:
    run(
        """
values = [floats(8, 16), floats(16, 3)]

def make():
    w, v = variables = [tf.Variable(value) for value in values]
    slots = [tf.Variable(tf.zeros_like(x)) for x in variables]
    @on_gpu
    def step(x, target):
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ w) @ v
            loss = tf.reduce_mean(tf.math.squared_difference(y, target))
        for x, m, g in zip(variables, slots, tape.gradient(loss, variables)):
            m.assign(0.9 * m + tf.tanh(g) * 0.1)
            x.assign_sub(0.05 * m / (1.0 + tf.abs(m)))
        return loss
    return step, variables + slots

alike("clusters", make, *[(floats(12, 8), floats(12, 3)) for _ in range(3)])
check("xla_run" in report(), report())
""",
        f"{CLUSTERS} {AT_ONCE}",
        verify="0",
    )


def test_trainings_that_xla_compiles_as_a_whole() -> None:
    """As Keras 3 has them by default: a step is one op, in a piece if a step has others."""
    run(
        """
layers = tf.keras.layers

class Compiled(tf.keras.Sequential):
    def train_step(self, data):
        tf.debugging.assert_less(data[0], 50)
        step = tf.function(super().train_step, jit_compile=True)
        return step(data), tf.where(data[0] > 3)

def model():
    return Compiled([
        tf.keras.Input([6], dtype="int32"), layers.Embedding(50, 8), layers.Flatten(),
        layers.Dense(16, "relu"), layers.Dropout(0.3), layers.Dense(2)])

data = [(rng.integers(0, 50, (n, 6)).astype(np.int32), floats(n, 2)) for n in (8, 8, 5)]
for optimizer in "Adam", "SGD":
    made = trained(model, getattr(tf.keras.optimizers, optimizer), jit_compile=True)
    report = alike(optimizer, made, *data, captured=None, runs=30)
    check(any(count.is_piece and count.end == "replayed" for count in report.counts),
          f"{optimizer}: {report}")
""",
        verify="0",
        # Otherwise a GPU sums the gradients of rows in any order.
        TF_DETERMINISTIC_OPS="1",
        XLA_FLAGS="--xla_gpu_deterministic_ops=true",
    )


def test_a_function_in_the_way_is_so_in_each_of_its_calls() -> None:
    """Pieces would repeat the random numbers of a second call."""
    run(
        """
noise = tf.function(lambda x: x + tf.random.normal([8], name="noise"), jit_compile=True)

@tf.function(input_signature=spec)
def outer(x):
    with tf.device(GPU):
        y = noise(tf.tanh(tf.sin(x) * 2.0) + 1.0)
        return noise(tf.tanh(tf.sin(y) * 2.0) + 1.0) - tf.tanh(tf.sin(y) * 2.0) - 1.0

x = floats(1, 8)
found = [bits(outer(x))[0][1] for _ in range(30)]
check(len(set(found)) == 30, "the same noise twice")
""",
        TF_MULTI_STREAM_CAPTURE_PIECES="1",
        verify="0",
    )

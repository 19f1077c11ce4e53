# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured training: the bits of uncaptured training, no lost update, no write to other tensors."""

import pytest

from multistream.testing import kit

DETERMINISTIC = "tf.config.experimental.enable_op_determinism()\n"


def run(*code: str, groups: int = 2) -> None:
    kit.run_captured(*code, groups=groups, capture="marked")


def test_sessions() -> None:
    """Compares the training of sessions with that in a process without captured steps."""
    code = """
captured = os.environ["TF_MULTI_STREAM_CAPTURE"] == "auto"
for optimizer in (tf1.train.GradientDescentOptimizer(0.05), tf1.train.MomentumOptimizer(0.05, 0.9),
                  tf1.train.AdamOptimizer(0.01), tf1.train.AdagradOptimizer(0.05),
                  tf1.train.RMSPropOptimizer(0.01), tf1.train.AdadeltaOptimizer(0.5)):
    before = replayed()
    with tf.Graph().as_default(), tf.device(GPU):
        x, target = tf1.placeholder(tf.float32, [12, 8]), tf1.placeholder(tf.float32, [12, 3])
        w, b, v = [tf1.Variable(floats(*shape), use_resource=True)
                   for shape in ((8, 16), (16,), (16, 3))]
        loss = tf.reduce_mean(tf.math.squared_difference(tf.tanh(x @ w + b) @ v, target))
        train = optimizer.minimize(loss)
        session = tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True))
        session.run(tf1.global_variables_initializer())
        for i in range(40):
            batch = {x: floats(12, 8), target: floats(12, 3)}
            if i % 3 == 2:
                session.run(train, batch)
            else:
                print(i, float(session.run([loss, train], batch)[0]).hex())
        print([value.tobytes().hex() for value in session.run(tf1.global_variables())])
    check((replayed() - before > 20) == captured, f"{optimizer}: {replayed() - before} replays")
"""
    off, auto = [kit.run_captured(DETERMINISTIC, code, capture=x) for x in ("off", "auto")]
    assert auto == off


def test_scatters_with_op_determinism() -> None:
    """On a GPU they run on the host, which would end the capture beside kernels of other ops."""
    run(
        DETERMINISTIC,
        """
values = [floats(50, 8) for _ in range(3)]

def make():
    tables = [tf.Variable(value) for value in values]
    @on_gpu
    def step(x):
        sums = []
        for i, table in enumerate(tables):
            sums += [tf.reduce_sum(x * (7.0 * i + j)) for j in range(6)]
            table.scatter_sub(tf.IndexedSlices(x, tf.constant([3, 1, 3], tf.int64)))
            sums += [tf.reduce_sum(tf.tanh(x + 7.0 * i + j)) for j in range(6)]
        return sums
    return step, tables

report = alike("scatters", make, *[(floats(3, 8),) for _ in range(3)], captured=False)
check("runs on the host with op determinism" in str(report), str(report))
""",
    )


def test_convolution_and_normalization() -> None:
    run(
        DETERMINISTIC,
        """
kernel_values = floats(3, 3, 4, 4)

def make():
    kernel, scale = tf.Variable(kernel_values), tf.Variable(tf.ones([4]))
    offset, mean, variance = (tf.Variable(tf.zeros([4])) for _ in range(3))
    @on_gpu
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
            y, m, v = tf1.nn.fused_batch_norm(y, scale, offset)
            y = tf.nn.max_pool2d(tf.nn.relu(y), 2, 2, "SAME")
            labels = tf.zeros([2], tf.int64)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, tf.reduce_mean(y, [1, 2])))
        trained = [kernel, scale, offset]
        for variable, gradient in zip(trained, tape.gradient(loss, trained)):
            variable.assign_sub(0.1 * gradient)
        mean.assign(0.9 * mean + 0.1 * m)
        variance.assign(0.9 * variance + 0.1 * v)
        return loss
    return step, [kernel, scale, offset, mean, variance]

alike("convolution and normalization", make, *[(floats(2, 8, 8, 4),) for _ in range(3)])
""",
    )


def test_variables_given_numbers_of_python() -> None:
    """TensorFlow caches the tensor of a Python number, and the variable shares its memory."""
    run("""
def make(where, results):
    with tf.device(where):
        rate, count = tf.Variable(0.1), tf.Variable(0, dtype=tf.int64)
    w, m = tf.Variable(tf.ones([6, 3])), tf.Variable(tf.zeros([6, 3]))

    @tf.function(input_signature=[tf.TensorSpec([4, 6])])
    def step(x):
        with tf.device(where):
            count.assign_add(1)
            decayed = rate * tf.pow(0.9, tf.cast(count, tf.float32))
        with tf.device(GPU):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.tanh(x @ w) ** 2)
            m.assign(0.9 * m + tape.gradient(loss, w))
            w.assign_sub(decayed * m)
            return loss if results else None

    return step, [rate, count, w, m]

def assign_rate(i, variables):
    if i % 5 == 4:
        with tf.device(GPU):
            variables[0].assign(0.1 / (i + 1))

inputs = [(floats(4, 6),) for _ in range(40)]
for where in (GPU, "/CPU:0"):
    for results in (True, False):
        alike(where, lambda: make(where, results), *inputs, runs=40, between=assign_rate)
""")


def test_predictions_during_training() -> None:
    """Other threads predict with the variables of exactly one step; predictions are captured."""
    run(
        """
with tf.device(GPU):
    w, one = tf.Variable(tf.zeros([256, 64])), tf.constant(1.0, shape=[256, 64])

@tf.cuda.captured
@tf.function(input_signature=[])
def step():
    with tf.device(GPU):
        w.assign_add(one)
        return tf.reduce_sum(w[0])

@tf.cuda.captured
@tf.function(input_signature=[tf.TensorSpec([1, 256])])
def predict(x):
    with tf.device(GPU):
        return tf.matmul(x, w)

ended = threading.Event()

def train():
    for i in range(20 * STEPS):
        check(float(step()) == 64.0 * (i + 1), "training")
    ended.set()

def client():
    last = 0.0
    while not ended.is_set():
        y = predict(np.ones([1, 256], np.float32)).numpy()
        check(np.all(y == y[0, 0]), "whole")
        check(y[0, 0] >= last, "in order")
        last = y[0, 0]

run_threads([train] + [client] * 4)
with tf.device(GPU):
    check(np.all(w.numpy() == 20 * STEPS), "the end")
check(replayed() > 10 * STEPS, f"{replayed()} replayed")
""",
        groups=4,
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_updates_of_many_batch_sizes_from_three_threads_all_count(groups: int) -> None:
    """No other step uses a recording's variables during a recording or the start of a launch."""
    run(
        """
with tf.device(GPU):
    steps = tf.Variable(tf.zeros([]))
    weights = [tf.Variable(tf.ones([16, 16]) / 16) for _ in range(4)]

@tf.cuda.captured
@on_gpu
def train(x):
    with tf.GradientTape() as tape:
        h = x
        for w in weights:
            h = tf.tanh(h @ w)
        loss = tf.reduce_mean(h * h)
    for w, gradient in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.01 * gradient)
    steps.assign_add(1.0)
    return loss

def client(seed):
    rng = np.random.default_rng(seed)
    with tf.device(GPU):
        for _ in range(100):
            rows = int(rng.choice([8, 16, 24, 32, 48, 64]))
            loss = train(tf.constant(rng.normal(size=(rows, 16)).astype(np.float32)))
            check(np.isfinite(loss), f"the loss is {loss}")

run_threads([lambda i=i: client(i) for i in range(3)])
check(steps.numpy() == 300, f"{steps.numpy()} of 300 updates")
check(replayed() > 100, f"{replayed()} steps were replayed")
""",
        groups=groups,
    )


def test_rows_of_a_variable_that_are_read_later() -> None:
    """From then on, TensorFlow copies the variable for what changes it or reads the whole of it."""
    run("""
first = [floats(8, 4), floats(8, 4)]

def make():
    a, b = [tf.Variable(value) for value in first]

    @on_gpu
    def step(x):
        a.assign_add(b * x)
        return x

    return step, [a, b]

for number, what in enumerate(("changed", "read")):
    def read_rows(i, variables):
        if i == 18:
            with tf.device(GPU):
                tf.gather(variables[number], [0, 3])

    alike(what, make, [floats(8, 4)], runs=36, between=read_rows)
""")


def test_a_step_that_is_recorded_loses_no_update_of_another_function() -> None:
    # The recording of `slow` is too large to keep, so each of its steps makes a new one.
    kit.run_captured(
        """
with tf.device(GPU):
    table = tf.constant(np.full((300, 300), 1 / 300, np.float32))
    zeros = tf.zeros([512])
big = tf.ones([300, 300])

for round in range(4):
    with tf.device(GPU):
        count = tf.Variable(tf.zeros([512]))

    @tf.function
    def fast():
        with tf.device(GPU):
            count.assign_add(tf.ones([512]))

    @tf.function
    def slow(x):
        with tf.device(GPU):
            for _ in range(12):
                x = x @ table
            count.assign_add(tf.ones([512]) + 0.0 * tf.reduce_sum(x))

    look = on_gpu(lambda y: count + y)
    made = {fast: 4, slow: 2}
    for _ in range(4):
        fast(), look(zeros)
    for _ in range(2):
        slow(big)
    done = threading.Event()

    def many_fast():
        while not done.is_set():
            fast()
            made[fast] += 1

    def some_slow():
        for _ in range(6):
            slow(big)
            made[slow] += 1
        done.set()

    run_threads([many_fast, some_slow])
    expected = sum(made.values())
    check((count.numpy() == expected).all(), f"{count.numpy()[0]} of {expected} updates")

    # The variable's old memory belongs to other tensors by now, if it does not own that.
    with tf.device(GPU):
        count.assign(tf.fill([512], 100.0))
        others = [tf.fill([512], -1.0 - i) for i in range(40)]
    check((look(zeros).numpy() == 100.0).all(), "what is read after an assignment")
    for i, other in enumerate(others):
        check((other.numpy() == -1.0 - i).all(), f"tensor {i} was written over")
""",
        groups=1,
        TF_MULTI_STREAM_CAPTURE_MB="1",
    )


@pytest.mark.skipif(kit.ON_GPU, reason="no lookup fails on a GPU")
@pytest.mark.parametrize("batches", ["", "4,8"])
def test_an_op_that_fails_gives_the_error_of_an_uncaptured_step(batches: str) -> None:
    """Lookups of missing rows fail in training and inference; inference may be padded."""
    kit.run_captured(
        """
with tf.device(GPU):
    table = tf.Variable(tf.ones([5, 4]))

def inference():
    return tf.function(on_gpu(lambda ids: tf.gather(table, ids) + 1.0),
                       input_signature=[tf.TensorSpec([None], tf.int64)])

def training():
    with tf.device(GPU):
        sums = tf.Variable(tf.zeros([4]))
    def step(ids):
        rows = tf.gather(table, ids)
        sums.assign_add(tf.reduce_sum(rows, axis=0))
        return tf.reduce_sum(rows), sums
    return on_gpu(step)

rows = np.array([0, 1, 2])
for make in inference, training:
    functions = [tf.cuda.captured(mode=mode)(make()) for mode in ("auto", "off")]
    before = replayed()
    for i in range(10):
        captured, expected = [bits(function(rows)) for function in functions]
        check(captured == expected, f"{make.__name__} {i}")
        if i > 5:
            check(replayed() > before, f"{make.__name__}: {tf.cuda.capture_report()}")
            for function in functions:
                fails(tf.errors.InvalidArgumentError, lambda: function(np.array([0, 1, 7])),
                      "indices[2] = 7 is not in [0, 5)")
""",
        capture="marked",
        TF_MULTI_STREAM_CAPTURE_BATCHES=batches,
    )


def test_a_variable_that_a_step_takes_twice() -> None:
    """A recording knows two variables; where both are one, the step runs as always."""
    run("""
with tf.device(GPU):
    v, w = [tf.Variable(tf.ones([8])) for _ in range(2)]

def function(a, b, x):
    with tf.device(GPU):
        change = tf.raw_ops.AssignAddVariableOp(resource=a, value=x * 0.5)
        with tf.control_dependencies([change]):
            return tf.raw_ops.ReadVariableOp(resource=b, dtype=tf.float32) * 2.0 + x

step = tf.cuda.captured(mode="auto")(tf.function(function, autograph=False))
for name, other, captured in (("two", w, True), ("one", v, False)):
    before, right = replayed(), [np.ones(8, np.float32), other.numpy()]
    v.assign(right[0])
    for _ in range(14):
        x = floats(8)
        right[0] = right[0] + x * np.float32(0.5)
        found = step(v.handle, other.handle, x)
        expected = right[0] if other is v else right[1]
        check(np.allclose(found, expected * 2.0 + x, atol=1e-4), f"{name}: result")
        check(np.allclose(v, right[0], atol=1e-4), f"{name}: variable")
    check((replayed() > before) == captured, f"{name}: {tf.cuda.capture_report()}")
check("twice" in str(tf.cuda.capture_report()), "why")
""")

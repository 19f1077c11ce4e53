# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured training steps: losses and variables have the same bits as without capture.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit

DETERMINISTIC = "tf.config.experimental.enable_op_determinism()\n"
HELPERS = (
    kit.CAPTURE_HELPERS
    + """
rng = np.random.default_rng(1)

def floats(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)

def alike(name, make, inputs, runs=40, captured=True):
    # `make` gives a step and the variables that it changes; once captured, and once not.
    sides = []
    for mode in ("auto", "off"):
        with tf.device(GPU):
            step, variables = make()
        sides.append((tf.cuda.captured(mode=mode)(step), variables))
    for i in range(runs):
        x = inputs[i % len(inputs)]
        results = [bits(step(*x)) for step, _ in sides]
        check(results[0] == results[1], f"{name}: results")
        if i % 10 == 5 or i > runs - 3:
            values = [bits([v.numpy() for v in variables]) for _, variables in sides]
            check(values[0] == values[1], f"{name}: variables")
    report = tf.cuda.capture_report(sides[0][0], *inputs[0])
    check(report.replayed >= 3 if captured else report.replayed == 0, f"{name}: {report}")
    return report
"""
)

LAYERS = """
first = {"w": floats(8, 16), "b": floats(16), "v": floats(16, 3)}
batches = [(floats(12, 8), floats(12, 3)) for _ in range(3)]

def make_layers(update):
    variables = [tf.Variable(value) for value in first.values()]
    w, b, v = variables
    change, more = update(variables)

    @on_gpu
    def step(x, target):
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ w + b) @ v
            loss = tf.reduce_mean(tf.math.squared_difference(y, target))
        change(tape.gradient(loss, variables))
        return loss

    return step, [*variables, *more]

def by_hand(variables):
    def change(gradients):
        for variable, gradient in zip(variables, gradients):
            variable.assign_sub(0.05 * gradient)
    return change, []
"""


def run(code: str, groups: int = 2) -> None:
    """Runs code after HELPERS, with two groups; functions that it marks are captured."""
    kit.run_checks(DETERMINISTIC + HELPERS + code, groups=groups, TF_MULTI_STREAM_CAPTURE="marked")


def test_gradient_descent_by_hand() -> None:
    run(
        LAYERS
        + """
alike("assign_sub", lambda: make_layers(by_hand), batches)

def update(variables):
    def change(gradients):
        for variable, gradient in zip(variables, gradients):
            variable.assign(variable - 0.05 * gradient)
    return change, []
alike("assign", lambda: make_layers(update), batches)

def update(variables):
    averages = [tf.Variable(v) for v in first.values()]
    def change(gradients):
        for variable, gradient, average in zip(variables, gradients, averages):
            old = variable.read_value()
            with tf.control_dependencies([old]):
                variable.assign_sub(0.05 * gradient)
            average.assign(old)  # what the variable was
    return change, averages
alike("a value from before", lambda: make_layers(update), batches)
"""
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        "SGD(0.05)",
        "SGD(0.05, momentum=0.9, nesterov=True)",
        "Adam(0.01)",
        "AdamW(0.01)",
        "RMSprop(0.01, momentum=0.5)",
        "Adagrad(0.05)",
    ],
)
def test_optimizers_of_keras(optimizer: str) -> None:
    run(
        LAYERS
        + f"""
def update(variables):
    optimizer = tf.keras.optimizers.{optimizer}
    optimizer.build(variables)
    def change(gradients):
        optimizer.apply_gradients(zip(gradients, variables))
    return change, [v.value if hasattr(v, "value") else v for v in optimizer.variables]
alike("{optimizer}", lambda: make_layers(update), batches)
"""
    )


@pytest.mark.parametrize(
    "optimizer",
    [
        "GradientDescentOptimizer(0.05)",
        "MomentumOptimizer(0.05, 0.9)",
        "AdamOptimizer(0.01)",
        "AdagradOptimizer(0.05)",
        "RMSPropOptimizer(0.01)",
        "AdadeltaOptimizer(0.5)",
    ],
)
def test_sessions(optimizer: str) -> None:
    """Compares the training of a session with that in a process without captured steps."""
    code = f"""
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf.config.experimental.enable_op_determinism()
rng = np.random.default_rng(1)
with tf.Graph().as_default(), tf.device("/GPU:0"):
    def variable(*shape):
        return tf1.Variable(rng.normal(0, 1, shape).astype(np.float32), use_resource=True)
    x, target = tf1.placeholder(tf.float32, [12, 8]), tf1.placeholder(tf.float32, [12, 3])
    w, b, v = variable(8, 16), variable(16), variable(16, 3)
    y = tf.tanh(x @ w + b) @ v
    loss = tf.reduce_mean(tf.math.squared_difference(y, target))
    train = tf1.train.{optimizer}.minimize(loss)
    session = tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True))
    session.run(tf1.global_variables_initializer())
    for i in range(40):
        batch = {{x: rng.normal(0, 1, [12, 8]), target: rng.normal(0, 1, [12, 3])}}
        if i % 3 == 2:
            session.run(train, batch)
        else:
            print(i, float(session.run([loss, train], batch)[0]).hex())
    for value in session.run(tf1.global_variables()):
        print(np.asarray(value).tobytes().hex())
print("replayed", sum(s.steps_replayed for s in tf.cuda.stream_stats()))
"""
    printed = {}
    for capture in ("off", "auto"):
        variables = kit.environment(2, TF_MULTI_STREAM_CAPTURE=capture)
        ours = {k: v for k, v in variables.items() if k.startswith("TF_")}
        printed[capture] = kit.ok(code, **ours).splitlines()
    assert printed["auto"][:-1] == printed["off"][:-1]
    assert printed["off"][-1] == "replayed 0"
    assert int(printed["auto"][-1].removeprefix("replayed ")) > 20


def test_an_op_that_waits_beside_others() -> None:
    """On a GPU the op ends the capture; kernels of the other ops would then crash the process."""
    kit.run_checks(
        HELPERS
        + DETERMINISTIC
        + f"""
values = [floats(50, 8) for _ in range(3)]
inputs = [(floats(3, 8),) for _ in range(3)]

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

report = alike("an op that waits", make, inputs, captured=not {kit.ON_GPU})
check(("Scatter" in str(report)) == {kit.ON_GPU}, str(report))
""",
        groups=2,
        TF_MULTI_STREAM_CAPTURE="marked",
    )


def test_tables() -> None:
    """Runs without op determinism, with which scattered updates would wait for the GPU."""
    kit.run_checks(
        HELPERS
        + """
table_values = floats(50, 8)
ids = [(rng.permutation(50)[:6].astype(np.int64),) for _ in range(3)]

def make():
    table = tf.Variable(table_values)
    @on_gpu
    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
        gradient = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
        return loss
    return step, [table]
alike("rows of a table", make, ids)
""",
        groups=2,
        TF_MULTI_STREAM_CAPTURE="marked",
    )


def test_convolution_and_normalization() -> None:
    run(
        """
kernel_values = floats(3, 3, 4, 4)
images = [(floats(2, 8, 8, 4),) for _ in range(3)]

def make():
    kernel, scale = tf.Variable(kernel_values), tf.Variable(tf.ones([4]))
    offset, mean, variance = (tf.Variable(tf.zeros([4])) for _ in range(3))
    @on_gpu
    def step(x):
        with tf.GradientTape() as tape:
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
            y, m, v = tf.compat.v1.nn.fused_batch_norm(y, scale, offset)
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
alike("convolution and normalization", make, images)
"""
    )


def test_values_that_others_keep_and_assign() -> None:
    run(
        LAYERS
        + """
with tf.device(GPU):
    sides = [make_layers(by_hand) for _ in range(2)]
steps = [tf.cuda.captured(sides[0][0]), tf.cuda.captured(mode="off")(sides[1][0])]
kept = []
for i in range(58):
    losses = [bits(step(*batches[i % 3])) for step in steps]
    check(losses[0] == losses[1], "losses")
    if i % 5 == 2:
        with tf.device(GPU):
            reads = [variables[0].read_value() for _, variables in sides]
        kept.append((reads, [r.numpy().copy() for r in reads]))
    if i % 8 == 6:
        with tf.device(GPU):
            for _, variables in sides:
                variables[i // 8 % 3].assign(first[["w", "b", "v"][i // 8 % 3]])
    if i % 10 == 8:
        kept.clear()
for reads, copies in kept:
    for read, copy in zip(reads, copies):
        check(np.array_equal(read.numpy(), copy), "what was kept")
    check(bits(copies[0]) == bits(copies[1]), "the same was kept")
for a, b in zip(sides[0][1], sides[1][1]):
    check(bits(a.numpy()) == bits(b.numpy()), "variables")
check(replayed() > 10, f"{replayed()} replayed")
"""
    )


def test_variables_given_numbers_of_python() -> None:
    """TensorFlow caches the tensor of a Python number, and the variable shares its memory."""
    run(
        """
RUNS = 40

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

    return step, rate, [rate, count, w, m]

for where in (GPU, "/CPU:0"):
    for results in (True, False):
        sides = []
        for mode in ("auto", "off"):
            with tf.device(GPU):
                step, rate, variables = make(where, results)
            sides.append((tf.cuda.captured(mode=mode)(step), rate, variables))
        before = replayed()
        for i in range(RUNS):
            x = floats(4, 6)
            with tf.device(GPU):
                losses = [bits(step(x)) if results else step(x) for step, _, _ in sides]
                check(losses[0] == losses[1], f"{where}: losses")
                if i % 5 == 4:
                    for _, rate, _ in sides:
                        rate.assign(0.1 / (i + 1))
                values = [bits([v.numpy() for v in variables]) for _, _, variables in sides]
                check(values[0] == values[1], f"{where}: variables")
        check(replayed() - before > RUNS // 2, f"{where}: {replayed() - before} were replayed")
"""
    )


def test_a_step_without_results_does_not_wait() -> None:
    """Runs many such steps in a row, then reads the variable."""
    run(
        """
with tf.device(GPU):
    count = tf.Variable(tf.zeros([1000]))
    one = tf.constant(1.0, shape=[1000])

@tf.cuda.captured
@tf.function
def step():
    with tf.device(GPU):
        count.assign_add(one)

for i in range(500):
    step()
    if i % 100 == 99:
        with tf.device(GPU):
            check(np.all(count.numpy() == i + 1), "count")
check(replayed() > 400, f"{replayed()} replayed")
"""
    )


def test_predictions_during_training() -> None:
    """Other threads predict with the variables of exactly one step; predictions are captured."""
    run(
        """
with tf.device(GPU):
    w = tf.Variable(tf.zeros([256, 64]))
    one = tf.constant(1.0, shape=[256, 64])

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
    x = np.ones([1, 256], np.float32)
    last = 0.0
    while not ended.is_set():
        y = predict(x).numpy()
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


def test_what_cannot_be_captured_is_named() -> None:
    run(
        """
with tf.device(GPU):
    w = tf.Variable(tf.ones([4]))
tf.random.set_seed(1)

def dropout():
    with tf.device(GPU):
        w.assign_add(tf.nn.dropout(tf.ones([4]), 0.5))

def grow():
    with tf.device(GPU):
        w.assign_add(tf.random.normal([4], name="noise"))

for function, text in (dropout, "RandomUniform"), (grow, "RandomStandardNormal 'noise"):
    try:
        tf.cuda.captured(mode="require")(function)()
        check(False, "no error")
    except tf.errors.FailedPreconditionError as error:
        check(text in str(error), str(error))
    try:
        tf.cuda.captured(function)()
    except Exception as error:
        check(False, str(error))
"""
    )

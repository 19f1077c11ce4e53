# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops of a recorded step that are one kernel, with the bits of their own kernels."""

import json

from multistream.testing.kit import ON_GPU, run_captured

_TRAINED = """
import json, tempfile
import keras

with tf.device(GPU):
    model = keras.Sequential([keras.layers.Dense(8) for _ in range(6)])
    model.compile("adam", "mse", jit_compile=False)
    x, y = floats(16, 8), floats(16, 8)
    for _ in range(20):
        model.train_on_batch(x, y)
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        with tf.cuda.trace(trace.name):
            model.train_on_batch(x, y)
        events = json.load(open(trace.name))["traceEvents"]
kernels = sum(e["args"]["kernels"] for e in events if e.get("cat") == "replay")
check(kernels > 0, "no replay")
print("kernels", kernels)
"""


_OPS = """
import json, tempfile

random = np.random.RandomState(3)

def numbers(*shape):
    # All kinds of numbers: the bits are random.
    return random.randint(0, 1 << 32, shape, np.uint64).astype(np.uint32).view(np.float32)

def near(x):
    # Of nearly the same size, so that sums and quotients are neither huge nor zero.
    bits = x.view(np.uint32) & 0x7F800000 | numbers(*x.shape).view(np.uint32) & 0x807FFFFF
    return bits.astype(np.uint32).view(np.float32)

COUNT, SIZE = 12, int(os.environ.get("TFMS_TEST_SIZE", 1 << 12))

def table(x, *shape):
    return tf.reshape(x, (-1, *shape))

OPS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "square": lambda x, y: tf.square(x) - y,
    "root": lambda x, y: y + tf.sqrt(x),
    "negate": lambda x, y: -x,
    "squared difference": tf.math.squared_difference,
    "sum of two": lambda x, y: tf.add_n([x, y]),
    # The sum takes the memory of x - y, which nothing else needs, and begins with it. TensorFlow
    # sorts the operands by name.
    "sum of three": lambda x, y: tf.concat([tf.add_n([x, y, tf.subtract(x, y, "z")]), x, y], 0),
    "sum of four": lambda x, y: tf.concat([tf.add_n([x, y, y, x]), x, y], 0),
    "several": lambda x, y: (y - x) * (x / (y + x)),
    "bias": lambda x, y: tf.nn.bias_add(table(x, 4, 32), y[:32]),
    "rows": lambda x, y: table(x, 64) * table(y, 64)[:, :1],
    "columns": lambda x, y: table(x, 64) - table(y, 64)[:1],
    "rows and columns": lambda x, y: table(x, 64)[:, :1] * y[:64],
    "between": lambda x, y: table(x, 4, 32) + table(y, 4, 32)[:, :1],
    "in the middle": lambda x, y: table(x, 4, 32) / table(y, 4, 32)[:1, :, :1],
    "twice": lambda x, y: table(x, 2, 4, 8) - table(y, 2, 4, 8)[:, :1, :, :1],
    "tile": lambda x, y: table(y, 8) - tf.tile(table(x, 8)[:, :1], [1, 8]),
    "tile between": lambda x, y: -tf.tile(table(x, 8, 4)[:, :1], [1, 8, 1]),
    "compare": lambda x, y: tf.where(x >= y, x - y, x * y),
    "select a number": lambda x, y: tf.where(x >= 0.5, x * 2.0, 0.0),
    "select rows": lambda x, y: tf.where(table(x, 8)[:, :1] >= 1.0, table(y, 8), -x[:8]),
}

def function_of(op):
    def f(xs, ys):
        with tf.device(GPU):
            pairs = zip(tf.unstack(xs, COUNT), tf.unstack(ys, COUNT))
            return tf.stack([tf.reshape(op(x, y), [-1]) for x, y in pairs])
    return both_ways(tf.function(f, autograph=False))

def replay(captured, name):
    # Calls until each call is a replay; gives the kernels of one.
    for _ in range(12):
        captured(tf.ones([COUNT, SIZE]), tf.ones([COUNT, SIZE]))
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        with tf.cuda.trace(trace.name):
            captured(tf.ones([COUNT, SIZE]), tf.ones([COUNT, SIZE]))
        events = json.load(open(trace.name))["traceEvents"]
    kernels = [e["args"]["kernels"] for e in events if e.get("cat") == "replay"]
    check(len(kernels) == 1, f"{name}: {len(kernels)} replays")
    return kernels[0]
"""


def test_each_op_has_its_bits() -> None:
    code = """
for name, op in OPS.items():
    captured, alone = function_of(op)
    replay(captured, name)
    before = replayed()
    for run in range(6):
        x = numbers(COUNT, SIZE)
        y = near(x) if run % 2 else numbers(COUNT, SIZE)
        want = alone(tf.constant(x), tf.constant(y)).numpy()
        got = captured(tf.constant(x), tf.constant(y)).numpy()
        differ = got.view(np.uint32) != want.view(np.uint32)
        if not ON_GPU:  # a CPU has many bits for "no number"
            differ &= ~(np.isnan(got) & np.isnan(want))
        other = np.flatnonzero(differ)
        some = [[hex(a.view(np.uint32).flat[i]) for a in (got, want)] for i in other[:4]]
        check(not some, f"{name}, run {run}: {len(other)} differ: {some}")
    check(replayed() == before + 6, f"{name}: {replayed() - before} replays")
"""
    code = code.replace("ON_GPU", str(ON_GPU))
    run_captured(_OPS, code, capture="require", TF_MULTI_STREAM_CAPTURE_FUSE="true")


def test_each_op_is_fused() -> None:
    code = """
SIZE = 1 << 10
print("kernels", [replay(function_of(op)[0], name) for name, op in OPS.items()])
"""
    fused, not_fused = (
        json.loads(
            run_captured(_OPS, code, capture="require", TF_MULTI_STREAM_CAPTURE_FUSE=fuse)
            .split("kernels ")[1]
            .splitlines()[0]
        )
        for fuse in ("true", "false")
    )
    assert all(0 < a <= b - 11 for a, b in zip(fused, not_fused, strict=True)), (fused, not_fused)


def test_a_value_between_ops_takes_the_memory_of_an_operand() -> None:
    """The product of an assign_sub is given the memory that its gradient had."""
    code = """
# No block of memory suits two of these sizes.
SIZES = [16 * 3**i for i in range(10)]

def made():
    with tf.device(GPU):
        return [[tf.Variable(np.linspace(-1, i + 1, size, dtype=np.float32)) for size in SIZES]
                for i in range(3)]

def function_of(variables):
    @tf.function(autograph=False)
    def step(x):
        with tf.device(GPU):
            for inputs, momentum, weights in zip(*variables):
                gradient = tf.reverse(inputs, [0])
                momentum.assign_add(gradient * 0.1)
                weights.assign_sub(momentum * 0.5)
            return x + 1.0
    return step

variables = [made(), made()]
steps = [tf.cuda.captured(mode=mode)(function_of(one))
         for mode, one in zip(("require", "off"), variables)]
before = replayed()
for run in range(14):
    x = floats()
    for step in steps:
        step(x)
    check(bits(variables[0]) == bits(variables[1]), f"run {run}")
check(replayed() > before + 3, "replays")
"""
    # With branches, results of up to 4 MiB have memory of their own.
    run_captured(code, TF_MULTI_STREAM_CAPTURE_BRANCHES="1", TF_MULTI_STREAM_CAPTURE_FUSE="true")


def test_a_compiled_update_reads_what_a_kernel_for_many_ops_computes() -> None:
    """Such an update, which optimizers of tf-keras make, is an asynchronous op."""
    code = """
def made():
    with tf.device(GPU):
        return [tf.Variable(tf.zeros([64])) for _ in range(12)]

@tf.function(autograph=False, jit_compile=True)
def update(variable, gradient):
    variable.assign_sub(gradient * 0.1)

def function_of(variables):
    @tf.function(autograph=False)
    def step(x):
        with tf.device(GPU):
            for variable in variables:
                update(variable, variable * 2.0 - x)
            return variables[0] + 1.0  # what the updates have read is freed before
    return step

variables = [made(), made()]
steps = [tf.cuda.captured(mode=mode)(function_of(one))
         for mode, one in zip(("auto", "off"), variables)]
before = replayed()
for run in range(14):
    x = tf.constant(floats(64))
    for step in steps:
        step(x)
    check(bits(variables[0]) == bits(variables[1]), f"run {run}")
check(replayed() > before + 3, f"replays: {tf.cuda.capture_report()}")
"""
    run_captured(code)


def test_an_optimizers_ops_are_few_kernels() -> None:
    """captured_keras_test.py compares the weights."""
    launched = [
        int(
            run_captured(_TRAINED, TF_MULTI_STREAM_CAPTURE_FUSE=fuse)
            .split("kernels ")[1]
            .split()[0]
        )
        for fuse in ("true", "false")
    ]
    # Adam has 12 for each of 12 variables.
    assert 0 < launched[0] <= launched[1] - 100, launched

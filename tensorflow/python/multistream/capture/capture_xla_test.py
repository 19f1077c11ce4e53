# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Captured steps with functions and clusters that XLA compiles.

On an emulated GPU, XLA compiles for the CPU. On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA
graphs.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit

CLUSTERS = {
    "TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit=true"
    " --tf_xla_enable_lazy_compilation=false --tf_xla_min_cluster_size=2",
    "XLA_FLAGS": "--xla_gpu_enable_command_buffer=",
}
FUNCTIONS = {"XLA_FLAGS": "--xla_gpu_enable_command_buffer="}

HELPERS = """
rng = np.random.default_rng(2)
w = rng.normal(0, 1, (8, 4)).astype(np.float32)

def body(x, scale=2.0):
    return tf.nn.softmax(tf.tanh(tf.matmul(x, w)) * scale + 1.0)

def total(counter):
    return sum(getattr(group, counter) for group in tf.cuda.stream_stats())

def expect(name, function, captured=True, runs=10):
    # The first calls of a shape run as always; later ones give the same bits.
    before = total("steps_replayed")
    for rows in (3, 5):
        x = rng.normal(0, 1, (rows, 8)).astype(np.float32)
        first = np.asarray(function(x))
        for _ in range(runs):
            check(np.array_equal(np.asarray(function(x)), first), name)
    count = total("steps_replayed") - before
    check((count > 0) == captured, f"{name}: {count} steps were replayed")

spec = [tf.TensorSpec([None, 8], tf.float32)]
"""


def run(code: str, variables: dict[str, str], groups: int = 2, **more: str) -> None:
    """Runs code with two groups whose steps are captured, each replay verified."""
    kit.run_checks(
        HELPERS + code,
        groups=groups,
        **{
            "TF_MULTI_STREAM_CAPTURE": "auto",
            "TF_MULTI_STREAM_CAPTURE_VERIFY": "1",
            **variables,
            **more,
        },
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_functions_that_a_function_calls(groups: int) -> None:
    """An XLA function that eager code calls directly uses no executor, and is not captured."""
    run(
        """
inner = tf.function(body, jit_compile=True)

@tf.function(input_signature=spec)
def outer(x):
    with tf.device(GPU):
        return inner(tf.identity(x))

@tf.function(input_signature=spec)
def noisy(x):
    with tf.device(GPU):
        return tf.identity(with_noise(x))

@tf.function(jit_compile=True)
def with_noise(x):
    return x + 0.0 * tf.random.normal([8], name="noise")

expect("called", outer)
expect("random", noisy, captured=False)
with tf.device(GPU):
    expect("by itself", inner, captured=False)
check("RandomStandardNormal 'noise" in str(tf.cuda.capture_report()), str(tf.cuda.capture_report()))
""",
        FUNCTIONS,
        groups=groups,
    )


def test_clusters_of_sessions_and_functions() -> None:
    run(
        """
tf1 = tf.compat.v1

@tf.function(input_signature=spec)
def function(x):
    with tf.device(GPU):
        return body(x)

expect("function", function)
with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [None, 8])
    with tf.device(GPU):
        y = body(x)
    with tf1.Session() as session:
        expect("session", lambda value: session.run(y, {x: value}))
ends = str(tf.cuda.capture_report())
check("xla_run" in ends, ends)  # clusters there were
check(total("replays_verified") == total("steps_replayed"), "not all are verified")
""",
        CLUSTERS,
    )


def test_variables_that_change_between_the_calls() -> None:
    """XLA's kernels read variables in place."""
    run(
        """
with tf.device(GPU):
    v = tf.Variable(tf.identity(w) + 0.0)  # in memory of the GPU's

@tf.function(jit_compile=True)
def product(x):
    return tf.tanh(tf.matmul(x, v)) + 1.0

@tf.function(input_signature=spec)
def outer(x):
    with tf.device(GPU):
        return product(tf.identity(x))

x = rng.normal(0, 1, (3, 8)).astype(np.float32)
for turn in range(12):
    for _ in range(4):
        want = np.tanh(x @ v.numpy()) + 1.0
        check(np.allclose(outer(x).numpy(), want, rtol=1e-3, atol=1e-3), f"turn {turn}")
    with tf.device(GPU):
        if turn % 3:
            v.assign_add(tf.ones([8, 4]) * 0.25)
        else:
            v.assign(tf.identity(w) * float(turn))
check(total("steps_replayed") > 8, str(tf.cuda.capture_report()))
""",
        FUNCTIONS,
        TF_MULTI_STREAM_CAPTURE_VERIFY="0",
    )


def test_a_value_that_xla_compiles_in_is_in_the_way() -> None:
    """XLA reads an axis or a shape on the host, which waits for the GPU."""
    run(
        """
with tf.device(GPU):
    axis = tf.Variable(tf.zeros([1], tf.int64))
    shape = tf.Variable(np.array([-1, 4]))
    v = tf.Variable(tf.identity(w) + 0.0)

def in_outer(function):
    compiled = tf.function(function, jit_compile=True)
    @tf.function(input_signature=spec)
    def outer(x):
        with tf.device(GPU):
            return compiled(tf.identity(x))
    return outer

def called(function):
    # By a function that the compiled one calls.
    return lambda x: tf.function(function)(x + 1.0)

cases = {
    "axis": lambda x: tf.reduce_sum(x, axis=axis) * 2.0,
    "called": called(lambda x: tf.reduce_sum(x, axis=axis) * 2.0),
    "arithmetic": lambda x: tf.reduce_sum(x, axis=1 - axis),
    "shape": lambda x: tf.reshape(x, shape),
}
for name, case in cases.items():
    outer = in_outer(case)
    for value in (0, 1):
        with tf.device(GPU):
            axis.assign([value])
            shape.assign([-1, 4 >> value])
        expect(name, outer, captured=False)
        x = rng.normal(0, 1, (3, 8)).astype(np.float32)
        check(np.allclose(outer(x).numpy(), case(x).numpy(), 1e-4, 1e-4), name)
text = str(tf.cuda.capture_report())
check("readvariableop_resource', as of an axis or a size" in text, text)
expect("no constant", in_outer(lambda x: tf.matmul(x, v) + tf.cast(axis[0], tf.float32)))
expect("a shape", in_outer(lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]) @ w[:4]))
""",
        FUNCTIONS,
    )


def test_graphs_that_xla_may_launch_itself_are_in_the_way() -> None:
    run(
        """
inner = tf.function(body, jit_compile=True)

@tf.function(input_signature=spec)
def outer(x):
    with tf.device(GPU):
        return inner(tf.identity(x))

expect("called", outer, captured=False)
text = str(tf.cuda.capture_report())
check("XLA_FLAGS=--xla_gpu_enable_command_buffer=" in text, text)
""",
        {"XLA_FLAGS": "--xla_gpu_enable_command_buffer=FUSION"},
    )


def test_clusters_that_xla_may_not_compile_say_why() -> None:
    run(
        """
@tf.function(input_signature=spec)
def function(x):
    with tf.device(GPU):
        return body(x)

for _ in range(8):
    function(rng.normal(0, 1, (3, 8)).astype(np.float32))
text = str(tf.cuda.capture_report())
check("--tf_xla_enable_lazy_compilation=false" in text, text)
""",
        {
            "TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit=true"
            " --tf_xla_min_cluster_size=2"
        },
    )

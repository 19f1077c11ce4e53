# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.cuda.captured, sessions that ask for captured steps, as DeepRec's do, and process settings."""

from typing import Any

import pytest
import tensorflow as tf

from multistream.testing import kit

HELPERS = """
import tempfile
import warnings

def body(x, scale=2.0):
    with tf.device(GPU):
        return tf.tanh(tf.cast(x, tf.float32) * scale) + 1.0

def number():
    with tf.device(GPU):
        return tf.random.uniform([4], 0, 9, tf.int64, name="noise")

def noise(x):
    with tf.device(GPU):
        return tf.identity(x) + tf.cast(number(), tf.float32)

def gives(function, *arguments, captured=True, **named):
    before = replayed()
    for _ in range(12):
        result = tf.nest.flatten(function(*arguments, **named))[0]
        check(np.allclose(result, np.tanh(2.0 * four) + 1.0), str(result))
    check((replayed() > before) == captured, f"{replayed() - before} steps were replayed")

def warned_of(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return make(), [str(warning.message) for warning in caught]

four = np.arange(4, dtype=np.float32)
spec = [tf.TensorSpec([None], tf.float32, name="x")]
"""


def run(*code: str, groups: int = 2, capture: str = "", **variables: str) -> None:
    kit.run_captured(HELPERS, *code, groups=groups, capture=capture, **variables)


def test_of_several_functions_one_is_captured() -> None:
    """The function may be made in any way, and no environment variable is set."""
    run(
        """
captured = tf.cuda.captured(body)

class Model:
    @tf.cuda.captured
    @tf.function
    def call(self, x):
        return {"y": body(x)}

    @tf.cuda.captured
    @tf.function(input_signature=spec)
    def serve(self, x):
        return {"y": body(x)}

gives(captured, four)
gives(tf.function(body), four, captured=False)
gives(tf.cuda.captured(mode="require")(tf.function(body, autograph=False)), four)
gives(captured, x=tf.constant(four), scale=2.0)
gives(tf.cuda.captured(tf.function(body, input_signature=spec)), four)
gives(tf.function(lambda x: captured(x) * 1.0), four)
gives(Model().call, four)
gives(Model().serve, four)
gives(Model().serve, x=four)
concrete = tf.function(body).get_concrete_function(*spec)
gives(concrete, tf.constant(four), captured=False)
gives(tf.cuda.captured(concrete), tf.constant(four))
check(captured.__name__ == "body", captured.__name__)

# Functions that run eagerly mark nothing.
tf.config.run_functions_eagerly(True)
with tf.Graph().as_default() as graph:
    tf1.placeholder(tf.float32, [None], name="mine")
gives(tf.cuda.captured(body), four, captured=False)
names = {name for ops in (graph, tf1.get_default_graph())
         for op in ops.get_operations() for name in op.node_def.attr}
check("_multi_stream_capture" not in names, str(names))
""",
        groups=1,
    )


def test_a_saved_model_keeps_it() -> None:
    run(
        """
model = tf.Module()
with tf.device(GPU):
    model.w = tf.Variable(2.0)
model.captured = tf.cuda.captured(tf.function(lambda x: body(x, model.w), input_signature=spec))
model.plain = tf.function(lambda x: body(x, model.w), input_signature=spec)
folder = tempfile.mkdtemp()
tf.saved_model.save(model, folder, signatures={"captured": model.captured, "plain": model.plain})
with tf.device(GPU):
    loaded = tf.saved_model.load(folder)
marked = tf.cuda.captured(loaded.signatures["plain"])
gives(loaded.signatures["plain"], x=tf.constant(four), captured=False)
gives(loaded.captured, four)
gives(loaded.plain, four, captured=False)
for signature in loaded.signatures["captured"], marked:
    gives(signature, x=tf.constant(four))
    gives(tf.cuda.serving_callable(signature), x=four)
""",
        capture="marked",
    )


def test_what_is_required_and_cannot_be_is_an_error() -> None:
    run("""
require = tf.cuda.captured(mode="require")
says = 'tf.cuda.captured(mode="require")', "RandomUniformInt"
fails(tf.errors.FailedPreconditionError, lambda: require(noise)(four), *says)
with tf.device(GPU):
    w = tf.Variable(four)
fails(tf.errors.FailedPreconditionError,
      lambda: require(lambda x: w.assign_add(tf.cast(number(), tf.float32)))(four), *says)
for _ in range(12):
    tf.cuda.captured(noise)(four)  # without an error
    tf.function(noise)(four)
check(replayed() == 0, "replayed")
fails(ValueError, lambda: tf.cuda.captured(body, mode="on"), "mode='on'", "auto, require, off")
fails(TypeError, lambda: tf.cuda.captured(3), "tf.cuda.captured(3)")
""")


def test_an_environment_that_requires_capture() -> None:
    """Initializers and training steps need not be captured."""
    run(
        """
tf1 = tf.compat.v1
fails(tf.errors.FailedPreconditionError, lambda: tf.function(noise)(four),
      "TF_MULTI_STREAM_CAPTURE=require", "RandomUniformInt 'noise")
gives(tf.function(body), four)
with tf.Graph().as_default(), tf.device(GPU):
    w = tf1.get_variable("w", initializer=four, use_resource=True)
    with tf1.Session() as session:
        session.run(w.initializer)
        check((session.run(w) == four).all(), "initialized")
""",
        capture="require",
    )


@pytest.mark.parametrize("capture", ["", "inference"])
def test_stream_groups_capture_inference(capture: str) -> None:
    """Even if nothing asks for capture. What changes a variable is captured if it is marked."""
    run(
        """
def update(x):
    with tf.device(GPU):
        v.assign_add(tf.tanh(x * 2.0) + 1.0 - v)
        return tf.identity(v)

with tf.device(GPU):
    v = tf.Variable(four)
gives(tf.function(body), four)
gives(tf.function(update), four, captured=False)
said = "it changes state; TF_MULTI_STREAM_CAPTURE=auto captures training, too"
check(said in str(tf.cuda.capture_report()), str(tf.cuda.capture_report()))
gives(tf.cuda.captured(tf.function(update)), four)
""",
        capture=capture,
    )


def test_off_counts_before_the_environment() -> None:
    run(
        "gives(tf.cuda.captured(mode='off')(body), four, captured=False)\n"
        "gives(tf.function(body), four)",
        capture="auto",
    )


def test_an_environment_that_says_off_counts_first() -> None:
    run(
        SESSIONS,
        """
function, warned = warned_of(lambda: tf.cuda.captured(body))
check("TF_MULTI_STREAM_CAPTURE=off" in warned[0], str(warned))
gives(function, four, captured=False)
fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"), "TF_MULTI_STREAM_CAPTURE=off")
check(share(True) == 0, "a session")
""",
        capture="off",
    )
    run(
        'fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"),'
        ' "TF_NODE_LEVEL_MULTISTREAM")',
        TF_NODE_LEVEL_MULTISTREAM="true",
    )


@pytest.mark.parametrize("capture", ["", "marked"])
def test_devices_that_were_made_before_capture_what_the_environment_says(capture: str) -> None:
    checks = """
check("TF_MULTI_STREAM_CAPTURE=marked" in warned[0], str(warned))
gives(function, four, captured=False)
fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"), "has made its devices")
"""
    if capture:
        checks = """
check(not warned, str(warned))
gives(function, four)
gives(tf.function(body), four, captured=False)
"""
    run(
        """
with tf.device(GPU):
    one = tf.constant(1.0)
function, warned = warned_of(lambda: tf.cuda.captured(body))
""",
        checks,
        groups=1,
        capture=capture,
    )


SESSIONS = """
def share(enable, use=None, **options):
    config = tf1.ConfigProto(**options)
    if enable is not None:
        config.gpu_options.cuda_graph_enable_jit = enable
    if use is not None:
        config.graph_options.rewrite_options.use_multi_stream = use
    before = replayed()
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [None])
        y = body(x)
        with tf1.Session(config=config) as session:
            for _ in range(12):
                check(np.array_equal(session.run(y, {x: four}), session.run(y, {x: four})), "bits")
    return replayed() - before
"""


@pytest.mark.parametrize(("groups", "capture"), [(1, ""), (2, "marked")])
def test_a_session_asks_as_deeprecs_do(groups: int, capture: str) -> None:
    """`gpu_options.cuda_graph_enable_jit` counts for its own session only."""
    run(
        SESSIONS,
        """
from google.protobuf import text_format
text = text_format.Parse("gpu_options { cuda_graph_enable_jit: true }", tf1.ConfigProto())
check(text.gpu_options.cuda_graph_enable_jit, str(text))
check(not tf1.ConfigProto().gpu_options.cuda_graph_enable_jit, "default")
if tf.cuda.stream_group_count() > 1:
    check(share(None) == 0, "before")  # with one group it would be TensorFlow's own GPU
check(share(True) > 0, "asked")
check(share(False) == 0, "not asked")
check(share(None) == 0, "after")
""",
        groups=groups,
        capture=capture,
    )


def test_a_session_whose_nodes_have_streams_is_not_captured() -> None:
    code = """
from tensorflow.core.protobuf import rewriter_config_pb2
check(share(True, use=rewriter_config_pb2.RewriterConfig.ON) == 0, "captured")
"""
    done = kit.python(
        ["-c", kit.PROLOGUE + kit.CAPTURE_HELPERS + HELPERS + SESSIONS + code + kit.EPILOGUE],
        kit.environment(2),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "cuda_graph_enable_jit has no effect: its nodes have streams" in done.stderr


def test_each_setting_that_kernels_read_at_launch_has_its_own_recordings() -> None:
    """On a GPU, a recording replayed with another setting would give other bits."""
    run(
        """
x, w = floats(256, 256), floats(256, 256)
product = lambda x: tf.matmul(x, w) + 1.0
captured, expected = both_ways(on_gpu(product))

def steps(setting, recorded, replays):
    before = total("recordings_made"), replayed()
    for _ in range(6):
        check(bits(captured(x)) == bits(expected(x)), setting)
    counts = total("recordings_made") - before[0], replayed() - before[1]
    check(counts == (recorded, replays), f"{setting}: {counts}")

steps("first", 1, 4)
tf.config.experimental.enable_tensor_float_32_execution(False)
steps("TF32 off", 1, 4)
tf.config.experimental.enable_tensor_float_32_execution(True)
steps("TF32 on again", 0, 6)
tf.config.experimental.enable_op_determinism()
steps("deterministic", 1, 4)
steps("deterministic, later", 0, 6)
""",
        groups=1,
        capture="marked",
    )


def test_methods_of_objects_that_are_gone() -> None:
    """Nothing is kept of an object; each may make variables in its first call."""
    run(
        """
import gc

class Model(tf.Module):
    def __init__(self):
        with tf.device(GPU):
            self.w = tf.Variable(tf.ones([256, 1024]))
        self.seen = None

    @tf.cuda.captured
    @tf.function(input_signature=[tf.TensorSpec([None, 256])])
    def serve(self, x):
        with tf.device(GPU):
            return tf.reduce_sum(x @ self.w)

    @tf.cuda.captured
    @tf.function
    def count(self, x):
        if self.seen is None:
            with tf.device(GPU):
                self.seen = tf.Variable(tf.zeros([3]))
        self.seen.assign_add(x)
        return self.seen * 1.0

in_use = []
for _ in range(4):
    model = Model()
    for call in range(1, 5):
        check(float(model.serve(floats(2, 256))) != 0, "served")
        check(np.array_equal(model.count(np.ones(3, np.float32)), [call] * 3), "counted")
    del model
    gc.collect()
    gc.collect()
    in_use.append(total("bytes_in_use"))
check(max(in_use) < 2**20, str(in_use))
"""
    )


def test_a_signature_of_a_model_that_is_gone() -> None:
    run(
        """
import gc

class Model(tf.Module):
    def __init__(self):
        numbers = tf.lookup.KeyValueTensorInitializer([1, 2], [10.0, 20.0], tf.int64)
        self.table = tf.lookup.StaticHashTable(numbers, -1.0)
        self.v = tf.Variable([1.0, 2.0])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="x")])
    def serve(self, x):
        return {"y": self.table.lookup(x) + self.v[0]}

with tempfile.TemporaryDirectory() as folder:
    model = Model()
    tf.saved_model.save(model, folder, signatures={"s": model.serve})
    signature = tf.cuda.captured(tf.saved_model.load(folder).signatures["s"])
gc.collect()
for _ in range(6):
    found = signature(x=tf.constant([1, 2], tf.int64))["y"]
    check(np.array_equal(found, [11.0, 21.0]), str(found))
"""
    )


@kit.in_process(
    TF_NODE_LEVEL_MULTISTREAM=None, TF_MULTI_STREAM_SANITIZER=None, TF_MULTI_STREAM_CAPTURE="marked"
)
def test_autograph() -> None:
    """Statements may depend on tensors, also those of functions that are called."""

    def doubled(x: Any) -> Any:
        if tf.reduce_sum(x) > 0:
            x = x * 2.0
        return x

    def steps(x: Any) -> Any:
        for _ in tf.range(3):
            x = doubled(x)
        return x

    def placed(x: Any) -> Any:
        with tf.device("/GPU:0"):
            return steps(x)

    converted = [tf.cuda.captured(placed), tf.cuda.captured(tf.function(placed))]
    for function in converted:
        for sign in (1.0, -1.0):
            for _ in range(6):
                x = tf.constant([1.0, 2.0]) * sign
                expected = [8.0, 16.0] if sign > 0 else [-1.0, -2.0]
                assert function(x).numpy().tolist() == expected
    for function in (
        tf.function(placed, autograph=False),
        tf.autograph.experimental.do_not_convert(placed),
    ):
        with pytest.raises(TypeError, match="symbolic"):
            tf.cuda.captured(function)(tf.constant([1.0]))
    tf.config.run_functions_eagerly(True)
    for function in converted:
        assert function(tf.constant([1.0, 2.0])).numpy().tolist() == [8.0, 16.0]

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.cuda.captured, and sessions that ask for captured steps, as DeepRec's do.

On a machine with a GPU, TFMS_TEST_GPU=1 records CUDA graphs.
"""

from __future__ import annotations

import pytest

from multistream.testing import kit


def run(code: str, groups: int = 2, **variables: str) -> None:
    """Runs code with two groups, whose steps are not captured unless the program says so."""
    kit.run_checks(HELPERS + code, groups=groups, **variables)


HELPERS = """
import tempfile
import warnings

def replayed():
    return sum(s.steps_replayed for s in tf.cuda.stream_stats())

def body(x, scale=2.0):
    with tf.device(GPU):
        return tf.tanh(tf.cast(x, tf.float32) * scale) + 1.0

def noise(x):
    with tf.device(GPU):
        return tf.identity(x) + tf.random.normal([4], name="noise")

def expect(function, *arguments, captured=True, **named):
    before = replayed()
    want = np.tanh(2.0 * np.arange(4, dtype=np.float32)) + 1.0
    for _ in range(12):
        result = tf.nest.flatten(function(*arguments, **named))[0]
        check(np.allclose(result.numpy(), want), str(result))
    count = replayed() - before
    check((count > 0) == captured, f"{count} steps were replayed")

def fails(kind, function, *texts):
    try:
        function()
    except kind as error:
        for text in texts:
            check(text in str(error), f"{text!r} is not in {error!r}")
    else:
        check(False, f"no {kind.__name__}")

four = np.arange(4, dtype=np.float32)
"""


def test_of_several_functions_one_is_captured() -> None:
    """The function may be made in any way, and no environment variable is set."""
    run(
        """
captured = tf.cuda.captured(body)
decorated = tf.cuda.captured(mode="require")(tf.function(body, autograph=False))
with_spec = tf.cuda.captured(
    tf.function(body, input_signature=[tf.TensorSpec([None], tf.float32)]))
plain = tf.function(body)
outer = tf.function(lambda x: captured(x) * 1.0)

class Model:
    @tf.cuda.captured
    @tf.function
    def call(self, x):
        return {"y": body(x)}

    @tf.cuda.captured
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def serve(self, x):
        return {"y": body(x)}

expect(captured, four)
expect(plain, four, captured=False)
expect(decorated, four)
expect(captured, x=tf.constant(four), scale=2.0)
expect(with_spec, four)
expect(outer, four)
expect(Model().call, four)
expect(Model().serve, four)
expect(Model().serve, x=four)
saved = tf.Module()
saved.serve = Model().serve
folder = tempfile.mkdtemp()
tf.saved_model.save(saved, folder, signatures={"serve": saved.serve})
expect(tf.saved_model.load(folder).signatures["serve"], x=tf.constant(four))
concrete = tf.function(body).get_concrete_function(tf.TensorSpec([None], tf.float32, name="x"))
expect(concrete, tf.constant(four), captured=False)
expect(tf.cuda.captured(concrete), tf.constant(four))
check(captured.__name__ == "body", captured.__name__)
"""
    )


def test_functions_that_run_eagerly_mark_nothing() -> None:
    run(
        """
tf.config.run_functions_eagerly(True)
with tf.Graph().as_default() as graph:
    tf.compat.v1.placeholder(tf.float32, [None], name="mine")
expect(tf.cuda.captured(body), four, captured=False)
names = {name for op in graph.get_operations() for name in op.node_def.attr}
for op in tf.compat.v1.get_default_graph().get_operations():
    names |= set(op.node_def.attr)
check("_multi_stream_capture" not in names, str(names))
"""
    )


def test_one_group_is_enough() -> None:
    run("expect(tf.cuda.captured(body), four)", groups=1)


def test_a_saved_model_keeps_it() -> None:
    run(
        """
model = tf.Module()
with tf.device(GPU):
    model.w = tf.Variable(2.0)
spec = [tf.TensorSpec([None], tf.float32, name="x")]
model.captured = tf.cuda.captured(tf.function(lambda x: body(x, model.w), input_signature=spec))
model.plain = tf.function(lambda x: body(x, model.w), input_signature=spec)
folder = tempfile.mkdtemp()
tf.saved_model.save(model, folder, signatures={"captured": model.captured, "plain": model.plain})
with tf.device(GPU):
    loaded = tf.saved_model.load(folder)
expect(loaded.signatures["captured"], x=tf.constant(four))
expect(loaded.signatures["plain"], x=tf.constant(four), captured=False)
expect(tf.cuda.captured(loaded.signatures["plain"]), x=tf.constant(four))
expect(loaded.captured, four)
expect(loaded.plain, four, captured=False)
for signature in loaded.signatures["captured"], tf.cuda.captured(loaded.signatures["plain"]):
    serve = tf.cuda.serving_callable(signature)
    before = replayed()
    for _ in range(12):
        serve(x=four)
    check(replayed() > before, "serving_callable")
""",
        TF_MULTI_STREAM_CAPTURE="marked",
    )


def test_what_is_required_and_cannot_be_is_an_error() -> None:
    run(
        """
require = tf.cuda.captured(mode="require")
says = 'tf.cuda.captured(mode="require")'
fails(tf.errors.FailedPreconditionError, lambda: require(noise)(four), says, "RandomStandardNormal")
with tf.device(GPU):
    w = tf.Variable(four)
fails(tf.errors.FailedPreconditionError,
      lambda: require(lambda x: w.assign_add(tf.random.normal([4], name="step")))(four), says,
      "RandomStandardNormal")
before = replayed()
for _ in range(12):
    tf.cuda.captured(noise)(four)  # as always
    tf.function(noise)(four)
check(replayed() == before, "replayed")
"""
    )


def test_an_environment_that_requires_capture() -> None:
    """Initializers and training steps need not be captured."""
    run(
        """
tf1 = tf.compat.v1
fails(tf.errors.FailedPreconditionError, lambda: tf.function(noise)(four),
      "TF_MULTI_STREAM_CAPTURE=require", "RandomStandardNormal 'noise")
expect(tf.function(body), four)
with tf.Graph().as_default(), tf.device(GPU):
    w = tf1.get_variable("w", initializer=four, use_resource=True)
    with tf1.Session() as session:
        session.run(w.initializer)
        check((session.run(w) == four).all(), "initialized")
""",
        TF_MULTI_STREAM_CAPTURE="require",
    )


def test_off_counts_before_the_environment() -> None:
    run(
        """
expect(tf.cuda.captured(mode="off")(body), four, captured=False)
expect(tf.function(body), four)
""",
        TF_MULTI_STREAM_CAPTURE="auto",
    )


def test_an_environment_that_says_off_counts_first() -> None:
    run(
        """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    function = tf.cuda.captured(body)
check("TF_MULTI_STREAM_CAPTURE=off" in str(caught[0].message), str(caught))
expect(function, four, captured=False)
fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"), "TF_MULTI_STREAM_CAPTURE=off")
""",
        TF_MULTI_STREAM_CAPTURE="off",
    )
    run(
        """
fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"), "TF_NODE_LEVEL_MULTISTREAM")
""",
        TF_NODE_LEVEL_MULTISTREAM="true",
    )


def test_devices_that_were_made_before_capture_nothing() -> None:
    code = """
with tf.device(GPU):
    one = tf.constant(1.0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    function = tf.cuda.captured(body)
"""
    run(
        code
        + """
check("TF_MULTI_STREAM_CAPTURE=marked" in str(caught[0].message), str(caught))
check(caught[0].filename == "<string>" or "<" not in caught[0].filename, caught[0].filename)
expect(function, four, captured=False)
fails(RuntimeError, lambda: tf.cuda.captured(body, mode="require"), "has made its devices")
"""
    )
    run(
        code
        + """
check(not caught, str(caught))
expect(function, four)
expect(tf.function(body), four, captured=False)
""",
        TF_MULTI_STREAM_CAPTURE="marked",
    )


def test_wrong_arguments_are_named() -> None:
    run(
        """
fails(ValueError, lambda: tf.cuda.captured(body, mode="on"), "mode='on'", "auto, require, off")
fails(TypeError, lambda: tf.cuda.captured(3), "tf.cuda.captured(3)")
"""
    )


SESSIONS = """
tf1 = tf.compat.v1

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


@pytest.mark.parametrize("groups", [1, 2])
def test_a_session_asks_as_deeprecs_do(groups: int) -> None:
    """`gpu_options.cuda_graph_enable_jit` counts for its own session only."""
    run(
        SESSIONS
        + """
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
    )


def test_a_session_whose_nodes_have_streams_is_not_captured() -> None:
    code = """
from tensorflow.core.protobuf import rewriter_config_pb2
check(share(True, use=rewriter_config_pb2.RewriterConfig.ON) == 0, "captured")
"""
    done = kit.python(
        ["-c", kit.PROLOGUE + HELPERS + SESSIONS + code + kit.EPILOGUE],
        kit.environment(2, TF_CPP_MIN_LOG_LEVEL="1"),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "cuda_graph_enable_jit has no effect: its nodes have streams" in done.stderr


def test_an_environment_that_says_off_counts_before_a_session() -> None:
    run(SESSIONS + "check(share(True) == 0, 'captured')", TF_MULTI_STREAM_CAPTURE="off")

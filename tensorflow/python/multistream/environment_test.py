# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The environment configures the runtime; a wrong value is an error."""

import re

import pytest

from multistream.testing.kit import ok, run

EMULATED = {"TF_MULTI_STREAM_EMULATED_GPUS": "1"}


@pytest.mark.parametrize("count", [None, "1", ""], ids=["nothing", "one group", "empty"])
def test_no_variable_means_stock(count: str | None) -> None:
    """The runtime is loaded, and inactive unless a session asks for streams."""
    out = ok(
        """
        import tensorflow as tf
        with tf.compat.v1.Session(graph=tf.Graph()):
            pass
        tf.constant(1.0)
        print(tf.cuda.multi_stream_is_enabled(), tf.cuda.stream_group_count(),
              tf.cuda.stream_stats())
        try:
            tf.cuda.stream_group_count(-1)
        except ValueError as error:
            print("gpu=-1" in str(error))
        """,
        **({} if count is None else {"TF_GPU_STREAM_GROUP_COUNT": count}),
    )
    assert out.split() == ["False", "1", "[]", "True"]


def test_bad_value_is_an_error_at_import() -> None:
    """The error names the variable, its value and what is allowed; options_test.cc has them all."""
    done = run("import tensorflow", TF_GPU_STREAM_GROUP_COUNT="4,x")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert re.match('ValueError: .*TF_GPU_STREAM_GROUP_COUNT="4,x".* takes ', last), last


def test_one_visible_gpu_for_each_physical_one() -> None:
    """Groups show in no listing; set_visible_devices and memory limits work as documented."""
    ok(
        """
        import tensorflow as tf
        gpus = tf.config.list_physical_devices("GPU")
        assert [g.name for g in gpus] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
        tf.config.set_visible_devices(gpus[1:], "GPU")
        tf.config.set_logical_device_configuration(
            gpus[1], [tf.config.LogicalDeviceConfiguration(memory_limit=64)])
        assert [d.name for d in tf.config.list_logical_devices("GPU")] == ["/device:GPU:0"]
        stats = tf.cuda.stream_stats()
        assert [(s.gpu, s.group) for s in stats] == [(1, i) for i in range(4)], stats
        assert all(s.bytes_limit == 16 << 20 for s in stats), stats
        assert tf.cuda.multi_stream_is_enabled() and tf.cuda.stream_group_count() == 4
        assert tf.compat.v1.cuda.stream_group_count() == 4
        """,
        TF_GPU_STREAM_GROUP_COUNT="4",
        TF_MULTI_STREAM_EMULATED_GPUS="2",
    )


def test_variables_without_effect_are_named() -> None:
    done = run(
        "import tensorflow as tf; tf.constant(1.0)",
        TF_MULTI_STREAM_POLICY="cost",
        TF_NODE_LEVEL_MULTISTREAM="false",
        TF_STREAM_FROM_FILE="groups.txt",
        TF_GPU_STREAM_GROUP_COUNT="2",
        **EMULATED,
    )
    assert done.returncode == 0, done.stderr
    assert "TF_MULTI_STREAM_POLICY (with" in done.stderr and "have no effect" in done.stderr
    unless = "without TF_NODE_LEVEL_MULTISTREAM=true, but for sessions that ask for streams"
    assert f"TF_STREAM_FROM_FILE ({unless})" in done.stderr

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The environment configures the runtime; a wrong value is an error."""

import os

import pytest

from multistream.testing.kit import ok, run

pytestmark = pytest.mark.usefixtures("fresh_processes")

EMULATED = {"TF_MULTI_STREAM_EMULATED_GPUS": "1"}


@pytest.mark.parametrize(
    "environment",
    [{}, {"TF_GPU_STREAM_GROUP_COUNT": "1"}, {"TF_GPU_STREAM_GROUP_COUNT": ""}],
    ids=["nothing", "one group", "empty"],
)
def test_no_variable_means_stock(environment: dict[str, str]) -> None:
    """The runtime is loaded, and inactive unless a session asks for streams."""
    out = ok(
        """
        import tensorflow as tf
        with tf.compat.v1.Session(graph=tf.Graph()):
            pass
        tf.constant(1.0)
        print(tf.cuda.multi_stream_is_enabled(), tf.cuda.stream_group_count(),
              tf.cuda.stream_stats())
        """,
        **environment,
    )
    assert out.split() == ["False", "1", "[]"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TF_GPU_STREAM_GROUP_COUNT", "abc"),
        ("TF_GPU_STREAM_GROUP_COUNT", "0"),
        ("TF_GPU_STREAM_GROUP_COUNT", "-1"),
        ("TF_GPU_STREAM_GROUP_COUNT", "65"),
        ("TF_GPU_STREAM_GROUP_COUNT", "4,x"),
        ("TF_MULTI_STREAM_EMULATED_GPUS", "17"),
        ("TF_SEGMENT_OWN_CONST", "maybe"),
        ("TF_NODE_LEVEL_MULTISTREAM", "2"),
        ("TF_MULTI_STREAM_POLICY", "manual"),
        ("TF_MULTI_STREAM_MEASURE", "yes"),
        ("TF_MULTI_STREAM_CAPTURE_BRANCHES", "0"),
        ("TF_MULTI_STREAM_PYTHON_TURNS", "65"),
    ],
)
def test_bad_value_is_an_error_at_import(name: str, value: str) -> None:
    """The error names the variable, its value and what is allowed."""
    done = run("import tensorflow", **{name: value})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: ") and f'{name}="{value}"' in last and "takes" in last


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="for machines without a GPU")
def test_groups_without_gpu_are_an_error() -> None:
    """No GPU and no emulation: an exception that says what to do."""
    done = run("import tensorflow as tf; tf.constant(1.0)", TF_GPU_STREAM_GROUP_COUNT="4")
    assert done.returncode == 1
    assert "TF_GPU_STREAM_GROUP_COUNT=4" in done.stderr
    assert "TF_MULTI_STREAM_EMULATED_GPUS=1" in done.stderr


def test_list_longer_than_the_gpus_is_an_error() -> None:
    """A comma list has one number for each visible GPU."""
    done = run(
        "import tensorflow as tf; tf.constant(1.0)", TF_GPU_STREAM_GROUP_COUNT="4,2", **EMULATED
    )
    assert done.returncode == 1 and "the list has 2 numbers" in done.stderr


def test_own_logical_devices_are_an_error() -> None:
    """A GPU that the user splits cannot be split into stream groups too."""
    done = run(
        """
        import tensorflow as tf
        gpu = tf.config.list_physical_devices("GPU")[0]
        tf.config.set_logical_device_configuration(
            gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=64)] * 2)
        tf.constant(1.0)
        """,
        TF_GPU_STREAM_GROUP_COUNT="4",
        **EMULATED,
    )
    assert done.returncode == 1 and "2 logical devices" in done.stderr


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


def test_counts_per_gpu() -> None:
    """A comma list gives each GPU its own number of groups."""
    ok(
        """
        import tensorflow as tf
        tf.constant(1.0)
        assert [tf.cuda.stream_group_count(i) for i in range(2)] == [2, 3]
        """,
        TF_GPU_STREAM_GROUP_COUNT="2,3",
        TF_MULTI_STREAM_EMULATED_GPUS="2",
    )


def test_negative_gpu_is_an_error() -> None:
    """stream_group_count checks its argument."""
    out = ok("""
        import tensorflow as tf
        try:
            tf.cuda.stream_group_count(-1)
        except ValueError as error:
            print(error)
    """)
    assert "gpu=-1" in out


def test_variables_without_effect_are_named() -> None:
    """A recognised variable without effect is reported once."""
    done = run(
        "import tensorflow as tf; tf.constant(1.0)",
        TF_MULTI_STREAM_POLICY="cost",
        TF_NODE_LEVEL_MULTISTREAM="false",
        TF_STREAM_FROM_FILE="groups.txt",
        TF_GPU_STREAM_GROUP_COUNT="2",
        TF_CPP_MIN_LOG_LEVEL="1",
        **EMULATED,
    )
    assert done.returncode == 0, done.stderr
    assert "TF_MULTI_STREAM_POLICY (with" in done.stderr and "have no effect" in done.stderr
    unless = "without TF_NODE_LEVEL_MULTISTREAM=true, but for sessions that ask for streams"
    assert f"TF_STREAM_FROM_FILE ({unless})" in done.stderr

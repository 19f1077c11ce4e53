# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Libraries that are loaded before the runtime: errors name them. Each case is a new process."""

import subprocess
from pathlib import Path

import pytest
from tensorflow.python.multistream import loader

from multistream.testing.kit import ok, run

pytestmark = pytest.mark.usefixtures("fresh_processes")

FOLDER = Path(loader.__file__).resolve().parents[2]
FRAMEWORK = FOLDER / "libtensorflow_framework.so.2"
GROUPS = {"TF_GPU_STREAM_GROUP_COUNT": "4", "TF_MULTI_STREAM_EMULATED_GPUS": "1"}
NEW_EXECUTOR = (
    "_ZN10tensorflow11NewExecutorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKNS_19Local"
    "ExecutorParamsERKNS_5GraphEPSt10unique_ptrINS_8ExecutorESt14default_deleteISF_EE"
)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stderr[-3000:]
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def interposer(tmp_path: Path) -> Path:
    """A library that defines a function with the name of one of TensorFlow's."""
    source = tmp_path / "other.cc"
    source.write_text(f'extern "C" void {NEW_EXECUTOR}() {{ __builtin_trap(); }}')
    library = tmp_path / "libanother_executor.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def test_tensorflow_loaded_first_is_an_error_that_names_a_function() -> None:
    error = last_line(
        run(f"import ctypes; ctypes.CDLL('{FRAMEWORK}'); import tensorflow", **GROUPS)
    )
    assert error.startswith("ImportError: TensorFlow's calls of ")
    assert "tensorflow::NewExecutor" in error
    assert str(FRAMEWORK) in error and "libtensorflow_multistream.so" in error
    assert "import tensorflow before anything else loads them" in error


def test_another_library_of_that_name_is_an_error_that_names_both(interposer: Path) -> None:
    for code, environment in (
        ("import tensorflow", {"LD_PRELOAD": str(interposer)}),
        (f"import ctypes; ctypes.CDLL('{interposer}', ctypes.RTLD_GLOBAL); import tensorflow", {}),
    ):
        error = last_line(run(code, **GROUPS, **environment))
        assert "ImportError: TensorFlow's calls of tensorflow::NewExecutor reach" in error
        assert str(interposer) in error


def test_a_library_that_tensorflow_does_not_see_or_that_comes_later_changes_nothing(
    interposer: Path,
) -> None:
    out = ok(
        f"""
        import ctypes
        ctypes.CDLL('{interposer}')
        import tensorflow as tf
        ctypes.CDLL('{interposer}', ctypes.RTLD_GLOBAL)
        with tf.device("/GPU:0"):
            tf.function(lambda x: x + 1)(tf.constant(1.0))
        print(sum(s.steps_started for s in tf.cuda.stream_stats()))
        """,
        **GROUPS,
    )
    assert int(out) > 0


def test_without_groups_the_order_does_not_matter_until_a_session_asks_for_streams() -> None:
    code = f"""
        import ctypes
        ctypes.CDLL('{FRAMEWORK}')
        import tensorflow as tf
        config = tf.compat.v1.ConfigProto()
        with tf.compat.v1.Session(graph=tf.Graph(), config=config):
            pass
        print(tf.function(lambda x: x + 1)(tf.constant(1.0)).numpy(),
              [d.device_type for d in tf.config.list_logical_devices()])
        rewrite = config.graph_options.rewrite_options
        rewrite.use_multi_stream = type(rewrite).ON
        rewrite.multi_stream_opts.multi_stream_num = 4
        tf.compat.v1.Session(graph=tf.Graph(), config=config)
        """
    done = run(code)
    assert done.stdout.startswith("2.0 ['CPU'")
    error = last_line(done)
    assert "FailedPreconditionError: TensorFlow's calls of " in error
    assert "tensorflow::NewExecutor" in error and str(FRAMEWORK) in error

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the wheel of one release of TensorFlow does not have: skipped, each with a reason.

The one place for it; docs/releases.md says the same to users. `conftest.py` asks here.
"""

import tensorflow as tf

_NO_SERVING = "it has no tf.cuda.serving_callable"
# So that they run on group 0, and are not recorded.
_KERAS_COUNTS = "steps of its Keras's predict count in a variable"

# By the release's first two numbers: of a file, or of one test in it (FILE::FUNCTION), why.
LEFT_OUT: dict[str, dict[str, str]] = {
    "2.13": {
        "advise_test.py::test_a_saved_model_is_measured_from_the_command_line": _NO_SERVING,
        "advise_test.py::test_what_is_in_the_way_of_captured_steps_is_named": _NO_SERVING,
        "capture_batches_test.py::test_clients_with_batches_of_their_own": _NO_SERVING,
        "capture_beside_test.py::test_models_that_come_and_go_under_load_are_never_mixed_up": (
            _NO_SERVING
        ),
        "capture_functions_test.py::test_keras_predict": _KERAS_COUNTS,
        "capture_xla_test.py": "its XLA has no flag xla_gpu_enable_command_buffer",
        "captured_test.py::test_a_saved_model_keeps_it": _NO_SERVING,
        "pinned_test.py::test_calls_run_on_the_group": _KERAS_COUNTS,
        "serving_groups_test.py": _NO_SERVING,
        "serving_test.py": _NO_SERVING,
    },
}


def reason(test: str) -> str | None:
    """Why a file or a test is skipped with this TensorFlow; None if it is not.

    Args:
      test: FILE, or FILE::FUNCTION without what is in brackets.
    """
    release = ".".join(tf.__version__.split(".")[:2])
    found = LEFT_OUT.get(release, {}).get(test)
    return found and f"TensorFlow {tf.__version__}: {found}"

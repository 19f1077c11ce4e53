# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that are skipped for a TensorFlow release whose wheel lacks the feature, with reasons.

This is the only list of such tests, and `conftest.py` reads it; docs/releases.md tells users.
"""

import tensorflow as tf

_NO_SERVING = "it has no tf.cuda.serving_callable"
# Steps that change a variable run on group 0, and are not recorded.
_KERAS_COUNTS = "steps of its Keras's predict count in a variable"

# Release (first two numbers) -> file or test (FILE::FUNCTION) -> reason.
LEFT_OUT: dict[str, dict[str, str]] = {
    "2.13": {
        "advise_test.py::test_a_saved_model_is_measured_from_the_command_line": _NO_SERVING,
        "advise_test.py::test_what_is_in_the_way_of_captured_steps_is_named": _NO_SERVING,
        "capture_batches_test.py::test_clients_with_batches_of_their_own": _NO_SERVING,
        "capture_beside_test.py::test_models_that_come_and_go_under_load_are_never_mixed_up": (
            _NO_SERVING
        ),
        "capture_functions_test.py::test_keras_predict": _KERAS_COUNTS,
        "capture_xla_test.py": "what its XLA compiles is not recorded",
        "captured_test.py::test_a_saved_model_keeps_it": _NO_SERVING,
        "direct_calls_test.py": _NO_SERVING,
        "pinned_test.py::test_calls_run_on_the_group": _KERAS_COUNTS,
        "serving_groups_test.py": _NO_SERVING,
        "serving_test.py": _NO_SERVING,
    },
}


def reason(test: str) -> str | None:
    """Why a file or a test is skipped with this TensorFlow; None if it runs.

    Args:
      test: FILE, or FILE::FUNCTION without the parameters in brackets.
    """
    release = ".".join(tf.__version__.split(".")[:2])
    found = LEFT_OUT.get(release, {}).get(test)
    return found and f"TensorFlow {tf.__version__}: {found}"

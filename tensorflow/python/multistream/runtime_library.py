# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which library has the runtime: its own, which is loaded before TensorFlow's.

A TensorFlow that is built from source has it in one of its own, and another file in this one's
place (`build/source/python/runtime_library.py`).
"""

NAME = "libtensorflow_multistream.so"

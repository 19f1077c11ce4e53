# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The name of the library with the runtime, which is loaded before TensorFlow's libraries.

A TensorFlow built from source has the runtime inside one of TensorFlow's libraries, and replaces
this file with another one.
"""

NAME = "libtensorflow_multistream.so"

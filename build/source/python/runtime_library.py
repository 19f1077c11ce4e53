# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which library has the runtime: in a TensorFlow that is built from source, one of its own."""

NAME = "libtensorflow_cc.so.2"

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model server of the wheel, a program; the repository has it in examples/serving."""

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which of the models that people have are captured (docs/which-models.md)?"""

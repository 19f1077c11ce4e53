# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures TensorFlow with stream groups and its peers on workloads of the field: main.py."""

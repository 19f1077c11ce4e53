# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stream groups: how many there are, what each has done, and which one a thread uses."""

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a session asks for in its ConfigProto, as in DeepRec."""

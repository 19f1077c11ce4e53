# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Multi-stream TensorFlow: several stream groups on one GPU. See `tf.cuda`."""

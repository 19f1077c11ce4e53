# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Public API for tf._api.v2.compat.v2.cuda namespace: GPU streams and their groups."""

from tensorflow._api.v2.cuda import *  # noqa: F403

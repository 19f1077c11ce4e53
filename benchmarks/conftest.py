# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets tests find what is installed apart (build/requirements-apart.txt)."""

import sys

from multistream.testing import kit

sys.path.append(kit.APART)

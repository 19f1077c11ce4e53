# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lets tests find what is installed apart (build/requirements-apart.txt)."""

import sys
from pathlib import Path

sys.path.append(str(Path(sys.prefix, "apart")))

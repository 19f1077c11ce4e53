# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs command.py; a file of its own, so that it can be run by its path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from zoo.command import main

if __name__ == "__main__":
    sys.exit(main())

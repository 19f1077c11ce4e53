#!/usr/bin/env python3
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs build/patches.py; `scripts/patches.py --help` says what it does."""

import pathlib
import runpy
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "build"))
runpy.run_module("patches", run_name="__main__")

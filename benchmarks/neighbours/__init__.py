# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""What does a busy neighbour on the GPU cost a tenant that is in a hurry?"""

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The native protocol buffer rules, under the names by which Bazel's own files load them."""

proto_lang_toolchain = native.proto_lang_toolchain
proto_library = native.proto_library

#!/bin/bash
# SPDX-FileCopyrightText: 2026 The Multi-Stream TensorFlow Authors
# SPDX-License-Identifier: Apache-2.0
# Copies the wheel that Bazel has made into a folder.
#
#   bazel-bin/tensorflow/tools/pip_package/build_pip_package FOLDER
set -euo pipefail
if (($# != 1)) || [[ "$1" == -* ]]; then
  echo "usage: $0 FOLDER, which gets the wheel" >&2
  exit 2
fi
mkdir -p "$1"
for wheel in "$0.runfiles/tensorflow_multistream/build/wheel/"*.whl; do
  cp --force --no-preserve=mode "${wheel}" "$1"
  echo "$1/${wheel##*/}"
done

#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Builds TensorFlow itself, from source, with the multi-stream runtime in it.
#
#   scripts/build_from_source.sh [--source FOLDER] [--out FOLDER] [-- BAZEL OPTION ...]
#   scripts/build_from_source.sh --prepare-only [--source FOLDER] [--out FOLDER]
#
#   --source FOLDER  TensorFlow's sources, unpacked; they stay as they are
#                    [the release's archive is downloaded]
#   --sha256 HASH    of that archive, if it is not the known one
#   --out FOLDER     a new folder, for the tree that is built [dist/tensorflow-source]
#   --prepare-only   lays out that tree and builds nothing
#   -- OPTION ...    of `bazel build` [--config=cuda --config=cuda_wheel]
#
# For those who need a CUDA, a compiler or patches of their own; all others build
# a wheel in minutes with scripts/build_wheel.sh. This takes hours, a network, the
# Bazel that TensorFlow wants and what else it asks for:
# docs/building-from-source.md. Exit status: 0; 1 if it fails; 2 for a wrong
# argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

arguments=() # of source_tree.py
options=(--config=cuda --config=cuda_wheel)
out="${ROOT}/dist/tensorflow-source"
prepare_only=""
while (($#)); do
  case "$1" in
    --source | --sha256) needs_value "$@" && arguments+=("$1=$2") && shift 2 ;;
    --out) needs_value "$@" && out="$2" && shift 2 ;;
    --prepare-only) prepare_only=yes && shift ;;
    --) shift && options=("$@") && break ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" "Bazel's options come after --." ;;
  esac
done

stage "TensorFlow's tree with the runtime" "The error above says what is missing or wrong."
python3 "${ROOT}/build/source_tree.py" --out "${out}" "${arguments[@]}"
if [[ -n "${prepare_only}" ]]; then exit; fi

stage "Bazel" "Install bazelisk: it gets the version that .bazelversion names."
wanted="$(head -n 1 "${out}/.bazelversion")"
bazel=bazelisk
if ! command -v bazelisk >/dev/null; then
  bazel=bazel
  if ! command -v bazel >/dev/null; then fail "there is neither bazelisk nor bazel"; fi
  found="$(cd / && bazel --version)"
  if [[ "${found#bazel }" != "${wanted%%.*}".* ]]; then
    fail "this is ${found}, and TensorFlow wants ${wanted}" \
      "Install bazelisk, or that version. The tree is laid out: ${out}"
  fi
fi

stage "wheel, in hours" "The first error above names the file. Try again in ${out}: ${bazel} build."
(cd "${out}" && "${bazel}" build --curses=no --show_progress_rate_limit=60 --config=source \
  "${options[@]}" //tensorflow/tools/pip_package:wheel)
ls "${out}"/bazel-bin/tensorflow/tools/pip_package/wheel_house/*.whl

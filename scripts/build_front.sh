#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Builds dist/front, the program that has the model server's ports if it is started with --front, its
# wheel, with which the server needs no --front, and dist/load, which measures how many calls a server
# answers. Installs the system's gRPC for C++, Boost and RapidJSON if they are missing.
# docs/model-server.md says how to use them.
#
#   scripts/build_front.sh
#
# Exit status: 0; 1 if it cannot be built; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
no_arguments "$@"
cd "${ROOT}"

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages --front
has_venv || make_venv "$(python_tag)"
pip_install "$(grep '^wheel==' build/requirements-dev.txt)"

stage "front" "The error above says why."
run_bazel build --curses=no --show_progress_rate_limit=15 --strip=always \
  --repo_env="TFMS_PYTHON=$(python_tag)" //examples/serving/front:{front,load}
mkdir -p dist
for program in front load; do
  install "bazel-bin/examples/serving/front/${program}" "dist/${program}"
done
rm -f dist/tensorflow_multistream_front-*.whl
"${VENV}/bin/python" build/front_wheel.py dist/front --license LICENSE --out dist >/dev/null
ls -l "${ROOT}"/dist/{front,load,tensorflow_multistream_front-*.whl}

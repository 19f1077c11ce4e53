#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Runs tests of TensorFlow's, and of Keras's, with none of our variables and then with stream groups,
# with captured steps and at node level. Says which tests end otherwise than on stock.
#
#   scripts/upstream_tests.sh [--gpu] [OPTION ...] CHECKOUT [KERAS]
#
#   CHECKOUT  top folder of TensorFlow 2.21's sources; only test files are read
#   KERAS     top folder of Keras's: of its sources, or the site-packages where it is installed
#
# The files are listed in benchmarks/soundness/upstream_files.txt; what is known to end otherwise,
# and why, in upstream_known.csv beside it. The wheel in .venv is used; it is built and installed if
# there is none.
#
# Exit status: 0; 1 if a test ends otherwise that is not known to; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "${ROOT}"
program=benchmarks/soundness/upstream.py
program_help python3 "${program}" "$@"
gpu_if_asked "$@"

# A wrong argument ends here, before anything is built.
python3 "${program}" --check "$@" || {
  trap - EXIT
  exit 2
}

stage "wheel in .venv" "The error above says why."
if [[ ! -e "${VENV}/installed-wheel" ]]; then install_wheel_of_python "$(python_tag)"; fi

stage "tests" "The error above says why."
trap - EXIT
exec "${VENV}/bin/python" "${program}" "$@"

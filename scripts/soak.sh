#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Runs all kinds of work side by side and verifies every result: serving, training, variables that
# change, sessions that come and go, cancellations, full memory, pinned calls, policies, big feeds.
#
#   scripts/soak.sh [--gpu] [--minutes N] [--seed S]
#
# All arguments are soak.py's. What it needs is built and installed in .venv
# if it is not there.
#
# Exit status: 0; 1 if anything is wrong, hangs or grows; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "${ROOT}"
soak=benchmarks/soak/soak.py
program_help python3 "${soak}" "$@"
gpu_if_asked "$@"

# A wrong argument ends here, before anything is built.
python3 - "$@" <<<"import sys; sys.path.insert(0, '${soak%/*}'); sys.argv[0] = 'soak.sh'
import soak; soak.parse_arguments(None)" || {
  trap - EXIT
  exit 2
}

stage "wheel in .venv" "The error above says why."
install_wheel_of_python "$(python_tag)"

stage "soak" "What failed is said above, with the seed that draws the same again."
trap - EXIT
exec "${VENV}/bin/python" "${soak}" "$@"

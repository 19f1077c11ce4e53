#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Measures TensorFlow with stream groups and its peers on workloads of the field, in turn, and
# compares every result with that of one stream: docs/benchmarks.md.
#
#   scripts/bench.sh [--quick] [--only WORKLOADS] [--json FILE] [--html FILE] [--compare OLD.json]
#   scripts/bench.sh --zoo [--only MODELS] [--modes inference,training,serving] [--csv FILE]
#
# With --zoo, models of public packages: docs/which-models.md. The other arguments are those of
# benchmarks/bench/main.py, or of benchmarks/zoo/command.py. What it needs is built and installed in .venv
# if it is not there; peers such as PyTorch are measured if they are installed there, or where
# --python says. On a machine without a GPU it runs on an emulated one.
#
# Exit status: 0; 1 if something failed, a result was wrong or, with --compare, something is slower
# beyond noise; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "${ROOT}"
bench=benchmarks/bench/main.py
zoo=
if [[ "${1:-}" == --zoo ]]; then
  shift
  zoo=true
  bench=benchmarks/zoo/command.py
fi
python="${VENV}/bin/python"
# Reading the arguments takes NumPy, which comes with the wheel.
ready() { "${python}" -c 'import numpy' 2>/dev/null; }
check_arguments() {
  if [[ -n "${zoo}" ]]; then return; fi
  "${python}" - "$@" <<<"import sys; sys.path.insert(0, 'benchmarks'); sys.argv[0] = 'bench.sh'
from bench.command import parse_arguments; parse_arguments(None)" || {
    trap - EXIT
    exit 2
  }
}
program_help "${python}" "${bench}" "$@"
if ready; then check_arguments "$@"; fi

stage "wheel in .venv" "The error above says why."
install_wheel_of_python "$(python_tag)"
if [[ -n "${zoo}" ]]; then
  install_apart zoo
else
  pip_install "$(grep '^matplotlib==' build/requirements-apart.txt)"
fi
check_arguments "$@"

if ! has_gpu; then
  export TF_MULTI_STREAM_EMULATED_GPUS="${TF_MULTI_STREAM_EMULATED_GPUS:-1}"
fi
stage "benchmark" "What failed is said above."
trap - EXIT
exec "${python}" "${bench}" "$@"

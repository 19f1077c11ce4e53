#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
# Builds wheels of other TensorFlow releases and Pythons, installs each in an
# environment of its own and tests it there. What passed is printed, and kept in
# benchmarks/results/releases.csv.
#
#   scripts/test_releases.sh [--release RELEASE ...] [--python TAG ...] [--tests all]
#   scripts/test_releases.sh --list
#
#   --release R   of TensorFlow; may be given again [all but 2.21.0, which CI tests]
#   --python TAG  such as cp312; may be given again [that of python3]
#   --tests all   the C++ and the Python tests, too: 20 minutes a wheel [the examples]
#   --list        prints the table: what ran last, and when
#
# Exit status: 0; 1 if anything failed; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "${ROOT}"
program=build/test_releases.py
arguments=("$@")
while (($#)); do
  case "$1" in
    --release | --python | --tests) needs_value "$@" && shift 2 ;;
    --release=* | --python=* | --tests=*) shift ;;
    --list)
      trap - EXIT
      exec python3 "${program}" --list
      ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages --test

stage "wheels and tests" "The error above names the release."
trap - EXIT
exec python3 "${program}" "${arguments[@]}"

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
# Builds the multi-stream wheel.
#
#   scripts/build_wheel.sh [--python TAG] [--release RELEASE] [--out FOLDER]
#
#   --python TAG   for that Python: cp310, cp311, cp312 or cp313 [that of python3]
#   --release R    from that release of TensorFlow: 2.21.0 or 2.20.0 [2.21.0]
#   --out FOLDER   gets the wheel [dist]
#
# The last line printed is the wheel's path. Exit status: 0; 1 if it fails; 2 for
# a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=""
release=()         # arguments of our programs
of_release=()      # and of Bazel
out="${ROOT}/dist"
while (($#)); do
  case "$1" in
    --python) needs_value "$@" && python="$2" && shift 2 ;;
    --python=*) python="${1#*=}" && shift ;;
    --release) needs_value "$@" && set -- "--release=$2" "${@:3}" ;;
    --release=*)
      release=("$1")
      of_release=(--repo_env="TFMS_RELEASE=${1#*=}")
      shift
      ;;
    --out) needs_value "$@" && out="$2" && shift 2 ;;
    --out=*) out="${1#*=}" && shift ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages
python="${python:-$(python_tag)}"

# Bazel does both by itself, but repeats an error in its own words.
stage "stock wheel and patches" "The error above says what is missing or wrong."
python3 "${ROOT}/build/stock_wheel.py" fetch --python "${python}" "${release[@]}"
python3 "${ROOT}/build/check_patches.py" --python "${python}" "${release[@]}"

stage "wheel for ${python}" "The first error above names the file. Correct it and run this again."
run_bazel build --curses=no --show_progress_rate_limit=15 \
  --repo_env="TFMS_PYTHON=${python}" "${of_release[@]}" //build:wheel

stage "copy to ${out}" "Choose another folder with --out."
built=("${ROOT}"/bazel-bin/build/wheel/*.whl)
mkdir -p "${out}"
install -m 644 "${built[0]}" "${out}"
echo "${out}/$(basename "${built[0]}")"

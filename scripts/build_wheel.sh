#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Builds the multi-stream wheel.
#
#   scripts/build_wheel.sh [--python TAG] [--release RELEASE] [--out FOLDER]
#   scripts/build_wheel.sh [--sysroot FOLDER]
#
#   --python TAG   for that Python: cp310, cp311, cp312 or cp313, or cp314 of
#                  2.22.0rc0 [that of python3]
#   --release R    from that release of TensorFlow: 2.22.0rc0, 2.21.0, 2.20.0,
#                  2.19.1, 2.18.1, or 2.13.1 [2.21.0]
#   --out FOLDER   gets the wheel [dist]
#   --sysroot F    with the compiler and libraries of F, which scripts/make_sysroot.sh
#                  has made: for systems as old [those of this machine]
#
# The last line printed is the wheel's path. Exit status: 0; 1 if it fails; 2 for
# a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=""
release=()         # arguments of our programs
of_release=()      # and of Bazel
out="${ROOT}/dist"
sysroot=""
compiler=()        # arguments of Bazel
while (($#)); do
  case "$1" in
    --python) needs_value "$@" && python="$2" && shift 2 ;;
    --release)
      needs_value "$@"
      release=(--release "$2")
      of_release=(--repo_env="TFMS_RELEASE=$2")
      shift 2
      ;;
    --out) needs_value "$@" && out="$2" && shift 2 ;;
    --sysroot) needs_value "$@" && sysroot="$2" && shift 2 ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done
if [[ -n "${sysroot}" ]]; then
  if ! "${sysroot}/usr/bin/g++" --version >/dev/null 2>&1; then
    wrong_argument "--sysroot '${sysroot}' has no usr/bin/g++ that runs" \
      "Make it: scripts/make_sysroot.sh FOLDER."
  fi
  sysroot="$(cd "${sysroot}" && pwd)"
  if [[ "${sysroot}" == *:* ]]; then
    wrong_argument "--sysroot '${sysroot}' has a colon in its path" "Bazel divides lists by it."
  fi
  # Bazel asks this compiler, with these options, where its headers are. Before glibc
  # 2.34 threads and dlopen were libraries of their own.
  compiler=(
    --repo_env="CC=${sysroot}/usr/bin/gcc"
    --repo_env="BAZEL_CONLYOPTS=--sysroot=${sysroot}"
    --repo_env="BAZEL_CXXOPTS=--sysroot=${sysroot}:-std=c++17"
    --repo_env="BAZEL_LINKOPTS=--sysroot=${sysroot}:-lstdc++:-lm:-lpthread:-ldl"
  )
fi

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages
python="${python:-$(python_tag)}"

# Bazel does both by itself, but repeats an error in its own words.
stage "stock wheel and patches" "The error above says what is missing or wrong."
python3 "${ROOT}/build/stock_wheel.py" fetch --python "${python}" "${release[@]}"
python3 "${ROOT}/build/check_patches.py" --python "${python}" "${release[@]}"

stage "wheel for ${python}" "The first error above names the file. Correct it and run this again."
run_bazel build --curses=no --show_progress_rate_limit=15 \
  --repo_env="TFMS_PYTHON=${python}" "${of_release[@]}" "${compiler[@]}" //build:wheel

stage "copy to ${out}" "Choose another folder with --out."
built=("${ROOT}"/bazel-bin/build/wheel/*.whl)
mkdir -p "${out}"
install -m 644 "${built[0]}" "${out}"
echo "${out}/$(basename "${built[0]}")"

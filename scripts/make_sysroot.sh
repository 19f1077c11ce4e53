#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Makes a folder with the compiler and libraries of an old Debian. A wheel that is
# compiled with them runs on systems as old: scripts/build_wheel.sh --sysroot FOLDER.
#
#   scripts/make_sysroot.sh [--suite NAME] [--mirror URL] FOLDER
#
#   --suite NAME   of Debian [bullseye]
#   --mirror URL   that has it [the one that mmdebstrap takes]
#   FOLDER         that is not there yet
#
# The packages are verified by Debian's signatures and unpacked; nothing of them
# is run. Exit status: 0; 1 if it fails; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

suite=bullseye
mirror=()
folder=""
while (($#)); do
  case "$1" in
    --suite) needs_value "$@" && suite="$2" && shift 2 ;;
    --mirror) needs_value "$@" && mirror=("$2") && shift 2 ;;
    -h | --help) show_help ;;
    -*) wrong_argument "unknown argument '$1'" ;;
    *)
      if [[ -n "${folder}" ]]; then wrong_argument "a second folder '$1'" "Give one."; fi
      folder="$1"
      shift
      ;;
  esac
done
if [[ -z "${folder}" ]]; then wrong_argument "no folder" "Name one that is not there yet."; fi
if [[ -e "${folder}" ]]; then fail "${folder} is there already" "Remove it, or name another."; fi
if ! command -v mmdebstrap >/dev/null; then
  fail "mmdebstrap is not on the PATH" "Install it: apt-get install mmdebstrap."
fi

stage "packages of ${suite}" "The error above is mmdebstrap's. Remove ${folder} before the next try."
quietly mmdebstrap --variant=extract --include=g++ "${suite}" "${folder}" "${mirror[@]}"

stage "links" "The error above is ln's."
# The compiler would call them, and they do not find their own libraries: this system's do.
rm -f "${folder}"/usr/bin/{as,ld,ld.*}
# Those to absolute paths would lead out of the folder, to the libraries of this system.
find "${folder}" -type l -lname '/*' -print0 |
  while IFS= read -r -d '' link; do
    ln -srfn "${folder}$(readlink "${link}")" "${link}"
  done
"${folder}/usr/bin/g++" --version | sed -n 1p

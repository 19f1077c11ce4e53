#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Makes a release: wheels, the model server's front's among them, checked by twine and
# auditwheel, with a page of links for pip, bills of materials, checksums and release notes.
#
#   scripts/release.sh [--python TAG ...] [--release RELEASE ...] [--out FOLDER]
#                      [--sysroot FOLDER] [--since REVISION]
#
#   --python TAG      for that Python; may be given again [each that TensorFlow has]
#   --release R       of TensorFlow; may be given again; `all` for each that wheels can be
#                     built from [2.21.0]
#   --out FOLDER      gets all of it, and is new or empty [dist/release]
#   --sysroot FOLDER  of scripts/make_sysroot.sh, so that TensorFlow's wheels run on
#                     systems as old as stock's do [this system]
#   --since REVISION  where the release notes begin [the last tag]
#
# The wheels have the same bytes wherever they are made with the same compiler.
# Exit status: 0; 1 if it fails; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

pythons=()
releases=()
out="${ROOT}/dist/release"
since=""
build=()
while (($#)); do
  case "$1" in
    --python) needs_value "$@" && pythons+=("$2") && shift 2 ;;
    --release) needs_value "$@" && releases+=("$2") && shift 2 ;;
    --out) needs_value "$@" && out="$2" && shift 2 ;;
    --sysroot) needs_value "$@" && build+=("--sysroot=$2") && shift 2 ;;
    --since) needs_value "$@" && since="$2" && shift 2 ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done
mapfile -t all < <(python3 "${ROOT}/build/releases.py" --all)
if ((${#releases[@]} == 0)); then releases=("${all[0]}"); fi
if [[ "${releases[*]}" == all ]]; then releases=("${all[@]}"); fi
for release in "${releases[@]}"; do
  [[ " ${all[*]} " == *" ${release} "* ]] || wrong_argument "no release '${release}': ${all[*]}"
done
if [[ -n "$(ls -A "${out}" 2>/dev/null)" ]]; then
  fail "${out} is not empty" "Remove it, or name another folder with --out."
fi
if [[ -n "$(git -C "${ROOT}" status --porcelain)" ]]; then
  fail "there are changes that are not committed" "Commit or remove them: git status."
fi

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages --test
make_venv "$(python_tag)"
pip_install -r "${ROOT}/build/requirements-dev.txt"

wheels=()
for release in "${releases[@]}"; do
  mapfile -t tags < <(python3 "${ROOT}/build/releases.py" "${release}")
  for tag in "${tags[@]}"; do
    if ((${#pythons[@]})) && [[ " ${pythons[*]} " != *" ${tag} "* ]]; then continue; fi
    stage "wheel of ${release} for ${tag}" "The error above says why."
    built="$(last_line "${ROOT}/scripts/build_wheel.sh" --python "${tag}" --release "${release}" \
      --out "${out}" "${build[@]}")"
    wheels+=("${built}")
  done
done

if ((${#wheels[@]} == 0)); then
  fail "none of ${releases[*]} has wheels for ${pythons[*]}" "Name another Python or release."
fi
"${ROOT}/scripts/build_front.sh"
cp "${ROOT}"/dist/tensorflow_multistream_front-*.whl "${out}"
wheels+=("${out}"/tensorflow_multistream_front-*.whl)
stage "checks, page, bill of materials, checksums, notes" "The error above names the wheel."
"${VENV}/bin/python" "${ROOT}/build/release.py" --out "${out}" --since "${since}" "${wheels[@]}"

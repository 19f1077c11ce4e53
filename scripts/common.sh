#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Shell functions for the scripts beside this file, which source it.

set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="${ROOT}/.venv"
STAGE=""
HINT=""
# pip compiles nothing in .venv (pip_install), so that the first import has to: to import TensorFlow
# from source takes ten seconds of every process, and four with its bytecode.
unset PYTHONDONTWRITEBYTECODE
# Bazel, and scripts that change folders, would take a relative path for another folder's.
if [[ -n "${TFMS_CACHE:-}" && "${TFMS_CACHE}" != /* ]]; then
  export TFMS_CACHE="${PWD}/${TFMS_CACHE}"
fi
# Everything that `quietly` and `readable` have run has printed.
LOG="${ROOT}/dist/$(basename "$0" .sh).log"

# --option=value becomes --option value in the arguments of the script, up to --.
arguments=()
while (($#)); do
  case "$1" in
    --) arguments+=("$@") && break ;;
    --*=*) arguments+=("${1%%=*}" "${1#*=}") && shift ;;
    *) arguments+=("$1") && shift ;;
  esac
done
set -- "${arguments[@]}"
unset arguments

# stage NAME HINT: announces a stage. If it fails, HINT says what to do.
stage() {
  STAGE="$1"
  HINT="$2"
  printf '\n[%3d s] %s\n' "${SECONDS}" "${STAGE}"
}

# fail MESSAGE [WHAT TO DO]: ends the script.
fail() {
  trap - EXIT
  printf 'error: %s\n' "$1" >&2
  if (($# > 1)); then printf '%s\n' "${@:2}" >&2; fi
  exit 1
}

# program_help PYTHON PROGRAM ARGUMENT...: where --help is among the arguments that a script passes to
# a program, shows the script's help and the program's, and ends the script.
program_help() {
  if [[ " ${*:3} " != *" -h "* && " ${*:3} " != *" --help "* ]]; then return; fi
  trap - EXIT
  print_help
  "$1" "$2" --help 2>/dev/null | sed -n '/^options:/,$p' || true  # without the wheel
  exit
}

# print_help: the script's first comment; its lines of usage come first.
print_help() {
  local text
  text="$(sed -n '/^# SPDX/,/^$/{/^# SPDX/d;s/^# \{0,1\}//p}' "$0")"
  sed -n '/^  scripts\//p' <<<"${text}" | sed '1s/^ */usage: /;2,$s/^ */       /'
  echo
  sed '/^  scripts\//d' <<<"${text}" | cat -s
}

# show_help: for --help; ends the script.
show_help() {
  trap - EXIT
  print_help
  exit 0
}

# wrong_argument MESSAGE [WHAT TO DO]: ends the script with status 2.
wrong_argument() {
  trap - EXIT
  printf 'error: %s\n' "$1" >&2
  printf '%s\n' "${@:2}" "$(basename "$0") --help lists the arguments." >&2
  exit 2
}

# no_arguments ARGUMENT...: for scripts that take none but --help.
no_arguments() {
  case "${1:-}" in
    "") ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" "This script takes none." ;;
  esac
}

# needs_value OPTION [VALUE ...]: ends the script if there is no value.
needs_value() {
  if (($# < 2)); then wrong_argument "$1 needs a value"; fi
}

# one_of OPTION VALUE ALLOWED...: ends the script if the value is none of these.
one_of() {
  local allowed
  for allowed in "${@:3}"; do
    if [[ "$2" == "${allowed}" ]]; then return; fi
  done
  allowed="$(printf ', %s' "${@:3}")"
  wrong_argument "$1 '$2'" "Allowed: ${allowed#, }."
}

report_exit() {
  local status=$?
  if ((status != 0)); then
    printf '\nerror: failed after %d s in stage "%s"\n%s\n' \
      "${SECONDS}" "${STAGE:-start}" "${HINT}" >&2
  fi
}
trap report_exit EXIT

# quietly COMMAND...: shows what it prints only if it fails.
quietly() {
  local status=0 output
  mkdir -p "$(dirname "${LOG}")"
  output="$("$@" 2>&1)" || status=$?
  printf '%s\n' "${output}" >>"${LOG}"
  if ((status)); then printf '%s\n' "${output}" >&2; fi
  return "${status}"
}

# What TensorFlow says in C++ as it starts, whatever TF_CPP_MIN_LOG_LEVEL is: lines of
# level INFO, and that libraries in its wheel register the same thing twice.
NOISE='/^WARNING: All log messages before absl::InitializeLog\(\) is called/d
/^I[0-9]{4} [0-9:.]+ +[0-9]+ [a-z0-9_]+\.cc:[0-9]+\] /d
/^[EW][0-9]{4} .* computation_placer\.cc:[0-9]+\] computation placer already registered/d
/^([EW][0-9]{4} |[0-9-]+ [0-9:.]+: E ).*\] Unable to register cu[A-Z]+ factory: .* already been registered/d'

# readable COMMAND...: shows what it prints without those lines, unless
# TF_CPP_MIN_LOG_LEVEL=0 asks for them. LOG has all of it.
readable() {
  local noise="${NOISE}"
  if [[ "${TF_CPP_MIN_LOG_LEVEL:-}" == 0 ]]; then noise=""; fi
  mkdir -p "$(dirname "${LOG}")"
  PYTHONUNBUFFERED=1 "$@" 2>&1 | tee -a "${LOG}" | sed -u -E "${noise}"
}

# last_line COMMAND...: shows on stderr what it prints, and prints the last line of it alone. `tee
# /dev/stderr` would open what stderr is: a file would be truncated, and a socket cannot be opened.
last_line() {
  "$@" | sed -u -e 'w /dev/stderr' -e '$!d'
}

# has_commands COMMAND...: whether all of them are there; `command -v` asks whether one is.
has_commands() {
  local name
  for name in "$@"; do
    if ! command -v "${name}" >/dev/null; then return 1; fi
  done
}

# missing_python: prints the Debian packages that this machine lacks to make
# environments for Python.
missing_python() {
  if ! command -v python3 >/dev/null; then echo python3; fi
  if ! python3 -m pip --version >/dev/null 2>&1; then echo python3-pip; fi
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then echo python3-venv; fi
}

# has_header PATH: whether the compiler finds it.
has_header() { [[ -e "/usr/include/$1" || -e "/usr/local/include/$1" ]]; }

# missing_grpc: prints the Debian packages that this machine lacks to build the
# model server's front.
missing_grpc() {
  if ! command -v pkg-config >/dev/null; then echo pkgconf; fi
  if ! has_header grpcpp/server.h; then echo libgrpc++-dev; fi
  if ! has_header google/protobuf/io/coded_stream.h; then echo libprotobuf-dev; fi
  if ! has_header rapidjson/reader.h; then echo rapidjson-dev; fi
  if ! has_header boost/beast.hpp; then echo libboost-dev; fi
}

# install_system_packages [--test|--front]: installs the Debian packages that this
# machine lacks; with --test also those that only the tests need, with --front
# those of the model server's front.
install_system_packages() {
  local missing
  mapfile -t missing < <(missing_python)
  if ! command -v bazel bazelisk >/dev/null; then missing+=(bazel-bootstrap); fi
  if ! command -v clang >/dev/null; then missing+=(clang); fi
  if ! command -v g++ >/dev/null; then missing+=(g++); fi
  if [[ "${1:-}" == --front ]]; then
    mapfile -t -O "${#missing[@]}" missing < <(missing_grpc)
  fi
  if [[ "${1:-}" == --test ]]; then
    if ! command -v git >/dev/null; then missing+=(git); fi
    mapfile -t -O "${#missing[@]}" missing < <(missing_grpc)
    if ! has_header gtest/gtest.h; then missing+=(libgtest-dev); fi
    if ! has_header benchmark/benchmark.h; then missing+=(libbenchmark-dev); fi
  fi
  if ((${#missing[@]} == 0)); then return; fi

  local as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  if ! has_commands apt-get "${as_root[@]}"; then
    fail "missing: ${missing[*]} (names of Debian packages)" \
      "Install them, or what your system has in their place, and try again."
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -qq -y \
    --no-install-recommends "${missing[@]}" >/dev/null
}

# bazel_command: bazel or, without it, bazelisk.
bazel_command() {
  if command -v bazel >/dev/null; then echo bazel; else echo bazelisk; fi
}

# run_bazel ARGUMENT...: Bazel, at the repository's root; its files are in TFMS_OUTPUT_BASE.
run_bazel() {
  (cd "${ROOT}" &&
    "$(bazel_command)" ${TFMS_OUTPUT_BASE:+--output_base="${TFMS_OUTPUT_BASE}"} "$@")
}

# python_tag [PYTHON]: such as cp311, of the python3 on the PATH or of another Python.
python_tag() {
  "${1:-python3}" -c 'import sys; print("cp%d%d" % sys.version_info[:2])'
}

# python_of_tag TAG: the command of that Python, such as python3.12 for cp312.
python_of_tag() {
  local name="python3.${1#cp3}"
  if [[ "$1" == "$(python_tag)" ]]; then name=python3; fi
  if ! "${name}" -c '' 2>/dev/null; then
    fail "the wheel is for ${name}, which is not on the PATH" \
      "Install ${name}, or choose another with --python."
  fi
  echo "${name}"
}

# has_venv: whether .venv is there, with pip: without it, `python -m venv` was interrupted.
has_venv() {
  "${VENV}/bin/python" -m pip --version >/dev/null 2>&1
}

# make_venv TAG: makes .venv with the Python of that tag, unless it is there.
make_venv() {
  local python
  python="$(python_of_tag "$1")"
  if [[ "$(python_tag "${VENV}/bin/python" 2>/dev/null)" == "$1" ]] && has_venv; then return; fi
  rm -rf "${VENV}"
  "${python}" -m venv "${VENV}"
}

# pip_install ARGUMENT...: in .venv; pip is heard only if it fails. Python compiles what is imported:
# to compile all that TensorFlow and its neighbours have takes longer.
pip_install() {
  quietly "${VENV}/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}

# install_apart [WHAT]: what build/requirements-WHAT.txt lists, in .venv/WHAT;
# without WHAT, it is "apart".
install_apart() {
  local what="${1:-apart}"
  local list="${ROOT}/build/requirements-${what}.txt" folder="${VENV}/${what}"
  if cmp -s "${list}" "${folder}/installed"; then return; fi
  rm -rf "${folder}"
  pip_install --no-deps --target "${folder}" -r "${list}"
  cp "${list}" "${folder}/installed"
}

# gpu_if_asked ARGUMENT...: ends the script if --gpu is among them, and this machine has none.
gpu_if_asked() {
  if [[ " $* " != *" --gpu "* ]] || has_gpu; then return; fi
  fail "--gpu, and nvidia-smi finds no GPU here" "Leave --gpu out: it then runs on an emulated GPU."
}

# has_gpu: whether this machine has one.
has_gpu() {
  { command -v nvidia-smi && nvidia-smi -L; } >/dev/null 2>&1
}

# install_wheel WHEEL: installs it in .venv, unless just that wheel is there;
# with NVIDIA's libraries if the machine has a GPU.
install_wheel() {
  local wheel="$1" extra="" hash
  if has_gpu; then
    extra="[and-cuda]"
  fi
  hash="$(sha256sum <"${wheel}")${extra}"
  if [[ "$(cat "${VENV}/installed-wheel" 2>/dev/null)" == "${hash}" ]]; then return; fi
  rm -f "${VENV}/installed-wheel"
  echo "installing $(basename "${wheel}")${extra} and what it needs"
  # pip leaves a wheel of the same version alone, whatever is in it.
  quietly "${VENV}/bin/python" -m pip uninstall --quiet --yes tensorflow
  pip_install "${wheel}${extra}"
  echo "${hash}" >"${VENV}/installed-wheel"
}

# newest_wheel TAG [FOLDER]: prints the wheel of dist/, or of FOLDER, that was built last for that
# Python from the usual release; nothing if there is none.
newest_wheel() {
  local release wheel newest=""
  release="$(python3 "${ROOT}/build/releases.py" --all | sed -n 1p)"
  for wheel in "${2:-${ROOT}/dist}/tensorflow-${release}+"*"-$1-"*.whl; do
    if [[ "${wheel}" -nt "${newest}" ]]; then newest="${wheel}"; fi
  done
  echo "${newest}"
}

# install_wheel_of_python TAG: likewise, in the environment of that Python, the
# newest wheel of dist/, which is built if it is not there.
install_wheel_of_python() {
  local wheel
  make_venv "$1"
  wheel="$(newest_wheel "$1")"
  if [[ -z "${wheel}" ]]; then
    "${ROOT}/scripts/build_wheel.sh" --python "$1"
    wheel="$(newest_wheel "$1")"
  fi
  install_wheel "${wheel}"
}

# install_wheel_for_tests WHEEL: install_wheel, with what the model server needs, which
# comes after the wheel: one of it asks for a TensorFlow.
install_wheel_for_tests() {
  install_wheel "$1"
  pip_install -r "${ROOT}/examples/serving/requirements.txt" \
    -r "${ROOT}/examples/serving/requirements-tracing.txt"
}

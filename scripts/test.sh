#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Runs every check and test: what build/static_checks.py lists (style, types,
# patches, the documentation's site), C++ tests, Python tests with the wheel
# installed in .venv; then a quarter of a minute of the soak.
#
#   scripts/test.sh [--python TAG]
#   scripts/test.sh --changed [BASE]
#   scripts/test.sh --config asan|ubsan|tsan
#   scripts/test.sh --search [TIMES]
#
#   --python TAG      for that Python, such as cp312 [that of python3]
#   --changed [BASE]  only what the files that differ from BASE can break, in a
#                     minute or two; docs/contributing.md says what that leaves
#                     out [where this branch left main]
#   --config NAME     only the C++ tests, under a sanitizer
#   --search [TIMES]  only the search of threads' interleavings, for TIMES as long
#                     as all tests search [60]
#
# Exit status: 0; 1 if anything failed; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=""
changed=""
while (($#)); do
  case "$1" in
    --python) needs_value "$@" && python="$2" && shift 2 ;;
    --changed)
      changed="$(git -C "${ROOT}" merge-base HEAD "${2:-main}" 2>/dev/null)" ||
        wrong_argument "--changed: '${2:-main}' is no commit" "Name one: --changed HEAD~1."
      shift $(($# > 1 ? 2 : 1))
      ;;
    --config)
      one_of --config "${2:-}" asan ubsan tsan
      stage "C++ tests, $2" "Run one test by itself: bazel test --config=$2 //package:name."
      run_bazel test --curses=no --show_progress_rate_limit=15 --config="$2" \
        --repo_env="TFMS_PYTHON=${python:-$(python_tag)}" //...
      stage "everything passed" ""
      exit
      ;;
    --search)
      times="${2:-60}"
      [[ "${times}" =~ ^[1-9][0-9]*$ ]] ||
        wrong_argument "--search '${times}'" "How many times as long: a whole number, such as 60."
      stage "interleavings of threads, searched" \
        "The test's log has the interleaving: docs/sanitizers.md says how to run it again."
      run_bazel test --curses=no --show_progress_rate_limit=15 --config=search \
        --repo_env="TFMS_PYTHON=${python:-$(python_tag)}" --test_env="TFMS_SEARCH_TIMES=${times}" \
        --test_timeout=$((120 * times)) --cache_test_results=no --test_output=all //...
      stage "nothing was found" ""
      exit
      ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done
cd "${ROOT}"

stage "tools" "Install the packages named above by hand, then try again."
if [[ -n "$(missing_python)" ]]; then install_system_packages --test; fi
python="${python:-$(python_tag)}"

# prepare_bazel: Debian's packages, the stock wheel and what Bazel unpacks of it,
# while PyPI's packages come. If the wheel fails, the stage that needs it says why.
prepare_bazel() {
  local fetch=""
  if [[ -z "${changed}" ]]; then
    python3 build/stock_wheel.py fetch --python "${python}" >/dev/null 2>&1 &
    fetch="$!"
  fi
  install_system_packages --test
  if [[ -n "${fetch}" ]]; then
    wait "${fetch}" || true
    run_bazel build --nobuild --curses=no --repo_env="TFMS_PYTHON=${python}" //... \
      >/dev/null 2>&1 || true
  fi
}
prepare_bazel &
bazel="$!"
make_venv "${python}"
pip_install -r build/requirements-dev.txt
{ install_apart && install_apart zoo; } &  # only Python tests need it
apart="$!"
wait "${bazel}"

if [[ -n "${changed}" ]]; then
  wait "${apart}"
  scripts/build_front.sh
  stage "checks and tests of what changed" "The message above says what to do."
  "${VENV}/bin/python" build/changed_tests.py --base "${changed}" --python "${python}" \
    --bazel "$(bazel_command)"
  stage "what changed passed" ""
  exit
fi

stage "style, types, patches, site of the documentation" "The message above says what to do."
"${VENV}/bin/python" build/static_checks.py --python "${python}"

stage "C++ tests" "Run one test by itself: bazel test //package:name."
run_bazel test --curses=no --show_progress_rate_limit=15 \
  --repo_env="TFMS_PYTHON=${python}" //... \
  //tensorflow/core/common_runtime/multistream/testing:part_benchmarks

# The build refuses both ways upward, a dependency on a room above and an include without one, and
# the process's options where they are passed.
stage "rooms of the runtime" "Rooms see those below them only: rooms.bzl."
runtime=tensorflow/core/common_runtime/multistream
for refused in base:refused_{dependency,include} step:refused_options; do
  if said="$(run_bazel build --repo_env="TFMS_PYTHON=${python}" "//${runtime}/${refused}" 2>&1)"; then
    fail "${refused} builds, and must not: a room sees what it must not"
  elif ! grep -qE 'is not visible from|undeclared inclusion|stream_group.h: No such file' \
    <<<"${said}"; then
    fail "${refused} fails, but not because of the rooms:" "${said}"
  fi
done

stage "wheel" "The error above says why."
rm -f dist/tensorflow-*-"${python}"-*.whl
scripts/build_wheel.sh --python "${python}"
wheel=("${ROOT}"/dist/tensorflow-*-"${python}"-*.whl)
install_wheel_for_tests "${wheel[0]}"

scripts/build_front.sh

# Its libraries take the place of those of the wheel.
stage "interleavings of threads, searched" \
  "The test's log has the interleaving: docs/sanitizers.md says how to run it again."
run_bazel test --curses=no --show_progress_rate_limit=15 --config=search \
  --repo_env="TFMS_PYTHON=${python}" //...

stage "Python tests" "Run one file by itself: .venv/bin/python -m pytest FILE."
wait "${apart}"
# As many at a time as there are cores: a test starts processes of its own, which share nothing.
TFMS_WHEEL="${wheel[0]}" "${VENV}/bin/python" -m pytest -n "$(nproc)" --dist worksteal \
  --durations=20 --durations-min=8

stage "soak: all kinds of work side by side on an emulated GPU, every result verified" \
  "The table above says what failed; run it again with the seed above: scripts/soak.sh --seed SEED."
"${VENV}/bin/python" benchmarks/soak/soak.py --minutes 0.25

stage "everything passed" ""

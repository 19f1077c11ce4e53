#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
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

TABLE="${ROOT}/benchmarks/results/releases.csv"
# The one outside examples/serving that starts the model server.
SERVER_TEST=benchmarks/model_server_load_test.py::test_a_server_with_a_front_answers_right
releases=()
pythons=()
what=(examples)
while (($#)); do
  case "$1" in
    --release) needs_value "$@" && releases+=("$2") && shift 2 ;;
    --python) needs_value "$@" && pythons+=("$2") && shift 2 ;;
    --tests)
      one_of --tests "${2:-}" examples all
      if [[ "$2" == all ]]; then what+=("C++ tests" "Python tests"); fi
      shift 2
      ;;
    --list)
      trap - EXIT
      exec column -s , -t "${TABLE}"
      ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" ;;
  esac
done
cd "${ROOT}"

# run WHAT RELEASE TAG: the examples or tests, with the wheel in ${environment}.
run() {
  local python="${environment}/bin/python" left_out=()
  case "$1" in
    examples) "${python}" scripts/run_examples.py ;;
    "C++ tests")
      run_bazel test --keep_going --curses=no --show_progress_rate_limit=30 \
        --repo_env="TFMS_PYTHON=$3" --repo_env="TFMS_RELEASE=$2" //...
      ;;
    "Python tests") # of the runtime; what the model server needs asks for the usual release
      if [[ "$2" != "${base}" ]]; then
        left_out=(--ignore=examples/serving "--deselect=${SERVER_TEST}")
      fi
      "${python}" -m pytest -n "$(nproc)" --dist worksteal "${left_out[@]}" \
        tensorflow examples benchmarks
      ;;
  esac
}

# number PATTERN: the number before these words in the last line that has any; 0 without it.
number() {
  grep -oE "[0-9]+ ($1)" <<<"${last}" | sed -n '1s/ .*//p' | grep . || echo 0
}

# record WHAT RELEASE TAG LOG: a row of the table, in place of the last one of these. Fails if a
# test did, or if none ran to its end: that makes no row.
record() {
  local last passed failed skipped gpu=emulated
  if has_gpu; then gpu="$(nvidia-smi --query-gpu=name --format=csv,noheader | sed -n 1p)"; fi
  last="$(grep -E '^[0-9]+ of [0-9]+ examples passed|^Executed [0-9]+ out of|(passed|failed).* in [0-9.]+s' "$4" | tail -n 1)"
  passed="$(number 'of [0-9]+ examples passed|tests? pass|passed')"
  case "$1" in
    examples) failed=$(($(number 'examples passed') - passed)) ;;
    "C++ tests") failed=$(($(number 'tests?:') - passed)) ;;
    *) failed=$(($(number failed) + $(number errors?))) ;;
  esac
  skipped="$(number skipped)"
  if ((passed + failed == 0)); then return 1; fi
  {
    sed -n 1p "${TABLE}"
    {
      sed 1d "${TABLE}" | grep -v "^$2,$3,$1,.*,${gpu}," || true
      echo "$2,$3,$1,${passed},${failed},${skipped},${gpu},$(git rev-parse --short HEAD),$(date -u +%F)"
    } | sort -t , -k 1,1Vr -k 2
  } >"${TABLE}.new"
  mv "${TABLE}.new" "${TABLE}"
  ((failed == 0))
}

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages --test
base="$(python3 -c 'import sys; sys.path.insert(0, "build"); import releases; print(releases.BASE)')"
cache="$(python3 -c 'import sys; sys.path.insert(0, "build"); import stock_wheel
print(stock_wheel.cache_folder())')"
if ((${#releases[@]} == 0)); then
  mapfile -t releases < <(python3 build/releases.py --all | tail -n +2)
fi
if ((${#pythons[@]} == 0)); then pythons=("$(python_tag)"); fi

failed=()
for release in "${releases[@]}"; do
  for tag in "${pythons[@]}"; do
    folder="${ROOT}/dist/releases/${release}-${tag}"
    environment="${folder}/environment"
    # So that the usual build stays as it is.
    export TFMS_OUTPUT_BASE="${cache}/bazel/${release}-${tag}"
    stage "${release} ${tag}: wheel" "The error above says why."
    rm -rf "${environment}" "${folder}"/*.whl
    if ! scripts/build_wheel.sh --release "${release}" --python "${tag}" --out "${folder}"; then
      failed+=("${release} ${tag}: wheel")
      continue
    fi
    "$(python_of_tag "${tag}")" -m venv "${environment}"
    needed=()
    if ((${#what[@]} > 1)); then
      needed=(-r build/requirements-dev.txt -r build/requirements-apart.txt)
      if [[ "${release}" == "${base}" ]]; then
        needed+=(-r examples/serving/requirements.txt -r examples/serving/requirements-tracing.txt)
      fi
    fi
    extra=""
    if has_gpu; then extra="[and-cuda]"; fi
    wheel=("${folder}"/*.whl)
    "${environment}/bin/python" -m pip install --quiet --disable-pip-version-check \
      "${wheel[0]}${extra}" "${needed[@]}"
    if ((${#what[@]} > 1)); then VENV="${environment}" install_apart zoo; fi
    for tests in "${what[@]}"; do
      stage "${release} ${tag}: ${tests}" "The lines above say what failed."
      log="${folder}/${tests}.log"
      run "${tests}" "${release}" "${tag}" 2>&1 | tee "${log}" || true
      record "${tests}" "${release}" "${tag}" "${log}" || failed+=("${release} ${tag}: ${tests}")
    done
    run_bazel shutdown
  done
done

stage "what passed" ""
column -s , -t "${TABLE}"
if ((${#failed[@]})); then fail "failed:" "${failed[@]}"; fi

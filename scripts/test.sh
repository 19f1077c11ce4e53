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
# Runs every check and test: ruff, mypy, clang-format, patches, links, C++ tests,
# and Python tests with the wheel installed in .venv; then two minutes of the
# soak.
#
#   scripts/test.sh [--python cp312]
#   scripts/test.sh --config asan|ubsan|tsan    only the C++ tests, under a
#                                               sanitizer

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

python=""
case "${1:-}" in
  "") ;;
  --python) python="${2:-}" ;;
  --python=*) python="${1#*=}" ;;
  --config)
    case "${2:-}" in asan | ubsan | tsan) ;; *)
      fail "--config '${2:-}'" "Allowed: asan, ubsan, tsan." ;;
    esac
    stage "C++ tests, $2" "Run one test by itself: bazel test --config=$2 //package:name."
    run_bazel test --curses=no --show_progress_rate_limit=15 --config="$2" \
      --repo_env="TFMS_PYTHON=$(python_tag)" //...
    stage "everything passed" ""
    exit
    ;;
  *) fail "unknown argument '$1'" "Allowed: --python TAG, such as cp312." ;;
esac
cd "${ROOT}"

stage "tools" "Install the packages named above by hand, then try again."
install_system_packages --test
python="${python:-$(python_tag)}"
make_venv "${python}"
pip_install -r build/requirements-dev.txt

stage "ruff" "Correct the lines named above; .venv/bin/ruff check --fix does some by itself."
"${VENV}/bin/ruff" check

stage "mypy" "Correct the lines named above."
"${VENV}/bin/mypy" build examples benchmarks tensorflow

stage "clang-format" "Run .venv/bin/clang-format -i on the files named above."
"${VENV}/bin/clang-format" --dry-run -Werror $(find tensorflow -name '*.h' -o -name '*.cc')

stage "patches" "The error above names patch, file and hunk."
python3 build/check_patches.py --python "${python}"

stage "links" "The error above names page and line: correct the link, or say there what is missing."
python3 build/check_links.py

stage "C++ tests" "Run one test by itself: bazel test //package:name."
run_bazel test --curses=no --show_progress_rate_limit=15 \
  --repo_env="TFMS_PYTHON=${python}" //...

stage "rooms of the runtime" "The error above names the room."
python3 build/check_rooms.py --bazel "$(bazel_command)" --option="--repo_env=TFMS_PYTHON=${python}"

stage "wheel" "The error above says why."
rm -f dist/tensorflow-*-"${python}"-*.whl
scripts/build_wheel.sh --python "${python}"
wheel=("${ROOT}"/dist/tensorflow-*-"${python}"-*.whl)
install_wheel "${wheel[0]}"

stage "Python tests" "Run one file by itself: .venv/bin/python -m pytest FILE."
TFMS_WHEEL="${wheel[0]}" "${VENV}/bin/python" -m pytest

stage "soak: all kinds of work side by side on an emulated GPU, every result verified" \
  "The table above says what failed; run it again with the seed above: scripts/soak.sh --seed SEED."
"${VENV}/bin/python" benchmarks/soak/soak.py --minutes 2

stage "everything passed" ""

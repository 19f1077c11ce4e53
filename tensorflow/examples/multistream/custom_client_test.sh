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
# custom_client serves on all groups, what one thread gets, and bad arguments are named.
set -euo pipefail
program=tensorflow/examples/multistream/custom_client

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

"${program}" tensorflow/examples/multistream/data/model_test.pbtxt > out.txt
cat out.txt
grep -qx "0 of 400 answers differ from those of one thread" out.txt || fail "the answers"
for group in 0 1 2 3; do
  grep -qx "group ${group}: [1-9][0-9]* steps" out.txt || fail "group ${group} is not used"
done
steps="$(sed -n 's/^group [0-9]: \([0-9]*\) steps$/+ \1/p' out.txt)"
# shellcheck disable=SC2086
((0 ${steps//$'\n'/ } == 800)) || fail "not all calls were steps of a group"

status=0
"${program}" 2> errors.txt || status=$?
[[ ${status} -eq 2 ]] || fail "status ${status} without a model"
grep -q "usage: .*custom_client MODEL.pbtxt" errors.txt || fail "$(cat errors.txt)"
exit 0

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
# Both trainings of multistream_training agree, and bad arguments are named.
set -euo pipefail
program=tensorflow/examples/multistream/multistream_training

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

for reduce in true false; do
  TF_REDUCE_STREAM_WAIT=${reduce} "${program}" --steps=40 --layers=3 --width=16 > out.txt
  cat out.txt
  grep -q "the same losses in all 50 steps" out.txt || fail "the losses, reduce=${reduce}"
  grep -q "times mean nothing" out.txt || fail "times of an emulated GPU, reduce=${reduce}"
  grep -q "[0-9]x)" out.txt && fail "a ratio of times of an emulated GPU, reduce=${reduce}"
  grep -q "sanitizer reports: 0" out.txt || fail "the sanitizer reports, reduce=${reduce}"
  for group in 1 2 3; do
    grep "group ${group}: peak" out.txt | grep -qv "peak 0.0" || fail "group ${group} is not used"
  done
done

for arguments in "--layers=0" "--layers=x" "--depth=2" "--steps=2 --blocks=3"; do
  status=0
  # shellcheck disable=SC2086
  "${program}" ${arguments} 2> errors.txt || status=$?
  [[ ${status} -eq 2 ]] || fail "status ${status} of ${arguments}"
  grep -q -- "--" errors.txt || fail "the message for ${arguments}: $(cat errors.txt)"
done

TF_NODE_LEVEL_MULTISTREAM='' "${program}" --steps=10 --layers=2 > out.txt
grep -q "There is one stream.*TF_NODE_LEVEL_MULTISTREAM" out.txt || fail "$(cat out.txt)"
grep -q "stream groups: *loss" out.txt && fail "it trained twice without node level"
exit 0

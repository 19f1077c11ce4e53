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
"""changing_weights.py finds no wrong result, and would find one."""

from __future__ import annotations

import re
import sys

import pytest
from emulated_process import run_captured

BENCHMARK = """
import changing_weights, sys
if {spoiled}:
    spoil = changing_weights.expected_of
    changing_weights.expected_of = lambda options: spoil(options)[:, ::-1]
options = ["--threads", "3", "--seconds", "1", "--calls", "100", "--change-ms", "20"]
sys.exit(changing_weights.main(options))
"""


def test_replays_while_weights_change_are_right() -> None:
    done = run_captured(BENCHMARK.format(spoiled=False))
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = r"(\d+) results compared, 0 wrong, .* changed (\d+) times[^$]*steps_replayed (\d+)"
    found = re.search(numbers, done.stdout)
    assert found, done.stdout
    compared, changed, replayed = map(int, found.groups())
    assert changed > 10
    # Variables are put back, so that nearly all steps are replayed.
    assert replayed > compared / 2 >= 150


def test_a_wrong_result_is_found() -> None:
    done = run_captured(BENCHMARK.format(spoiled=True))
    assert done.returncode == 1, done.stderr
    assert "wrong: input" in done.stdout


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

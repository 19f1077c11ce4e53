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
"""batches_of_any_size.py finds no wrong result, and would find one."""

from __future__ import annotations

import re
import subprocess
import sys

from emulated_process import run_captured

BENCHMARK = """
import sys
import batches_of_any_size
if {spoiled}:
    inputs = batches_of_any_size.FrozenModel.inputs
    def changing(self, *arguments):
        (rows,) = inputs(self, *arguments)
        batches_of_any_size.run_clients = spoil(rows, batches_of_any_size.run_clients)
        return [rows]
    def spoil(rows, run_clients):
        def run(*arguments):
            rows[0] = 1 - rows[0].clip(0, 1)
            return run_clients(*arguments)
        return run
    batches_of_any_size.FrozenModel.inputs = changing
options = ["--threads", "2", "--warm", "0.1", "--seconds", "0.5", "--most", "6"]
sys.exit(batches_of_any_size.main(options))
"""


def benchmark(spoiled: bool) -> subprocess.CompletedProcess[str]:
    """Runs it with recordings for 3 and 8 rows."""
    done: subprocess.CompletedProcess[str] = run_captured(
        BENCHMARK.format(spoiled=spoiled), TF_MULTI_STREAM_CAPTURE_BATCHES="3,8"
    )
    return done


def test_batches_are_padded_and_right() -> None:
    done = benchmark(spoiled=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(
        r"(\d+) results compared, 0 wrong; (\d+) recordings .* (\d+) of \d+ steps", done.stdout
    )
    assert found, done.stdout
    compared, recordings, replayed = map(int, found.groups())
    assert compared > 20
    assert recordings <= 4  # two in each group
    assert replayed > 20


def test_a_wrong_result_is_found() -> None:
    done = benchmark(spoiled=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r" [1-9]\d* wrong;", done.stdout), done.stdout


if __name__ == "__main__":
    import pytest

    sys.exit(pytest.main([__file__]))

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
"""Tests of policies_in_turn.py, on an emulated GPU, in sizes that take moments."""

from __future__ import annotations

import benchmark_policies_test as base
import numpy as np
import policies_in_turn
import pytest


def test_setups_take_turns_and_give_the_same_bits() -> None:
    """A row for each setup; one stream waits for nothing, marks use the groups."""
    arguments = ["--models", "dlrm", "--modes", "inference"]
    done = base.run(["policies_in_turn.py", *base.TINY, *arguments])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert rows[0] == ["model", "mode", "setup", "ms", "ratio", "waits", "groups", "same bits"]
    found = {row[2]: row for row in rows[2:]}
    assert tuple(found) == policies_in_turn.SETUPS
    assert all(row[:2] == ["dlrm", "inference"] and row[-1] == "yes" for row in found.values())
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in found.values())
    for setup in ("one_stream", "one_stream_again"):
        assert found[setup][5:7] == ["0.0", "1"]
    assert float(found["hand_marks"][5]) > 0
    assert found["hand_marks"][6] == "4"


def test_other_bits_are_seen() -> None:
    """By comparing what each step returned, in the order of its own steps."""
    one, same, other = (
        policies_in_turn.Timed("", iter(np.array(results)).__next__)
        for results in ([1.0, 2.0], [1.0, 2.0], [1.0, -2.0])
    )
    for timed in (one, other, same, other, same, one):
        assert timed.run() >= 0
    assert one.results == same.results
    assert one.results != other.results


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert policies_in_turn.main(["--models", "dlrm"]) == 1
    assert "TF_MULTI_STREAM_EMULATED_GPUS" in capsys.readouterr().err

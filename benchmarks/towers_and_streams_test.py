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
"""Tests of towers_and_streams.py: small models on emulated GPUs, with the stream sanitizer."""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf
import towers_and_streams
from emulated_process import run_program
from towers_and_streams import Places, TowersComparison, find_places
from training_comparison import WARM_UP, Side

NAME = "towers_and_streams.py"
SMALL = ["--layers", "2", "--width", "8", "--batch", "4", "--steps", "17"]


@pytest.mark.parametrize(
    ("gpus", "arguments", "header", "one", "scoped"),
    [
        (1, ["--branches", "3"], "1 tower of 3 branches of 2 layers", [0], [0, 1, 2]),
        (3, ["--towers", "2", "--groups", "2"], "2 towers of 4", [0, 0], [0, 1, 0, 1]),
    ],
)
def test_branches_on_groups_train_the_same_bits(
    gpus: int,
    arguments: list[str],
    header: str,
    one: list[int],
    scoped: list[int],
    tmp_path: pathlib.Path,
) -> None:
    """On one GPU, and on some of several; without scopes each GPU has one stream."""
    path = tmp_path / "figures.json"
    done = run_program(
        NAME,
        [*arguments, *SMALL, "--json", str(path)],
        TF_MULTI_STREAM_EMULATED_GPUS=str(gpus),
        TF_GPU_STREAM_GROUP_COUNT="3",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(header), lines
    assert "largest difference of the losses: 0" in lines
    assert "weights at the end: the same bits" in lines
    assert f"GPU 0: groups {sorted(set(scoped))} used" in lines
    assert "sanitizer reports: 0" in lines
    assert "have no effect" not in done.stderr
    figures = json.loads(path.read_text())
    sides = figures["one_stream"], figures["scopes"]
    assert [side["groups"] for side in sides] == [one, scoped]
    assert sides[0]["losses"] == sides[1]["losses"]
    assert len(set(sides[0]["losses"])) == 17
    assert sides[0]["losses"][-1] < sides[0]["losses"][0]
    assert all(len(side["seconds"]) == 17 - WARM_UP for side in sides)
    assert figures["same_weights"]
    assert figures["places"] == {"towers": len(one), "groups": len(scoped) // len(one)}


def test_missing_gpus_are_named() -> None:
    done = run_program(NAME, ["--towers", "2", *SMALL])
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "towers_and_streams: --towers 2: each tower needs a GPU of its own, and TensorFlow finds 1."
        " Ask for 1 or less, or set TF_MULTI_STREAM_EMULATED_GPUS=2 for emulated ones"
    )


def test_places_are_what_all_gpus_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that one of the GPUs lacks are named."""
    counts = [4, 2, 3]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: counts)
    monkeypatch.setattr(tf.cuda, "stream_group_count", lambda gpu: counts[gpu])
    assert find_places(None, None) == Places(3, 2)
    assert find_places(1, None) == Places(1, 4)
    assert find_places(2, 1) == Places(2, 1)
    assert find_places(1, 4) == Places(1, 4)
    with pytest.raises(
        ValueError, match=r"^--groups 3: GPU 1 has 2 stream groups. Ask for 2 or le"
    ):
        find_places(None, 3)
    with pytest.raises(ValueError, match=r"or set TF_GPU_STREAM_GROUP_COUNT=5$"):
        find_places(1, 5)
    with pytest.raises(ValueError, match=r"^--towers 17: .* finds 3. Ask for 3 or less$"):
        find_places(17, None)


def test_weights_of_towers_are_compared() -> None:
    agree = towers_and_streams.towers_agree
    a, b = np.array([1.0, 2.0]), np.array([3.0])
    assert agree([a, b], 1)
    assert agree([a, b, a.copy(), b.copy()], 2)
    assert not agree([a, b, a, b + 1e-9], 2)
    assert not agree([a, b, b, a], 2)


def test_losses_that_differ_are_a_failure() -> None:
    one, scoped = (Side([1.0, loss], [0.002], [0], []) for loss in (0.5, 0.25))
    comparison = TowersComparison(one, scoped, [1], 0)
    assert "in step 1 they are 0.5 on one stream and 0.25" in comparison.failure(0)
    assert "largest difference of the losses: 0.25" in str(comparison)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--towers", "0"], "argument --towers: '0' is not a whole number from 1 to 1024"),
        (["--groups", "65"], "argument --groups: '65' is not a whole number from 1 to 64"),
        (["--branches", "x"], "argument --branches: 'x' is not a whole number"),
        (["--steps", "10"], "argument --steps: '10' is not a whole number from 11 to"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        towers_and_streams.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

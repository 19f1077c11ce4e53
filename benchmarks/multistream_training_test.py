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
"""Tests of multistream_training.py: small models on an emulated GPU, with the stream sanitizer."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import multistream_training
import numpy as np
import pytest
from emulated_process import GROUPS, run_program
from training_comparison import WARM_UP, Comparison, Side

SMALL = ["--branches", "5", "--layers", "2", "--width", "8", "--batch", "4", "--steps", "17"]


def check_figures(figures: dict[str, Any], steps: int) -> None:
    """Checks that two trainings were the same, and which groups they used."""
    one, scoped = figures["one_stream"], figures["scopes"]
    assert len(one["losses"]) == steps
    assert one["losses"] == scoped["losses"]
    assert len(set(one["losses"])) > 1
    assert len(one["seconds"]) == len(scoped["seconds"]) == steps - WARM_UP
    assert figures["largest_difference"] == 0
    assert figures["same_weights"]
    assert figures["ratio"] == pytest.approx(one["median_ms"] / scoped["median_ms"])
    assert one["groups"] == [0]
    assert scoped["groups"] == list(range(GROUPS))
    assert len(figures["peak_bytes_in_use"]) == GROUPS
    assert all(peak > 0 for peak in figures["peak_bytes_in_use"])


@pytest.mark.parametrize(
    ("mode", "optimizer"), [("session", "adam"), ("function", "sgd"), ("keras", "sgd")]
)
def test_scopes_train_the_same_bits_on_several_groups(
    mode: str, optimizer: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "figures.json"
    arguments = ["--mode", mode, "--optimizer", optimizer, "--json", str(path), *SMALL]
    done = run_program("multistream_training.py", arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{mode}, {optimizer}: 5 branches of 2 layers, width 8" in done.stdout
    assert "largest difference of the losses: 0\n" in done.stdout
    assert "weights at the end: the same bits\n" in done.stdout
    assert "sanitizer reports: 0\n" in done.stdout
    assert "scopes have no effect" not in done.stderr
    figures = json.loads(path.read_text())
    check_figures(figures, steps=17)
    assert figures["sanitizer_reports"] == 0
    assert figures["options"]["mode"] == mode
    assert figures["one_stream"]["losses"][-1] < figures["one_stream"]["losses"][0]


def test_what_scopes_need_is_named() -> None:
    variables = {"TF_GPU_STREAM_GROUP_COUNT": "1", "TF_NODE_LEVEL_MULTISTREAM": "false"}
    done = run_program(
        "multistream_training.py", SMALL, **variables, TF_MULTI_STREAM_SANITIZER="off"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "there is 1 stream group: set TF_GPU_STREAM_GROUP_COUNT to 2 or more" in done.stderr
    assert "TF_NODE_LEVEL_MULTISTREAM is not on: set TF_NODE_LEVEL_MULTISTREAM=true" in done.stderr
    assert "with scopes: " in done.stdout
    assert "sanitizer" not in done.stdout


@pytest.mark.parametrize("groups", ["", "4"])
def test_missing_gpu_is_named(groups: str) -> None:
    done = run_program(
        "multistream_training.py",
        SMALL,
        CUDA_VISIBLE_DEVICES="-1",
        TF_MULTI_STREAM_EMULATED_GPUS="0",
        TF_GPU_STREAM_GROUP_COUNT=groups,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("multistream_training: ")
    assert "TF_MULTI_STREAM_EMULATED_GPUS=1" in last


def _comparison(
    losses: list[float], weight: float, reports: int | None = None, first: float = 1.0
) -> Comparison:
    sides = [
        Side(values, [0.002], [0], [np.array([value], np.float32)])
        for values, value in (([first, 0.5], 2.0), (losses, weight))
    ]
    return Comparison(sides[0], sides[1], [1], reports)


def test_same_curves_are_no_failure() -> None:
    comparison = _comparison([1.0, 0.5], 2.0, reports=0)
    assert comparison.failure(0) == ""
    assert comparison.ratio == 1
    assert "sanitizer reports: 0" in str(comparison)


def test_curves_that_differ_more_than_tolerated_are_a_failure() -> None:
    comparison = _comparison([1.0, 0.5 + 1e-6], 2.0)
    assert "in step 1 they are 0.5 on one stream" in comparison.failure(0)
    assert "more than 1e-07" in comparison.failure(1e-7)
    assert comparison.failure(1e-5) == ""


def test_loss_that_is_not_a_number_is_a_failure() -> None:
    nan = float("nan")
    assert "in step 0" in _comparison([nan, 0.5], 2.0, first=nan).failure(1.0)


def test_weights_that_differ_are_a_failure_unless_tolerated() -> None:
    comparison = _comparison([1.0, 0.5], 2.5)
    assert "the weights at the end are not" in comparison.failure(0)
    assert "weights at the end: different" in str(comparison)
    assert comparison.failure(1e-9) == ""


def test_sanitizer_reports_are_a_failure() -> None:
    assert "has 3 reports" in _comparison([1.0, 0.5], 2.0, reports=3).failure(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode", "eager"], "argument --mode: invalid choice: 'eager'"),
        (["--optimizer", "x"], "argument --optimizer: invalid choice: 'x'"),
        (["--branches", "0"], "argument --branches: '0' is not a whole number from 1 to 1024"),
        (["--layers", "x"], "argument --layers: 'x' is not a whole number"),
        (["--width", "-1"], "argument --width: '-1' is not a whole number"),
        (["--batch", "0"], "argument --batch: '0' is not a whole number"),
        (["--steps", "10"], "argument --steps: '10' is not a whole number from 11 to"),
        (["--seed", "-1"], "argument --seed: '-1' is not a whole number"),
        (["--tolerance", "nan"], "argument --tolerance: 'nan' is not a number of 0 or more"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        multistream_training.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

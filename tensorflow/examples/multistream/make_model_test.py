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
"""Tests of make_model.py and of the model in data/."""

from __future__ import annotations

import pathlib
import sys

import make_model
import numpy as np
import pytest
import tensorflow as tf

MODEL = pathlib.Path(__file__).resolve().parent / "data" / "model_test.pbtxt"


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def _by_hand(graph: tf.compat.v1.GraphDef, ids: np.ndarray) -> np.ndarray:
    """What the model says about `ids`, worked out by NumPy in float64."""
    value = {
        node.name: tf.make_ndarray(node.attr["value"].tensor).astype(np.float64)
        for node in graph.node
        if node.op == "Const"
    }
    features = ids.shape[1]
    normal, gated = [], []
    for i in range(features):
        at = f"feature{i}/"
        scaled = (value[at + "table"][ids[:, i]] - value[at + "mean"]) * value[at + "scale"]
        gate = _sigmoid(scaled * value[at + "gate_slope"] + value[at + "gate_bias"])
        gated.append(scaled * gate)
        normal.append(np.tanh(gated[-1]))
    crossed = []
    for i in range(features):
        x = gated[i] * normal[(i + 1) % features] * value[f"cross{i}/weight"]
        crossed.append(x / (1.0 + np.abs(x)))
    stack = np.stack(gated, axis=1)
    pairs = np.reshape(stack @ np.swapaxes(stack, 1, 2), (len(ids), -1)) @ value["pairs/weights"]
    x = np.concatenate([*normal, *crossed, pairs], axis=1)
    for layer in ("dense0", "dense1"):
        x = np.maximum(x @ value[f"{layer}/weights"] + value[f"{layer}/bias"], 0.0)
    return _sigmoid(x @ value["dense2/weights"] + value["dense2/bias"])


def _run(graph: tf.compat.v1.GraphDef, ids: np.ndarray) -> np.ndarray:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        return session.run("output:0", {"input0:0": ids})


def test_generator_reproduces_the_model_in_data() -> None:
    assert make_model.make_model(make_model.ModelShape()) == make_model.read_model(str(MODEL))


def test_model_in_data_is_small() -> None:
    assert MODEL.stat().st_size < 1_000_000


def test_model_computes_what_its_description_says() -> None:
    graph = make_model.read_model(str(MODEL))
    ids = np.random.default_rng(1).integers(0, 100, (16, 24))
    got = _run(graph, ids)
    assert got.shape == (16, 1)
    np.testing.assert_allclose(got, _by_hand(graph, ids), rtol=1e-5)
    assert np.std(got) > 1e-3, "the output does not depend on the input"


def test_model_runs_about_three_hundred_kernels_after_optimisation() -> None:
    counts = make_model.count_kernels(make_model.read_model(str(MODEL)))
    assert 280 <= sum(counts.values()) <= 320, counts
    assert counts["GatherV2"] == 24


def test_input_states_its_shape_and_range() -> None:
    graph = make_model.make_model(make_model.ModelShape(features=3, rows=7, dim=2))
    placeholder = next(node for node in graph.node if node.op == "Placeholder")
    assert placeholder.attr["_input_range"].i == 7
    assert [dim.size for dim in placeholder.attr["shape"].shape.dim] == [-1, 3]


@pytest.mark.parametrize("name", ["model.pb", "model.pbtxt"])
def test_written_model_is_read_back(tmp_path: pathlib.Path, name: str) -> None:
    path = str(tmp_path / name)
    options = [
        "--features",
        "3",
        "--rows",
        "7",
        "--dim",
        "2",
        "--hidden",
        "4",
        "--seed",
        "5",
    ]
    assert make_model.main(["--out", path, *options]) == 0
    expected = make_model.make_model(make_model.ModelShape(3, 7, 2, 4, 5))
    assert make_model.read_model(path) == expected
    assert _run(expected, np.array([[0, 1, 6]])).shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", "0"], "'0' is not a whole number above 0"),
        (["--rows", "many"], "'many' is not a whole number above 0"),
        (["--rows", "10000000", "--dim", "64"], "a GraphDef holds at most"),
    ],
)
def test_bad_sizes_are_refused_by_name(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        make_model.main(["--out", str(tmp_path / "model.pb"), *options])
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


def test_unwritable_file_is_named(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "missing" / "model.pb")
    assert make_model.main(["--out", path, "--rows", "2"]) == 1
    assert path in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

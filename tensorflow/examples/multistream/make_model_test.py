# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of make_model.py."""

from __future__ import annotations

import pathlib
import re
import sys

import make_model
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

# Ops that launch no kernel on a GPU: they hand on or hold what is there.
NO_KERNEL = re.compile("Const|Identity|NoOp|Placeholder|Reshape|_(Arg|Recv|Retval|Send)")


def _parse(text: str) -> tf.compat.v1.GraphDef:
    return text_format.Parse(text, tf.compat.v1.GraphDef())


@pytest.fixture(scope="module")
def graph() -> tf.compat.v1.GraphDef:
    """The model that is served by default."""
    return _parse(make_model.make_model())


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


def test_model_computes_what_its_description_says(graph: tf.compat.v1.GraphDef) -> None:
    ids = np.random.default_rng(1).integers(0, 100, (16, 24))
    metadata = tf.compat.v1.RunMetadata()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        got = session.run(
            "output:0",
            {"input0:0": ids},
            options=tf.compat.v1.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
    assert got.shape == (16, 1)
    np.testing.assert_allclose(got, _by_hand(graph, ids), rtol=1e-5)
    assert np.std(got) > 1e-3, "the output does not depend on the input"
    # After TensorFlow's optimizations.
    ops = [n.op for p in metadata.partition_graphs for n in p.node]
    assert 280 <= sum(not NO_KERNEL.fullmatch(op) for op in ops) <= 320, ops
    assert ops.count("GatherV2") == 24


def test_sizes_are_those_of_the_command_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pbtxt"
    make_model.main(["--out", str(path), "--features=3", "--rows=7", "--dim=2"])
    assert path.read_text() == make_model.make_model(3, 7, 2)
    nodes = {node.name: node for node in _parse(path.read_text()).node}
    assert nodes["input0"].attr["_input_range"].i == 7
    assert [dim.size for dim in nodes["input0"].attr["shape"].shape.dim] == [-1, 3]
    assert tf.make_ndarray(nodes["feature2/table"].attr["value"].tensor).shape == (7, 2)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of make_model.py."""

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


def test_model_has_300_kernels_and_depends_on_its_input(graph: tf.compat.v1.GraphDef) -> None:
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

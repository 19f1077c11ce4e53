# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A SavedModel keeps the groups of its scopes, and the results that it had before saving."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from multistream.testing.graphs import (
    NO_GRAD,
    X,
    groups_in_functions,
    nodes_of_functions,
    traced,
)
from multistream.testing.kit import on

tf1 = tf.compat.v1


def test_a_saved_model_keeps_groups(tmp_path: Path) -> None:
    """Export and import, in functions and signatures; gradients of loaded functions follow."""

    class Module(tf.Module):
        @tf.function(input_signature=[X])
        def call(self, x: Any) -> Any:
            with on(2):
                x = tf.tanh(x)
            with on(1, include_grad=False):
                return tf.sigmoid(x)

    tf.saved_model.save(Module(), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    signature = loaded.signatures["serving_default"]
    for function in (loaded.call, signature):
        concrete = getattr(function, "concrete_functions", [function])[0]
        rows = {r.op: (r.group, r.why) for r in tf.cuda.stream_groups_of(concrete)}
        assert rows["Tanh"] == (2, "scope") and rows["Sigmoid"] == (1, "scope")
    with tf1.Session(graph=tf.Graph()) as session:
        tf1.saved_model.load(session, ["serve"], str(tmp_path))
        assert groups_in_functions(session.graph, "Sigmoid") == {1}
        nodes = nodes_of_functions(session.graph)
        assert all(node.attr[NO_GRAD].b for node in nodes if node.op == "Sigmoid")
    trained = traced(lambda x: tf.gradients(loaded.call(x), x))
    assert groups_in_functions(trained, "TanhGrad") == {2}
    assert groups_in_functions(trained, "SigmoidGrad") == {None}

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A SavedModel keeps the groups of its scopes, and the results that it had before saving."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing import kit
from multistream.testing.gpus import either, leaders, numbers, run, used
from multistream.testing.graphs import (
    NO_GRAD,
    X,
    groups_in_functions,
    nodes_of_functions,
    traced,
)
from multistream.testing.kit import on, same

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


class Saved(tf.Module):
    """A model on two GPUs."""

    def __init__(self, scoped: bool) -> None:
        super().__init__()
        self.scoped = scoped
        with tf.device("/GPU:0"):
            self.v = tf.Variable(numbers(0, 6, 6))
        with tf.device("/GPU:1"):
            self.w = tf.Variable(numbers(1, 6, 6))

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def __call__(self, x: Any) -> Any:
        with tf.device("/GPU:0"), on(1, self.scoped):
            a = tf.tanh(tf.matmul(x, self.v))
        with tf.device("/GPU:1"), on(2, self.scoped):
            b = tf.matmul(tf.map_fn(lambda row: tf.sin(row) * 2.0, x), self.w)
        with tf.device("/GPU:0"):
            return either(a * b)

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def train(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) - x))
        for variable, g in zip(
            (self.v, self.w), tape.gradient(loss, [self.v, self.w]), strict=True
        ):
            variable.assign_sub(0.1 * g)
        return loss


def trained(model: Any) -> list[Any]:
    """A model's results before and after some training steps, and the losses."""
    x = tf.constant(numbers(2, 8, 6))
    results = [model(x), *[model.train(x) for _ in range(3)], model(x), model.v, model.w]
    return [result.numpy() for result in results]


def save(folder: str) -> None:
    """Saves a model with scopes, and the results of a model without scopes."""
    expected = trained(Saved(scoped=False))
    assert used() == leaders()
    model = Saved(scoped=True)
    tf.saved_model.save(model, f"{folder}/model", {"serve": model.__call__})
    assert same(trained(model), expected)
    assert used() == {(0, 0), (0, 1), (1, 0), (1, 2)}, used()
    np.savez(f"{folder}/expected.npz", *expected)


def load(folder: str, groups: list[tuple[int, int]]) -> None:
    """Loads the model, as an object and in a session, and compares the results."""
    with np.load(f"{folder}/expected.npz") as file:
        expected = [file[name] for name in file.files]
    model = tf.saved_model.load(f"{folder}/model")
    x = numbers(2, 8, 6)
    (served,) = model.signatures["serve"](tf.constant(x)).values()
    assert same([served.numpy()], expected[:1])
    assert same(trained(model), expected)
    with tf1.Session(graph=tf.Graph()) as session:
        signature = tf1.saved_model.load(session, ["serve"], f"{folder}/model").signature_def[
            "serve"
        ]
        (tensor,), (output,) = signature.inputs.values(), signature.outputs.values()
        assert same([session.run(output.name, {tensor.name: x})], expected[:1])
    assert used() == set(groups), used()


@pytest.mark.skipif(kit.ON_GPU, reason="needs two GPUs")
def test_saved_model_keeps_scopes(tmp_path: Path) -> None:
    """The model gives the same with node level, which uses its groups, and without."""
    folder = str(tmp_path)
    run(save, folder, TF_GPU_STREAM_GROUP_COUNT="3")
    for count, groups in (("3", [(0, 0), (0, 1), (1, 0), (1, 2)]), ("1", [(0, 0), (1, 0)])):
        variables = {} if count == "3" else {"TF_NODE_LEVEL_MULTISTREAM": "false"}
        run(load, folder, groups, TF_GPU_STREAM_GROUP_COUNT=count, **variables)

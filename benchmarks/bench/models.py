# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the workloads: their weights, drawn with NumPy, and what they compute.

A model is a function of a class of operations (`program.NumpyOps`, or a framework's), the weights
by name, and an input. So each is written once, and all frameworks run the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Weights = dict[str, Any]
Arrays = dict[str, np.ndarray]
SEED = 20260


class Draw:
    """Draws weights; the same seed gives the same ones."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)
        self.weights: Arrays = {}

    def normal(self, name: str, *shape: int, inputs: int = 1) -> None:
        """Draws numbers whose products with `inputs` numbers have the variance of these."""
        values = self._random.standard_normal(shape, np.float32)
        self.weights[name] = values / np.float32(np.sqrt(inputs))

    def uniform(self, name: str, low: float, high: float, *shape: int) -> None:
        """Draws numbers from `low` to `high`."""
        self.weights[name] = self._random.uniform(low, high, shape).astype(np.float32)

    def dense(self, name: str, inputs: int, width: int) -> None:
        self.normal(f"{name}/kernel", inputs, width, inputs=inputs)
        self.uniform(f"{name}/bias", -0.1, 0.1, width)


def dense(ops: Any, w: Weights, name: str, x: Any) -> Any:
    """The dense layer of that name."""
    return ops.dense(x, w[f"{name}/kernel"], w[f"{name}/bias"])


def draw_recommender(features: int, rows: int, width: int, hidden: int) -> Arrays:
    """Weights of the recommender-like model of tensorflow/examples/multistream/make_model.py."""
    draw = Draw()
    for i in range(features):
        draw.normal(f"feature{i}/table", rows, width)
        for name, low, high in (
            ("mean", -0.1, 0.1),
            ("scale", 0.9, 1.1),
            ("slope", 0.5, 1.5),
            ("bias", -0.5, 0.5),
            ("cross", 0.5, 2.0),
        ):
            draw.uniform(f"feature{i}/{name}", low, high, width)
    pairs = hidden // 2
    draw.normal("pairs", features**2, pairs, inputs=features**2)
    draw.dense("dense0", 2 * features * width + pairs, hidden)
    draw.dense("dense1", hidden, pairs)
    draw.dense("dense2", pairs, 1)
    return draw.weights


def recommender(ops: Any, w: Weights, ids: Any) -> Any:
    """Probabilities [batch, 1] of ids [batch, features]: with 24 features about 300 kernels."""
    features = ids.shape[1]
    normal, gated, crossed = [], [], []
    for i in range(features):
        at = f"feature{i}/"
        embedding = ops.gather(w[at + "table"], ops.at(ids, i))
        scaled = (embedding - w[at + "mean"]) * w[at + "scale"]
        gated.append(scaled * ops.sigmoid(scaled * w[at + "slope"] + w[at + "bias"]))
        normal.append(ops.tanh(gated[-1]))
    for i in range(features):
        product = gated[i] * normal[(i + 1) % features] * w[f"feature{i}/cross"]
        crossed.append(ops.softsign(product))
    rows = ops.stack(gated)
    dots = ops.reshape(rows @ ops.transpose(rows, (0, 2, 1)), (-1, features**2))
    x = ops.concat([*normal, *crossed, dots @ w["pairs"]])
    x = ops.relu(dense(ops, w, "dense0", x))
    x = ops.relu(dense(ops, w, "dense1", x))
    return ops.sigmoid(dense(ops, w, "dense2", x))


def draw_dlrm(features: int, rows: int, width: int, hidden: int) -> Arrays:
    """Weights of a DLRM-like model, whose tables are nearly all of it."""
    draw = Draw()
    for i in range(features):
        draw.normal(f"table{i}", rows, width)
    draw.dense("dense0", features * width + features**2, hidden)
    draw.dense("dense1", hidden, hidden // 2)
    draw.dense("dense2", hidden // 2, 1)
    return draw.weights


def dlrm(ops: Any, w: Weights, ids: Any) -> Any:
    """Probabilities [batch, 1] of ids [batch, features], from rows and products of all pairs."""
    features = ids.shape[1]
    rows = [ops.gather(w[f"table{i}"], ops.at(ids, i)) for i in range(features)]
    stack = ops.stack(rows)
    pairs = ops.reshape(stack @ ops.transpose(stack, (0, 2, 1)), (-1, features**2))
    x = ops.relu(dense(ops, w, "dense0", ops.concat([*rows, pairs])))
    x = ops.relu(dense(ops, w, "dense1", x))
    return ops.sigmoid(dense(ops, w, "dense2", x))


def draw_mlp(inputs: int, hidden: int, outputs: int) -> Arrays:
    """Weights of two dense layers."""
    draw = Draw()
    draw.dense("dense0", inputs, hidden)
    draw.dense("dense1", hidden, outputs)
    return draw.weights


def mlp(ops: Any, w: Weights, x: Any) -> Any:
    """Outputs [batch, outputs] of rows [batch, inputs]."""
    return dense(ops, w, "dense1", ops.relu(dense(ops, w, "dense0", x)))


def draw_transformer(layers: int, words: int, width: int, heads: int, outputs: int) -> Arrays:
    """Weights of an embedding, layers and a dense layer; `heads` is not drawn, but remembered."""
    draw = Draw()
    draw.normal("words", words, width)
    for i in range(layers):
        at = f"layer{i}/"
        for name in ("query", "key", "value", "joined"):
            draw.dense(at + name, width, width)
        draw.dense(at + "wide", width, 4 * width)
        draw.dense(at + "narrow", 4 * width, width)
        for name in ("attended", "out"):
            draw.uniform(f"{at}{name}/scale", 0.9, 1.1, width)
            draw.uniform(f"{at}{name}/bias", -0.1, 0.1, width)
    draw.dense("last", width, outputs)
    return draw.weights


def transformer(ops: Any, w: Weights, ids: Any, layers: int, heads: int) -> Any:
    """Outputs [batch, outputs] of ids [batch, tokens], the mean over all tokens."""
    tokens = ids.shape[1]
    width = w["words"].shape[1]
    x = ops.gather(w["words"], ids)
    for i in range(layers):
        at = f"layer{i}/"

        def head_first(name: str, x: Any = x, at: str = at) -> Any:
            y = ops.reshape(dense(ops, w, at + name, x), (-1, tokens, heads, width // heads))
            return ops.transpose(y, (0, 2, 1, 3))

        y = ops.attention(head_first("query"), head_first("key"), head_first("value"))
        y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, tokens, width))
        y = x + dense(ops, w, at + "joined", y)
        x = ops.layer_norm(y, w[at + "attended/scale"], w[at + "attended/bias"])
        y = ops.gelu(dense(ops, w, at + "wide", x))
        y = x + dense(ops, w, at + "narrow", y)
        x = ops.layer_norm(y, w[at + "out/scale"], w[at + "out/bias"])
    return dense(ops, w, "last", ops.mean(x))


def draw_lstm(inputs: int, width: int, outputs: int) -> Arrays:
    """Weights of an LSTM cell, its first state and a dense layer."""
    draw = Draw()
    draw.dense("start", inputs, 2 * width)
    draw.dense("cell", inputs + width, 4 * width)
    draw.dense("last", width, outputs)
    return draw.weights


def lstm(ops: Any, w: Weights, x: Any) -> Any:
    """Outputs [batch, outputs] of the last state for rows [batch, times, inputs]: a loop."""

    def step(i: Any, state: Any) -> Any:
        h, c = state
        gates = dense(ops, w, "cell", ops.concat([ops.at(x, i), h]))
        entry, forget, new, output = ops.split(gates, 4)
        c = ops.sigmoid(forget) * c + ops.sigmoid(entry) * ops.tanh(new)
        return ops.sigmoid(output) * ops.tanh(c), c

    start = tuple(ops.split(ops.tanh(dense(ops, w, "start", ops.at(x, 0))), 2))
    h, _ = ops.loop(x.shape[1], step, start)
    return dense(ops, w, "last", h)


def draw_wide_and_deep(towers: int, rows: int, width: int, layers: int) -> Arrays:
    """Weights of a wide part, and of towers of dense layers, each on a table of its own."""
    draw = Draw()
    for tower in range(towers):
        draw.normal(f"wide{tower}", rows, 1, inputs=towers)
        draw.normal(f"table{tower}", rows, width)
        for i in range(layers):
            draw.dense(f"tower{tower}/dense{i}", width, width)
    draw.dense("last", towers * width, 1)
    return draw.weights


def wide_and_deep(ops: Any, w: Weights, ids: Any, layers: int) -> Any:
    """Scores [batch, 1] of ids [batch, towers]; the towers are branches."""
    wide, deep = [], []
    for tower in range(ids.shape[1]):
        with ops.branch(tower):
            column = ops.at(ids, tower)
            wide.append(ops.gather(w[f"wide{tower}"], column))
            x = ops.gather(w[f"table{tower}"], column)
            for i in range(layers):
                x = ops.tanh(dense(ops, w, f"tower{tower}/dense{i}", x))
            deep.append(x)
    score = dense(ops, w, "last", ops.concat(deep))
    for part in wide:
        score = score + part
    return score


def draw_branches(branches: int, width: int, layers: int) -> Arrays:
    """Weights of branches of dense layers."""
    draw = Draw()
    for branch in range(branches):
        for i in range(layers):
            draw.dense(f"branch{branch}/dense{i}", width, width)
    return draw.weights


def sum_of_branches(ops: Any, w: Weights, x: Any, branches: int, layers: int) -> Any:
    """Outputs [batch, width] of rows [batch, width]: the sum of what the branches make of them."""
    total = None
    for branch in range(branches):
        with ops.branch(branch):
            y = x
            for i in range(layers):
                y = ops.tanh(dense(ops, w, f"branch{branch}/dense{i}", y))
        total = y if total is None else total + y
    return total


Model = Callable[[Any, Weights, Any], Any]

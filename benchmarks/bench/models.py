# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the workloads: what they compute, and of which weights.

A model is a function of a class of operations (`program.NumpyOps`, or a framework's), the weights,
an input, and sizes. So each is written once, and all frameworks run the same.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

SEED = 20260


class Weights:
    """Weights by name. One that is not there is drawn, always the same, and made by `make`."""

    def __init__(
        self, make: Callable[[np.ndarray], Any] = np.asarray, values: dict[str, Any] | None = None
    ) -> None:
        self.values = {} if values is None else values
        self._make = make
        self._random = np.random.default_rng(SEED)

    def normal(self, name: str, *shape: int, inputs: float = 1) -> Any:
        """Numbers whose products with `inputs` numbers have the variance of these."""
        if name not in self.values:
            values = self._random.standard_normal(shape, np.float32)
            self.values[name] = self._make(values / np.float32(np.sqrt(inputs)))
        return self.values[name]

    def uniform(self, name: str, low: float, high: float, *shape: int) -> Any:
        """Numbers from `low` to `high`."""
        if name not in self.values:
            values = self._random.uniform(low, high, shape)
            self.values[name] = self._make(values.astype(np.float32))
        return self.values[name]


def dense(ops: Any, w: Weights, name: str, x: Any, inputs: int, width: int) -> Any:
    """The dense layer of that name."""
    kernel = w.normal(f"{name}/kernel", inputs, width, inputs=inputs)
    return ops.dense(x, kernel, w.uniform(f"{name}/bias", -0.1, 0.1, width))


def recommender(
    ops: Any, w: Weights, ids: Any, features: int, rows: int, width: int, hidden: int
) -> Any:
    """Probabilities [batch, 1] of ids [batch, features]: with 24 features about 300 kernels.

    It is like the model of tensorflow/examples/multistream/make_model.py.
    """
    normal, gated, crossed = [], [], []
    for i in range(features):
        at = f"feature{i}/"
        embedding = ops.gather(w.normal(at + "table", rows, width), ops.at(ids, i))
        scaled = embedding - w.uniform(at + "mean", -0.1, 0.1, width)
        scaled = scaled * w.uniform(at + "scale", 0.9, 1.1, width)
        gate = scaled * w.uniform(at + "slope", 0.5, 1.5, width)
        gated.append(scaled * ops.sigmoid(gate + w.uniform(at + "bias", -0.5, 0.5, width)))
        normal.append(ops.tanh(gated[-1]))
    for i in range(features):
        product = gated[i] * normal[(i + 1) % features]
        crossed.append(ops.softsign(product * w.uniform(f"feature{i}/cross", 0.5, 2.0, width)))
    rows_of_all = ops.stack(gated)
    dots = ops.reshape(rows_of_all @ ops.transpose(rows_of_all, (0, 2, 1)), (-1, features**2))
    pairs = hidden // 2
    dots = dots @ w.normal("pairs", features**2, pairs, inputs=features**2)
    x = ops.concat([*normal, *crossed, dots])
    x = ops.relu(dense(ops, w, "dense0", x, 2 * features * width + pairs, hidden))
    x = ops.relu(dense(ops, w, "dense1", x, hidden, pairs))
    return ops.sigmoid(dense(ops, w, "dense2", x, pairs, 1))


def dlrm(ops: Any, w: Weights, ids: Any, features: int, rows: int, width: int, hidden: int) -> Any:
    """Probabilities [batch, 1] of ids [batch, features], from rows and products of all pairs.

    The tables are nearly all of it.
    """
    found = [
        ops.gather(w.normal(f"table{i}", rows, width), ops.at(ids, i)) for i in range(features)
    ]
    stack = ops.stack(found)
    pairs = ops.reshape(stack @ ops.transpose(stack, (0, 2, 1)), (-1, features**2))
    inputs = features * width + features**2
    x = ops.relu(dense(ops, w, "dense0", ops.concat([*found, pairs]), inputs, hidden))
    x = ops.relu(dense(ops, w, "dense1", x, hidden, hidden // 2))
    return ops.sigmoid(dense(ops, w, "dense2", x, hidden // 2, 1))


def mlp(ops: Any, w: Weights, x: Any, inputs: int, hidden: int, outputs: int) -> Any:
    """Outputs [batch, outputs] of rows [batch, inputs]."""
    x = ops.relu(dense(ops, w, "dense0", x, inputs, hidden))
    return dense(ops, w, "dense1", x, hidden, outputs)


def transformer(
    ops: Any, w: Weights, ids: Any, layers: int, words: int, width: int, heads: int, outputs: int
) -> Any:
    """Outputs [batch, outputs] of ids [batch, tokens], the mean over all tokens."""
    tokens = ids.shape[1]

    def head_first(name: str, x: Any) -> Any:
        y = ops.reshape(dense(ops, w, name, x, width, width), (-1, tokens, heads, width // heads))
        return ops.transpose(y, (0, 2, 1, 3))

    def normalized(name: str, x: Any) -> Any:
        scale = w.uniform(f"{name}/scale", 0.9, 1.1, width)
        return ops.layer_norm(x, scale, w.uniform(f"{name}/bias", -0.1, 0.1, width))

    x = ops.gather(w.normal("words", words, width), ids)
    for i in range(layers):
        at = f"layer{i}/"
        y = ops.attention(*(head_first(at + name, x) for name in ("query", "key", "value")))
        y = ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, tokens, width))
        x = normalized(at + "attended", x + dense(ops, w, at + "joined", y, width, width))
        y = ops.gelu(dense(ops, w, at + "wide", x, width, 4 * width))
        x = normalized(at + "out", x + dense(ops, w, at + "narrow", y, 4 * width, width))
    return dense(ops, w, "last", ops.mean(x), width, outputs)


def lstm(ops: Any, w: Weights, x: Any, inputs: int, width: int, outputs: int) -> Any:
    """Outputs [batch, outputs] of the last state for rows [batch, times, inputs]: a loop."""

    def step(i: Any, state: Any) -> Any:
        h, c = state
        joined = ops.concat([ops.at(x, i), h])
        gates = dense(ops, w, "cell", joined, inputs + width, 4 * width)
        entry, forget, new, output = ops.split(gates, 4)
        c = ops.sigmoid(forget) * c + ops.sigmoid(entry) * ops.tanh(new)
        return ops.sigmoid(output) * ops.tanh(c), c

    start = ops.tanh(dense(ops, w, "start", ops.at(x, 0), inputs, 2 * width))
    h, _ = ops.loop(x.shape[1], step, tuple(ops.split(start, 2)))
    return dense(ops, w, "last", h, width, outputs)


def layers_of(ops: Any, w: Weights, name: str, x: Any, width: int, layers: int) -> Any:
    """Dense layers of one width, one after another."""
    for i in range(layers):
        x = ops.tanh(dense(ops, w, f"{name}/dense{i}", x, width, width))
    return x


def wide_and_deep(
    ops: Any, w: Weights, ids: Any, towers: int, rows: int, width: int, layers: int
) -> Any:
    """Scores [batch, 1] of ids [batch, towers]: a wide part, and branches with their own tables."""
    wide, deep = [], []
    for tower in range(towers):
        with ops.branch(tower):
            column = ops.at(ids, tower)
            wide.append(ops.gather(w.normal(f"wide{tower}", rows, 1, inputs=towers), column))
            x = ops.gather(w.normal(f"table{tower}", rows, width), column)
            deep.append(layers_of(ops, w, f"tower{tower}", x, width, layers))
    score = dense(ops, w, "last", ops.concat(deep), towers * width, 1)
    for part in wide:
        score = score + part
    return score


def sum_of_branches(ops: Any, w: Weights, x: Any, branches: int, width: int, layers: int) -> Any:
    """Outputs [batch, width] of rows [batch, width]: the sum of what the branches make of them."""
    total = None
    for branch in range(branches):
        with ops.branch(branch):
            y = layers_of(ops, w, f"branch{branch}", x, width, layers)
        total = y if total is None else total + y
    return total

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the recommender-like model that multistream_inference serves, in text format.

    python make_model.py --out model.pbtxt --features 24 --rows 100 --dim 8

The model is a frozen graph (no variables): `input0`, int64 ids of shape
[batch, features]; one embedding table and a short chain of elementwise ops for
each feature; products of neighbouring features; all pairwise dot products; three
dense layers; `output`, float32 probabilities of shape [batch, 1]. With the
default 24 features that is about 300 kernels, each of them short, so that the
time of a query is the time it takes to launch them.

Every op used gives the same bits for the same input whatever runs beside it: no
op adds with atomics. Weights are constants, the same in each file of these sizes.

`input0` carries the attribute `_input_range`: ids are drawn from
[0, _input_range), here the number of rows of a table.

Needs the standard library alone: Bazel runs it where no TensorFlow is installed.
"""

import argparse
import array
import math
import pathlib
import random
import sys

# The version of the graph format that the nodes are written in, whichever
# TensorFlow reads them.
GRAPH_PRODUCER = 1395
HIDDEN = 32  # width of the first dense layer; the second is half as wide
SEED = 20260

_ESCAPED = [f"\\{byte:03o}" for byte in range(256)]
_FLOAT, _INT32, _INT64 = (f"type: DT_{name}" for name in ("FLOAT", "INT32", "INT64"))


class GraphWriter:
    """Writes nodes; every method returns the name of its node."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self._random = random.Random(SEED)

    def node(self, name: str, op: str, inputs: list[str], **attributes: str) -> str:
        """Adds a node; each of its attributes is the text of an AttrValue."""
        parts = [f'name: "{name}" op: "{op}"', *(f'input: "{i}"' for i in inputs)]
        parts += [f'attr {{ key: "{k}" value {{ {v} }} }}' for k, v in attributes.items()]
        self.nodes.append(f"node {{ {' '.join(parts)} }}\n")
        return name

    def _constant(self, name: str, dtype: str, values: array.array, shape: list[int]) -> str:
        if sys.byteorder == "big":  # a GraphDef is little-endian
            values.byteswap()
        dims = " ".join(f"dim {{ size: {size} }}" for size in shape)
        content = "".join(map(_ESCAPED.__getitem__, values.tobytes()))
        tensor = f'dtype: {dtype} tensor_shape {{ {dims} }} tensor_content: "{content}"'
        return self.node(name, "Const", [], dtype=f"type: {dtype}", value=f"tensor {{ {tensor} }}")

    def integers(self, name: str, values: list[int]) -> str:
        """Adds a vector of int32; one value is a scalar."""
        shape = [len(values)] if len(values) > 1 else []
        return self._constant(name, "DT_INT32", array.array("i", values), shape)

    def weights(self, name: str, low: float, high: float, *shape: int) -> str:
        """Adds a float constant, drawn between two values."""
        count = math.prod(shape)
        values = array.array("f", (self._random.uniform(low, high) for _ in range(count)))
        return self._constant(name, "DT_FLOAT", values, list(shape))

    def floats(self, name: str, op: str, *inputs: str) -> str:
        """Adds an op of floats."""
        return self.node(name, op, list(inputs), T=_FLOAT)

    def product(self, name: str, x: str, rows: int, columns: int) -> str:
        """Adds a product with a matrix of weights, `name`/weights."""
        scale = 1.0 / math.sqrt(rows)
        matrix = self.weights(f"{name}/weights", -scale, scale, rows, columns)
        return self.floats(f"{name}/product", "MatMul", x, matrix)

    def dense(self, name: str, x: str, rows: int, columns: int) -> str:
        """Adds a dense layer without its activation."""
        product = self.product(name, x, rows, columns)
        return self.floats(
            f"{name}/biased", "BiasAdd", product, self.weights(f"{name}/bias", -0.1, 0.1, columns)
        )


def make_model(features: int = 24, rows: int = 100, dim: int = 8) -> str:
    """Makes the model as a GraphDef in text format: feed `input0`, fetch `output`."""
    graph = GraphWriter()

    def weighted(name: str, op: str, x: str, weights: str, low: float, high: float) -> str:
        return graph.floats(name, op, x, graph.weights(weights, low, high, dim))

    graph.node(
        "input0",
        "Placeholder",
        [],
        dtype=_INT64,
        shape=f"shape {{ dim {{ size: -1 }} dim {{ size: {features} }} }}",
        _input_range=f"i: {rows}",
    )
    ones = graph.integers("one_each", [1, 1])
    rows_axis = graph.integers("rows_axis", [0])
    last_axis = graph.integers("last_axis", [1])

    # What a feature goes through: its column of ids, its embedding, a
    # normalisation, a gate, a squashing.
    normal: list[str] = []
    gated: list[str] = []
    for i in range(features):
        at = f"feature{i}/"
        begin = graph.integers(at + "begin", [0, i])
        end = graph.integers(at + "end", [0, i + 1])
        masks = {"begin_mask": "i: 1", "end_mask": "i: 1", "shrink_axis_mask": "i: 2"}
        column = ["input0", begin, end, ones]
        ids = graph.node(at + "ids", "StridedSlice", column, T=_INT64, Index=_INT32, **masks)
        types = {"Tparams": _FLOAT, "Tindices": _INT64, "Taxis": _INT32}
        table = graph.weights(at + "table", -1.7, 1.7, rows, dim)
        embedding = graph.node(at + "lookup", "GatherV2", [table, ids, rows_axis], **types)
        centred = weighted(at + "centred", "Sub", embedding, at + "mean", -0.1, 0.1)
        scaled = weighted(at + "scaled", "Mul", centred, at + "scale", 0.9, 1.1)
        slope = weighted(at + "slope", "Mul", scaled, at + "gate_slope", 0.5, 1.5)
        logit = weighted(at + "logit", "AddV2", slope, at + "gate_bias", -0.5, 0.5)
        gated.append(
            graph.floats(at + "gated", "Mul", scaled, graph.floats(at + "gate", "Sigmoid", logit))
        )
        normal.append(graph.floats(at + "squashed", "Tanh", gated[i]))

    # What two features say together.
    crossed: list[str] = []
    for i in range(features):
        at = f"cross{i}/"
        product = graph.floats(at + "product", "Mul", gated[i], normal[(i + 1) % features])
        scaled = weighted(at + "weighted", "Mul", product, at + "weight", 0.5, 2.0)
        crossed.append(graph.floats(at + "softsign", "Softsign", scaled))
    stack = graph.node("pairs/stack", "Pack", gated, N=f"i: {features}", T=_FLOAT, axis="i: 1")
    dots = graph.node("pairs/dots", "BatchMatMulV2", [stack, stack], T=_FLOAT, adj_y="b: true")
    flat_shape = graph.integers("pairs/shape", [-1, features**2])
    flat = graph.node("pairs/flat", "Reshape", [dots, flat_shape], T=_FLOAT, Tshape=_INT32)
    pairs = graph.product("pairs", flat, features**2, HIDDEN // 2)

    parts = [*normal, *crossed, pairs]
    wide = graph.node(
        "wide", "ConcatV2", [*parts, last_axis], N=f"i: {len(parts)}", T=_FLOAT, Tidx=_INT32
    )
    x = graph.dense("dense0", wide, 2 * features * dim + HIDDEN // 2, HIDDEN)
    x = graph.dense("dense1", graph.floats("dense0/relu", "Relu", x), HIDDEN, HIDDEN // 2)
    x = graph.dense("dense2", graph.floats("dense1/relu", "Relu", x), HIDDEN // 2, 1)
    graph.floats("output", "Sigmoid", x)
    return "".join([*graph.nodes, f"versions {{ producer: {GRAPH_PRODUCER} }}\n"])


def main(arguments: list[str] | None = None) -> None:
    """Writes the model that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file to write")
    parser.add_argument("--features", type=int, default=24, help="[24]")
    parser.add_argument("--rows", type=int, default=100, help="of each table [100]")
    parser.add_argument("--dim", type=int, default=8, help="of each embedding [8]")
    options = parser.parse_args(arguments)
    text = make_model(options.features, options.rows, options.dim)
    options.out.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()

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
"""Makes the recommender-like model that multistream_inference serves.

The model is a frozen graph (no variables): `input0`, int64 ids of shape
[batch, features]; one embedding table and a short chain of elementwise ops for
each feature; products of neighbouring features; all pairwise dot products; three
dense layers; `output`, float32 probabilities of shape [batch, 1]. With the
default 24 features that is about 300 kernels, each of them short, so that the
time of a query is the time it takes to launch them.

Every op used gives the same bits for the same input whatever runs beside it: no
op adds with atomics. Weights are constants drawn from `--seed`.

`input0` carries the attribute `_input_range`: ids are drawn from
[0, _input_range), here the number of rows of a table.

    python make_model.py --out data/model_test.pbtxt
    python make_model.py --rows 100000 --dim 64 --out /tmp/large.pb
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from typing import Any

import numpy as np
from google.protobuf import text_format

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

FLOAT = tf.float32.as_datatype_enum
INT32 = tf.int32.as_datatype_enum
INT64 = tf.int64.as_datatype_enum

# The version of the graph format that the nodes below are written in. It is not
# taken from the TensorFlow that runs this, so that every release makes the same
# file.
GRAPH_PRODUCER = 1395

# Protocol buffers end at 2 GiB.
MAX_MODEL_BYTES = 2 * 1024**3 - 1024**2


@dataclasses.dataclass(frozen=True)
class ModelShape:
    """Sizes of the model.

    Args:
        features: number of ids in one row of the input, and of embedding tables.
        rows: rows of each embedding table.
        dim: width of each embedding.
        hidden: width of the first dense layer; the second is half as wide.
        seed: seed of the weights.
    """

    features: int = 24
    rows: int = 100
    dim: int = 8
    hidden: int = 32
    seed: int = 20260

    def table_bytes(self) -> int:
        """Returns the size of all embedding tables, in bytes."""
        return self.features * self.rows * self.dim * 4


class GraphWriter:
    """Adds nodes to a GraphDef; every method returns the name of its node."""

    def __init__(self) -> None:
        self.graph = tf.compat.v1.GraphDef()
        self.graph.versions.producer = GRAPH_PRODUCER

    def node(self, name: str, op: str, inputs: list[str], **attributes: Any) -> str:
        """Adds one node.

        Args:
            name: its name.
            op: its op.
            inputs: names of its inputs.
            **attributes: its attributes: an int, a bool, a `_Type`, a tf.TensorShape or
                a TensorProto.

        Returns:
            The name.
        """
        node = self.graph.node.add(name=name, op=op, input=inputs)
        for key, value in attributes.items():
            _set_attribute(node.attr[key], value)
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        """Adds a constant; arrays are stored as bytes."""
        tensor = tf.make_tensor_proto(value)
        return self.node(name, "Const", [], dtype=_Type(tensor.dtype), value=tensor)

    def unary(self, name: str, op: str, x: str) -> str:
        """Adds a float op of one input."""
        return self.node(name, op, [x], T=_Type(FLOAT))

    def binary(self, name: str, op: str, x: str, y: str) -> str:
        """Adds a float op of two inputs."""
        return self.node(name, op, [x, y], T=_Type(FLOAT))


@dataclasses.dataclass(frozen=True)
class _Type:
    """A DataType, to tell it from a plain int."""

    value: int


def _set_attribute(attribute: Any, value: Any) -> None:
    if isinstance(value, _Type):
        attribute.type = value.value
    elif isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, int):
        attribute.i = value
    elif isinstance(value, tf.TensorShape):
        attribute.shape.CopyFrom(value.as_proto())
    else:
        attribute.tensor.CopyFrom(value)


def make_model(shape: ModelShape) -> tf.compat.v1.GraphDef:
    """Makes the model.

    Args:
        shape: its sizes.

    Returns:
        The graph: feed `input0`, fetch `output`.
    """
    random = np.random.default_rng(shape.seed)
    graph = GraphWriter()

    def weights(name: str, rows: int, columns: int) -> str:
        scale = 1.0 / np.sqrt(rows)
        values = random.uniform(-scale, scale, (rows, columns)).astype(np.float32)
        return graph.constant(name, values)

    def vector(name: str, low: float, high: float, size: int = shape.dim) -> str:
        return graph.constant(name, random.uniform(low, high, size).astype(np.float32))

    graph.node(
        "input0",
        "Placeholder",
        [],
        dtype=_Type(INT64),
        shape=tf.TensorShape([None, shape.features]),
        _input_range=shape.rows,
    )
    ones = graph.constant("one_each", np.array([1, 1], np.int32))
    rows_axis = graph.constant("rows_axis", np.array(0, np.int32))
    last_axis = graph.constant("last_axis", np.array(1, np.int32))

    # What a feature goes through: its column of ids, its embedding, a
    # normalisation, a gate, a squashing.
    normal: list[str] = []
    gated: list[str] = []
    for i in range(shape.features):
        at = f"feature{i}/"
        begin = graph.constant(at + "begin", np.array([0, i], np.int32))
        end = graph.constant(at + "end", np.array([0, i + 1], np.int32))
        ids = graph.node(
            at + "ids",
            "StridedSlice",
            ["input0", begin, end, ones],
            T=_Type(INT64),
            Index=_Type(INT32),
            begin_mask=1,
            end_mask=1,
            shrink_axis_mask=2,
        )
        table = graph.constant(
            at + "table",
            random.standard_normal((shape.rows, shape.dim)).astype(np.float32),
        )
        embedding = graph.node(
            at + "lookup",
            "GatherV2",
            [table, ids, rows_axis],
            Tparams=_Type(FLOAT),
            Tindices=_Type(INT64),
            Taxis=_Type(INT32),
        )
        centred = graph.binary(at + "centred", "Sub", embedding, vector(at + "mean", -0.1, 0.1))
        scaled = graph.binary(at + "scaled", "Mul", centred, vector(at + "scale", 0.9, 1.1))
        slope = graph.binary(at + "slope", "Mul", scaled, vector(at + "gate_slope", 0.5, 1.5))
        logit = graph.binary(at + "logit", "AddV2", slope, vector(at + "gate_bias", -0.5, 0.5))
        gate = graph.unary(at + "gate", "Sigmoid", logit)
        output = graph.binary(at + "gated", "Mul", scaled, gate)
        normal.append(graph.unary(at + "squashed", "Tanh", output))
        gated.append(output)

    # What two features say together.
    crossed: list[str] = []
    for i in range(shape.features):
        at = f"cross{i}/"
        product = graph.binary(at + "product", "Mul", gated[i], normal[(i + 1) % shape.features])
        weighted = graph.binary(at + "weighted", "Mul", product, vector(at + "weight", 0.5, 2.0))
        crossed.append(graph.unary(at + "softsign", "Softsign", weighted))

    def concatenated(name: str, inputs: list[str]) -> str:
        return graph.node(
            name,
            "ConcatV2",
            [*inputs, last_axis],
            N=len(inputs),
            T=_Type(FLOAT),
            Tidx=_Type(INT32),
        )

    stack = graph.node("pairs/stack", "Pack", gated, N=len(gated), T=_Type(FLOAT), axis=1)
    dots = graph.node("pairs/dots", "BatchMatMulV2", [stack, stack], T=_Type(FLOAT), adj_y=True)
    flat_shape = graph.constant("pairs/shape", np.array([-1, shape.features**2], np.int32))
    flat = graph.node(
        "pairs/flat", "Reshape", [dots, flat_shape], T=_Type(FLOAT), Tshape=_Type(INT32)
    )
    pair_width = max(shape.hidden // 2, 1)
    pairs = graph.binary(
        "pairs/projected",
        "MatMul",
        flat,
        weights("pairs/weights", shape.features**2, pair_width),
    )

    def dense(name: str, x: str, rows: int, columns: int) -> str:
        product = graph.binary(
            f"{name}/product", "MatMul", x, weights(f"{name}/weights", rows, columns)
        )
        return graph.binary(
            f"{name}/biased",
            "BiasAdd",
            product,
            vector(f"{name}/bias", -0.1, 0.1, columns),
        )

    wide = concatenated("wide", [*normal, *crossed, pairs])
    wide_width = 2 * shape.features * shape.dim + pair_width
    half = max(shape.hidden // 2, 1)
    first = graph.unary("dense0/relu", "Relu", dense("dense0", wide, wide_width, shape.hidden))
    second = graph.unary("dense1/relu", "Relu", dense("dense1", first, shape.hidden, half))
    graph.unary("output", "Sigmoid", dense("dense2", second, half, 1))
    return graph.graph


def input_features(graph: tf.compat.v1.GraphDef) -> int:
    """Returns how many ids a row of the input has."""
    placeholder = next(node for node in graph.node if node.name == "input0")
    return int(placeholder.attr["shape"].shape.dim[1].size)


def write_model(graph: tf.compat.v1.GraphDef, path: str) -> None:
    """Writes a graph: as text if the path ends in .pbtxt, else as binary.

    If the path ends in .npz: the weights alone, by name, for other frameworks, and as `sample/ids`
    and `sample/output` what the graph gives for some input.

    Args:
        graph: the graph.
        path: the file.
    """
    if path.endswith(".npz"):
        weights = {
            n.name: tf.make_ndarray(n.attr["value"].tensor) for n in graph.node if n.op == "Const"
        }
        ids = np.arange(16 * input_features(graph)).reshape(16, -1) % len(weights["feature0/table"])
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tf.import_graph_def(graph, name="")
            output = session.run("output:0", {"input0:0": ids})
        np.savez(path, **weights, **{"sample/ids": ids, "sample/output": output})
    elif path.endswith(".pbtxt"):
        with open(path, "w", encoding="utf-8") as text_file:
            text_file.write(text_format.MessageToString(graph))
    else:
        with open(path, "wb") as binary_file:
            binary_file.write(graph.SerializeToString(deterministic=True))


def read_model(path: str) -> tf.compat.v1.GraphDef:
    """Reads what `write_model` wrote.

    Args:
        path: the file.

    Returns:
        The graph.
    """
    if path.endswith(".pbtxt"):
        with open(path, encoding="utf-8") as text_file:
            return text_format.Parse(text_file.read(), tf.compat.v1.GraphDef())
    with open(path, "rb") as binary_file:
        return tf.compat.v1.GraphDef.FromString(binary_file.read())


# Nodes that launch no kernel on a GPU: they hand on or hold what is there.
NO_KERNEL = frozenset(
    [
        "Const",
        "Identity",
        "NoOp",
        "Placeholder",
        "Reshape",
        "_Arg",
        "_Recv",
        "_Retval",
        "_Send",
    ]
)


def count_kernels(graph: tf.compat.v1.GraphDef, batch_size: int = 16) -> dict[str, int]:
    """Runs the model once and counts the nodes of the graph that was executed.

    Args:
        graph: a model made by `make_model`.
        batch_size: rows of the input.

    Returns:
        Number of nodes by op, after TensorFlow's graph optimisations, without the ops
        that launch no kernel.
    """
    metadata = tf.compat.v1.RunMetadata()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.import_graph_def(graph, name="")
        session.run(
            "output:0",
            {"input0:0": np.zeros((batch_size, input_features(graph)), np.int64)},
            options=tf.compat.v1.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
    counts: dict[str, int] = {}
    for partition in metadata.partition_graphs:
        for node in partition.node:
            if node.op not in NO_KERNEL:
                counts[node.op] = counts.get(node.op, 0) + 1
    return dict(sorted(counts.items()))


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def main(arguments: list[str] | None = None) -> int:
    """Writes the model that the command line asks for; returns the exit status."""
    default = ModelShape()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--out", required=True, help=".pbtxt: text, .npz: the weights, any other: binary"
    )
    parser.add_argument("--features", type=_positive, default=default.features)
    parser.add_argument("--rows", type=_positive, default=default.rows, help="of each table")
    parser.add_argument("--dim", type=_positive, default=default.dim, help="of each embedding")
    parser.add_argument("--hidden", type=_positive, default=default.hidden)
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument(
        "--count", action="store_true", help="also run it once and count its kernels"
    )
    options = parser.parse_args(arguments)
    shape = ModelShape(options.features, options.rows, options.dim, options.hidden, options.seed)
    if shape.table_bytes() > MAX_MODEL_BYTES:
        parser.error(
            f"--features {shape.features} --rows {shape.rows} --dim {shape.dim}: the tables"
            f" take {shape.table_bytes()} bytes, a GraphDef holds at most {MAX_MODEL_BYTES}"
        )
    graph = make_model(shape)
    try:
        write_model(graph, options.out)
    except OSError as error:
        print(f"--out {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{options.out}: {len(graph.node)} nodes, {shape.table_bytes()} bytes of tables")
    if options.count:
        counts = count_kernels(graph)
        print(f"{sum(counts.values())} kernels a step:", counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())

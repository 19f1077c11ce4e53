# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of graphs: which group their ops carry."""

from typing import Any

import tensorflow as tf

GROUP = "_stream_group"
NO_GRAD = "_stream_group_no_grad"


def group_of(op: Any) -> int | None:
    """The group in the NodeDef of an op or tensor, which is what the runtime reads."""
    attributes = getattr(op, "op", op).node_def.attr
    return attributes[GROUP].i if GROUP in attributes else None


def groups(graph: Any, types: str) -> list[int | None]:
    """The groups of a graph's ops of these types: type by type, each in the graph's order."""
    ops = graph.get_operations()
    return [group_of(op) for wanted in types.split() for op in ops if op.type == wanted]


def nodes_of_functions(graph: Any) -> list[Any]:
    """The nodes of all functions that a graph has."""
    library = graph.as_graph_def().library
    return [node for function in library.function for node in function.node_def]


def groups_in_functions(graph: Any, op: str) -> set[int | None]:
    """The groups of the nodes of a type in a graph's functions."""
    nodes = [node for node in nodes_of_functions(graph) if node.op == op]
    return {node.attr[GROUP].i if GROUP in node.attr else None for node in nodes}


def marked(graph: Any) -> list[str]:
    """Names of all nodes of a graph and its functions with an attribute of stream scopes."""
    nodes = [*graph.as_graph_def().node, *nodes_of_functions(graph)]
    return [node.name for node in nodes if any(a.startswith("_stream_group") for a in node.attr)]


def traced(function: Any, *arguments: Any, autograph: bool = True) -> Any:
    """The graph of a function; its argument is a vector, unless arguments are given."""
    made = tf.function(function, autograph=autograph)
    return made.get_concrete_function(*(arguments or [X])).graph


X = tf.TensorSpec([3], tf.float32)


def least_loaded(*groups: int, **arguments: Any) -> Any:
    """A setter for these groups, or for 0 and 1."""
    return tf.cuda.LeastLoadedStreamSetter(groups or (0, 1), **arguments)

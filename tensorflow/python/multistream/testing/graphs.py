# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of graphs: which group their ops carry."""

from typing import Any

import tensorflow as tf

GROUP = "_stream_group"
NO_GRAD = "_stream_group_no_grad"


def group_of(op: Any) -> int | None:
    """The group in an op's NodeDef, which is what the runtime reads."""
    attributes = op.node_def.attr
    return attributes[GROUP].i if GROUP in attributes else None


def groups_by_type(graph: Any, *types: str) -> list[tuple[str, int | None]]:
    """Type and group of a graph's ops of these types, in order."""
    return [(op.type, group_of(op)) for op in graph.get_operations() if op.type in types]


def marked(graph: Any) -> list[str]:
    """Names of all nodes of a graph and its functions with an attribute of stream scopes."""
    graph_def = graph.as_graph_def()
    nodes = list(graph_def.node)
    for function in graph_def.library.function:
        nodes += function.node_def
    return [node.name for node in nodes if any(a.startswith("_stream_group") for a in node.attr)]


def traced(function: Any, *arguments: Any) -> Any:
    """The graph of a function."""
    return tf.function(function).get_concrete_function(*arguments).graph


X = tf.TensorSpec([3], tf.float32)


def least_loaded(*groups: int, **arguments: Any) -> Any:
    """A setter for these groups, or for 0 and 1."""
    return tf.cuda.LeastLoadedStreamSetter(groups or (0, 1), **arguments)

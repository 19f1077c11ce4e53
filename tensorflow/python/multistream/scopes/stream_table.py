# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.stream_groups_of`: which stream group each node of a graph goes to, and why."""

import collections
import ctypes
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.core.framework import graph_pb2, node_def_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import ops
from tensorflow.python.multistream import compat, loader
from tensorflow.python.multistream.scopes import scope_stack
from tensorflow.python.platform import tf_logging as logging


@dataclasses.dataclass(frozen=True)
class NodeStreamGroup:
    """The stream group of one node of a graph, and why.

    Attributes:
      node: the node's name, in its graph or function body.
      op: the node's type, such as "MatMul".
      group: number of the node's stream group. None: the node has none, and runs on its caller's.
      why: "scope" (the node was built in one), "gradient" (of an op built in a scope), "file"
        (named in TF_STREAM_FROM_FILE), "propagated" (the node follows an input), "policy" (by
        estimate: at run time the graph is optimized first, and times are measured), "leader:
        REASON" (the node must run on group 0) or "default" (none of these); "scope (of call NAME)"
        and so on for a node that follows the call of its function. "file", "propagated", "policy"
        and "leader" only appear at node level (TF_NODE_LEVEL_MULTISTREAM).
      calls: names of the nodes that call the node's function body, outermost first; empty for a
        node of the graph itself. If a node calls several functions, brackets after its name say
        which function, as in "while[body]".
    """

    node: str
    op: str
    group: int | None
    why: str
    calls: tuple[str, ...] = ()


class StreamGroups(Sequence[NodeStreamGroup]):
    """The stream groups of a graph's nodes: a sequence of `NodeStreamGroup` that prints as a table.

    Args:
      title: names the graph.
      rows: one for each node; the nodes of a function body follow the node that calls it.
    """

    def __init__(self, title: str, rows: Iterable[NodeStreamGroup]) -> None:
        self._title = title
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        table = [("node", "op", "group", "why")]
        calls: tuple[str, ...] = ()
        for row in self._rows:
            if row.calls != calls and row.calls and row.calls[-1].endswith("]"):
                table.append(("  " * (len(row.calls) - 1) + f"  {row.calls[-1]}:", "", "", ""))
            calls = row.calls
            group = "-" if row.group is None else str(row.group)
            table.append(("  " * len(calls) + row.node, row.op, group, row.why))
        a, b, c = (max(len(line[i]) for line in table) for i in range(3))
        lines = [f"{w:{a}}  {x:{b}}  {y:{c}}  {z}".rstrip() for w, x, y, z in table]
        return "\n".join([self._summary(), "", *lines])

    def _summary(self) -> str:
        counts = collections.Counter(row.group for row in self._rows)
        groups = sorted(group for group in counts if group is not None)
        parts = [f"{counts[group]} in group {group}" for group in groups]
        if counts[None]:
            parts.append(f"{counts[None]} where the runtime decides (-)")
        return f"Stream groups of {self._title}: {len(self._rows)} nodes; {', '.join(parts)}"


def stream_groups_of(fn_or_graph: Any) -> StreamGroups:
    """Tells which stream group each node of a graph goes to, and why.

    ```python
    print(tf.cuda.stream_groups_of(model))
    for row in tf.cuda.stream_groups_of(model):
      print(row.node, row.op, row.group, row.why)
    ```

    A node of a function body without a scope in the body follows the function's call. So the table
    lists a body once for each of its calls, below the call.

    Args:
      fn_or_graph: a `tf.Graph`, a concrete function, or a `tf.function` that has been traced once.
        For the step of a Keras model:
        `tf.function(model.train_step).get_concrete_function((x, y))`.

    Returns:
      A sequence of rows that prints as a table.

    Raises:
      TypeError: `fn_or_graph` is none of these.
      ValueError: a `tf.function` was not traced yet, or was traced for several signatures.
    """
    title, graph = _graph_of(fn_or_graph)
    return StreamGroups(title, _rows_of(graph))


def _graph_of(fn_or_graph: Any) -> tuple[str, Any]:
    if isinstance(fn_or_graph, ops.Graph):
        name = getattr(fn_or_graph, "name", None)
        return (f"function {name}" if name else "a graph"), fn_or_graph
    if isinstance(fn_or_graph, polymorphic_function.Function):
        traced = list(fn_or_graph._list_all_concrete_functions())
        name = getattr(fn_or_graph, "__name__", "the function")
        how = f"pass {name}.get_concrete_function(...), with arguments as in a call"
        if not traced:
            raise ValueError(
                f"tf.cuda.stream_groups_of({name}): it has not been traced yet, so it has no graph."
                f" Call it first, or {how}."
            )
        if len(traced) > 1:
            raise ValueError(
                f"tf.cuda.stream_groups_of({name}): it has {len(traced)} graphs, one for each "
                f"signature it was called with. Choose one: {how}."
            )
        fn_or_graph = traced[0]
    if isinstance(fn_or_graph, compat.ConcreteFunction):
        return f"function {fn_or_graph.graph.name}", fn_or_graph.graph
    raise TypeError(
        f"tf.cuda.stream_groups_of({fn_or_graph!r}): takes a tf.Graph, a concrete function or a "
        "tf.function. For plain code, pass tf.function(code).get_concrete_function(...)."
    )


# Ops whose functions run on the op's group, with the attributes that name the functions.
_BODIES = {
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
}


def _bodies(node: node_def_pb2.NodeDef) -> Iterator[tuple[str, str]]:
    names = _BODIES.get(node.op, ())
    for name in names:
        if name == "branches":
            for i, function in enumerate(node.attr[name].list.func):
                yield f"{node.name}[{i}]", function.name
        else:
            label = node.name if len(names) == 1 else f"{node.name}[{name}]"
            yield label, node.attr[name].func.name


# (function, caller's group) -> node -> (group, why), for nodes that the runtime's plan places.
_Plan = Callable[[str, int | None], Mapping[str, tuple[int, str]]]


def _rows_of(graph: Any) -> Iterator[NodeStreamGroup]:
    definition = graph.as_graph_def()
    arguments = {tensor.op.name for tensor in getattr(graph, "inputs", ())}
    nodes = (node for node in definition.node if node.name not in arguments)
    return _rows(nodes, graph, None, (), (), _planner(definition))


def _rows(
    nodes: Iterable[node_def_pb2.NodeDef],
    graph: Any,
    caller: NodeStreamGroup | None,
    calls: tuple[str, ...],
    functions: tuple[str, ...],
    plan: _Plan,
) -> Iterator[NodeStreamGroup]:
    """Rows of a function body, or of the graph itself, and of the functions that its nodes call.

    `caller` is the calling node's row, None for the graph itself; `calls` is
    `NodeStreamGroup.calls` of the rows; `functions` are those around the nodes, outermost first,
    this body's included.
    """
    planned = plan(functions[-1] if functions else "", caller.group if caller else None)
    for node in nodes:
        group: int | None
        if node.name in planned:
            group, why = planned[node.name]
        elif scope_stack.GROUP in node.attr:
            group = node.attr[scope_stack.GROUP].i
            why = "gradient" if scope_stack.OF_GRADIENT in node.attr else "scope"
        elif caller is not None and caller.group is not None:
            group, why = caller.group, caller.why
            if " (of call " not in why:
                why += f" (of call {caller.node})"
        else:
            group, why = None, "default"
        row = NodeStreamGroup(node.name, node.op, group, why, calls)
        yield row
        for label, function in _bodies(node):
            definition = None if function in functions else _definition(graph, function)
            if definition is not None:
                inner = (*calls, label), (*functions, function)
                yield from _rows(definition.node_def, graph, row, *inner, plan)


def _definition(graph: Any, name: str) -> Any:
    """Looks a function up in a graph, its outer graphs and the eager context; None if unknown."""
    while graph is not None:
        function = graph._get_function(name)
        if function is not None:
            return function.cached_definition
        graph = getattr(graph, "outer_graph", None)
    eager = context.context()
    return eager.get_function_def(name) if eager.has_function(name) else None


def _planner(graph: graph_pb2.GraphDef) -> _Plan:
    """The runtime's plan of a graph and the functions it calls.

    The result takes a function's name ("" for the graph itself) and its caller's group, and gives
    an empty mapping outside node level, and for a function that the graph lacks.
    """
    if not loader.library.TFMS_IsEnabled():
        return lambda function, home: {}
    serialized = graph.SerializeToString()
    plan = loader.library.TFMS_PlanTable

    def planned(function: str, home: int | None) -> Mapping[str, tuple[int, str]]:
        arguments = (serialized, len(serialized), function.encode(), home or 0)
        buffer = ctypes.create_string_buffer(1 << 16)
        length = plan(*arguments, buffer, len(buffer))
        if length >= len(buffer):
            buffer = ctypes.create_string_buffer(length + 1)
            length = plan(*arguments, buffer, len(buffer))
        if length < 0:
            logging.debug("No plan of %s: %s", function or "the graph", buffer.value.decode())
            return {}
        lines = (line.split("\t") for line in buffer.value.decode().splitlines())
        return {name: (int(group), why) for name, group, why in lines}

    return planned

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.LeastLoadedStreamSetter`: gives each chain of ops to the stream with the least to do."""

import dataclasses
import math
import numbers
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tensorflow.python.framework import op_def_registry, ops, tensor_shape
from tensorflow.python.multistream.groups import stats
from tensorflow.python.multistream.scopes import scope_stack, streams
from tensorflow.python.profiler.internal import flops_registry  # noqa: F401  for _cost

# Sources: ops that only pass on an existing value. If a chain followed its source, all branches
# that share an input would be one chain. If a source kept its own stream, its user would have to
# wait for that stream; so a source moves to its first user.
_SOURCES = frozenset(
    {
        "Const",
        "Placeholder",
        "PlaceholderWithDefault",
        "ReadVariableOp",
        "VarHandleOp",
        "Variable",
        "VariableV2",
    }
)
_BYTES_PER_NUMBER = 4


@dataclasses.dataclass
class _Placed:
    """An op that a setter has placed."""

    group: int | None  # None for a source that the enclosing scope places
    load: float  # the op's share of the group's load
    is_source: bool  # the op only passes on an existing value
    is_free: bool  # a source without a user yet; the first user moves the source


class LeastLoadedStreamSetter(streams.StreamSetter):
    """Gives each chain of ops to the stream that has the least to do, for `tf.stream`.

    ```python
    with tf.stream(tf.cuda.LeastLoadedStreamSetter()):
      outputs = [tower(x) for tower in towers]
    ```

    An op with an input from an op that the setter has placed goes to the same stream (with several
    such inputs, to the first one's), so that a chain stays together and streams wait for each other
    only where chains meet. Any other op starts a chain, on the stream with the smallest load; of
    equal loads, on the first. Sources (constants, placeholders, variables and their reads) start no
    chain, so branches that share a source are separate chains. A source is on the stream with the
    smallest load until it has a user, and then on the first user's stream. The setter does not
    place the arguments of a `tf.function` or the ops of inner scopes: their users start chains.

    Each graph has loads of its own; a `tf.function` and the functions traced in it count together.
    So the same program gives the same groups. Gradients follow their ops, and add no load.

    Args:
      streams: the streams to use, each a `tf.cuda.Stream` or the number of a group. None for all
        groups of the first GPU.
      load: how much an op adds to its stream's load.
        `"bytes"`: the bytes of the op's outputs, or of the variable whose handle the op makes. An
        unknown dimension counts as 1.
        `"cost"`: floating point operations, as estimated by the statistics of TensorFlow's
        profiler; an unknown dimension counts as 1. An op without statistics, such as a call of a
        function, counts one operation for each 4 bytes of output: the cost of writing each number
        once.
        A function: takes the `tf.Operation`, returns a number that is not negative.
      op_types: types of the ops that may start a chain, such as `["MatMul", "Conv2D"]`. An op of
        another type that follows no chain goes to the enclosing scope, if any. None for all types
        but sources. Sources may be listed, too: `["VarHandleOp"]` spreads variables, and their
        users follow.

    Raises:
      TypeError: an argument is of a wrong type; or, at an op, `load` returned a wrong type.
      ValueError: `streams` is empty, names a group twice or a group that this process does not
        have; `load` is another string; `op_types` names an unknown op; or, at an op, a load is
        negative or not finite.
    """

    def __init__(
        self,
        streams: Iterable[streams.Stream | int] | None = None,
        load: str | Callable[[Any], float] = "bytes",
        op_types: Iterable[str] | None = None,
    ) -> None:
        self._groups = _groups_of(streams)
        self._load = load
        self._measure = _measure_of(load)
        self._op_types = _op_types_of(op_types)
        self._lock = threading.RLock()
        # _placed: graph -> op name -> placement. _loads: outermost graph -> group -> load.
        self._placed: weakref.WeakKeyDictionary[Any, dict[str, _Placed]]
        self._placed = weakref.WeakKeyDictionary()
        self._loads: weakref.WeakKeyDictionary[Any, dict[int, float]] = weakref.WeakKeyDictionary()
        self._latest: Mapping[int, float] = dict.fromkeys(self._groups, 0)

    def __call__(self, op: Any) -> int | None:
        """Chooses the stream of an op; see `tf.cuda.StreamSetter`.

        Args:
          op: a `tf.Operation` that has just been built.

        Returns:
          The number of a stream group. None for an op that `op_types` leaves out.
        """
        load = _checked_load(self._measure(op), self._load, op)
        with self._lock:
            outermost = streams.outermost_graph(op.graph)
            loads = self._loads.setdefault(outermost, dict.fromkeys(self._groups, 0))
            self._latest = loads
            placed = self._placed.setdefault(op.graph, {})
            return self._place(op, load, placed, loads)

    def loads(self) -> dict[int, float]:
        """The load of each stream.

        Returns:
          The load by number of the stream group, in the order of `streams`, for the graph in which
          the setter has placed an op last; all 0 before the first op.
        """
        with self._lock:
            return dict(self._latest)

    def __repr__(self) -> str:
        parts = [f"streams={list(self._groups)}", f"load={self._load!r}"]
        if self._op_types is not None:
            parts.append(f"op_types={sorted(self._op_types)}")
        return f"tf.cuda.LeastLoadedStreamSetter({', '.join(parts)})"

    def _place(
        self, op: Any, load: float, placed: dict[str, _Placed], loads: dict[int, float]
    ) -> int | None:
        inputs = [placed[source.name] for source in _input_ops(op) if source.name in placed]
        followed = next((known.group for known in inputs if not known.is_source), None)
        may_start = self._op_types is None or op.type in self._op_types
        if followed is None and self._is_source(op, bool(inputs)):
            group = inputs[0].group if inputs else (_least(loads) if may_start else None)
            placed[op.name] = _Placed(group, load, is_source=True, is_free=True)
            if group is not None:
                loads[group] += load
            return group
        if followed is None and not may_start:
            return None
        sources = {source_op.name: (source_op, known) for source_op, known in _free(op, placed)}
        for _, source in sources.values():
            if source.group is not None:
                loads[source.group] -= source.load
        group = _least(loads) if followed is None else followed
        for source_op, source in sources.values():
            if source.group != group:
                scope_stack.set_group(source_op, group)
            source.group, source.is_free = group, False
            loads[group] += source.load
        placed[op.name] = _Placed(group, load, is_source=False, is_free=False)
        loads[group] += load
        return group

    def _is_source(self, op: Any, hands_on: bool) -> bool:
        if self._op_types is not None and op.type in self._op_types:
            return False
        return op.type in _SOURCES or (op.type == "Identity" and hands_on)


def _least(loads: Mapping[int, float]) -> int:
    return min(loads, key=lambda group: loads[group])


def _input_ops(op: Any) -> list[Any]:
    try:
        return [tensor.op for tensor in op.inputs]
    except KeyError:  # in an imported loop, one of the inputs is imported after the op
        names = {name.split(":")[0] for name in op.node_def.input if not name.startswith("^")}
        return [known for known in op.graph.get_operations() if known.name in names]


def _free(op: Any, placed: Mapping[str, _Placed]) -> Iterator[tuple[Any, _Placed]]:
    """The free sources (`_Placed.is_free`) among an op's inputs, and those sources' own sources."""
    for input_op in _input_ops(op):
        source = placed.get(input_op.name)
        if source is not None and source.is_free:
            yield input_op, source
            yield from _free(input_op, placed)


def _groups_of(given: Any) -> tuple[int, ...]:
    if given is None:
        return tuple(range(stats.stream_group_count()))
    call = f"tf.cuda.LeastLoadedStreamSetter(streams={given!r})"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{call}: streams must be a list of tf.cuda.Stream or of ints")
    groups = [stream.group if isinstance(stream, streams.Stream) else stream for stream in given]
    if not groups:
        raise ValueError(f"{call}: there must be a stream. None stands for all groups")
    for i, group in enumerate(groups):
        streams.check_group(group, call, f"streams[{i}]")
        if group in groups[:i]:
            raise ValueError(f"{call}: streams names group {group} twice")
    return tuple(groups)


def _measure_of(load: Any) -> Callable[[Any], Any]:
    if isinstance(load, str) and load in _MEASURES:
        return _MEASURES[load]
    if callable(load) and not isinstance(load, type):
        return load  # type: ignore[no-any-return]
    kind = ValueError if isinstance(load, str) else TypeError
    raise kind(
        f"tf.cuda.LeastLoadedStreamSetter: load={load!r} must be 'bytes', 'cost' or a function of "
        "an op that returns a number"
    )


def _op_types_of(given: Any) -> frozenset[str] | None:
    if given is None:
        return None
    call = f"tf.cuda.LeastLoadedStreamSetter: op_types={given!r}"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{call} must be a list of types of ops, such as ['MatMul']")
    types = list(given)
    for name in types:
        if not isinstance(name, str):
            raise TypeError(f"{call}: {name!r} must be a str, such as 'MatMul'")
        if op_def_registry.get(name) is None:
            raise ValueError(
                f"{call}: TensorFlow has no op '{name}'. Its types are those of op.type, such as "
                "'MatMul'; load an op's library before"
            )
    return frozenset(types)


def _checked_load(load: Any, measure: Any, op: Any) -> float:
    what = f"tf.cuda.LeastLoadedStreamSetter: load={measure!r} said {load!r} for op '{op.name}'"
    if not isinstance(load, numbers.Real) or isinstance(load, bool):
        raise TypeError(f"{what} ({op.type}), and must say a number")
    if not 0 <= float(load) < math.inf:
        raise ValueError(f"{what} ({op.type}), and must say a finite number, at least 0")
    return int(load) if isinstance(load, numbers.Integral) else float(load)


def _bytes(op: Any) -> int:
    """Bytes of an op's outputs, or of the variable whose handle the op makes."""
    if op.type == "VarHandleOp":
        shape = tensor_shape.TensorShape(op.get_attr("shape"))
        return _count(shape) * int(op.get_attr("dtype").size)
    return sum(_count(output.shape) * int(output.dtype.size) for output in op.outputs)


def _count(shape: Any) -> int:
    return 1 if shape.rank is None else int(_with_known_dimensions(shape).num_elements())


def _cost(op: Any) -> float:
    try:
        known = ops.get_stats_for_node_def(_KnownDimensions(op.graph), op.node_def, "flops").value
    except (ValueError, ArithmeticError):  # for example a convolution that is not NHWC
        known = None
    return _bytes(op) / _BYTES_PER_NUMBER if known is None else float(known)


def _with_known_dimensions(shape: Any) -> Any:
    if shape.rank is None:
        return shape
    return tensor_shape.TensorShape([1 if size is None else size for size in shape.as_list()])


class _KnownDimensions:
    """A graph whose unknown dimensions are 1: TensorFlow's statistics fail on unknown ones."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def get_tensor_by_name(self, name: str) -> Any:
        shape = _with_known_dimensions(self._graph.get_tensor_by_name(name).shape)
        # Stands for the tensor, of which the statistics ask only the shape.
        return types.SimpleNamespace(shape=shape, get_shape=lambda: shape)


_MEASURES: dict[str, Callable[[Any], float]] = {"bytes": _bytes, "cost": _cost}

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
"""The stream scopes that each thread is in, and what TensorFlow's own files call because of them.

Hooks in ops.py, gradients_util.py, backprop.py and record.py call this module, so it imports none
of TensorFlow's modules while it is itself imported. `streams.py` has the public functions.

A scope counts for the graph in which it was entered, and for no other: the body of a function that
is traced meanwhile may be called from other scopes too, so its call gets the group instead.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tensorflow.core.framework import attr_value_pb2

# Attributes of a NodeDef. The runtime reads GROUP only.
GROUP = "_stream_group"
NO_GRADIENT = "_stream_group_no_grad"  # the op's gradient does not follow it
OF_GRADIENT = "_stream_group_gradient"  # the group is that of the op whose gradient this is


class Entry(NamedTuple):
    """A scope that a thread has entered.

    Attributes:
      graph: whose ops it groups; None for no ops at all.
      group: number of the stream group.
      include_grad: whether gradients of the ops follow them.
      attributes: names and values that the ops get.
      owner: what entered it.
    """

    graph: Any
    group: int
    include_grad: bool
    attributes: tuple[tuple[str, attr_value_pb2.AttrValue], ...]
    owner: object


class _Active(threading.local):
    """The scopes that this thread is in, innermost last."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []


active = _Active()

# Lets eager code, which sums gradients too, skip all looking.
_any_entered = False


def enter(
    graph: Any, group: int, include_grad: bool, of_gradient: bool = False, owner: object = None
) -> None:
    """Enters a scope in this thread.

    Args:
      graph: whose ops to group; None for no ops at all.
      group: number of the stream group.
      include_grad: whether gradients of the ops follow them.
      of_gradient: whether the ops are gradients that follow the ops of another scope.
      owner: what `leave` names.
    """
    global _any_entered
    _any_entered = True
    attributes = [(GROUP, attr_value_pb2.AttrValue(i=group))]
    if not include_grad:
        attributes.append((NO_GRADIENT, attr_value_pb2.AttrValue(b=True)))
    if of_gradient:
        attributes.append((OF_GRADIENT, attr_value_pb2.AttrValue(b=True)))
    active.entries.append(Entry(graph, group, include_grad, tuple(attributes), owner))


def leave(owner: object) -> bool:
    """Leaves the innermost scope of this thread that `owner` entered.

    Args:
      owner: as given to `enter`.

    Returns:
      False if this thread is in no scope of this owner.
    """
    entries = active.entries
    for i in reversed(range(len(entries))):
        if entries[i].owner is owner:
            del entries[i]
            return True
    return False


def mark(graph: Any, op: Any) -> None:
    """Gives a new op the group of the scope in which it is built (hook of ops.py).

    Args:
      graph: the op's graph.
      op: the op. One that has a group, such as one that is copied or imported, keeps it.
    """
    entry = _innermost(graph)
    if entry is None:
        return
    if op.type == "Placeholder" and graph.building_function:
        return  # an argument of the function, which belongs to its callers
    if attribute(op, GROUP) is None:
        for name, value in entry.attributes:
            op._set_attr(name, value)


def attribute(op: Any, name: str) -> Any:
    """Reads an attribute that an op may lack.

    Args:
      op: an op of a graph.
      name: the attribute's name.

    Returns:
      Its value, or None.
    """
    try:
        return op.get_attr(name)
    except ValueError:
        return None


def follow_op(
    scope: Callable[..., contextlib.AbstractContextManager[None]],
) -> Callable[..., contextlib.AbstractContextManager[None]]:
    """Makes a context in which an op's gradient is built put it in the op's group.

    Hook of gradients_util.py, around what `tf.gradients` does for one op.

    Args:
      scope: makes the context; its first argument is the op.

    Returns:
      The same with the group.
    """

    @functools.wraps(scope)
    @contextlib.contextmanager
    def in_group(op: Any, *args: Any) -> Iterator[None]:
        with _gradient_scope(_gradient_group(op)), scope(op, *args):
            yield

    return in_group


def add_group(op_attributes: Any) -> Any:
    """Adds the group to what a tape keeps of an op (hook of backprop.py).

    A tape hands these attributes to the gradient function, and often neither inputs nor outputs.

    Args:
      op_attributes: names and values, alternating.

    Returns:
      The same with the group at the end if the op's gradient is to follow the op.
    """
    if active.entries:
        entry = _innermost(_default_graph())
        if entry is not None and entry.include_grad:
            return (*(op_attributes or ()), GROUP, entry.group)
    return op_attributes


def follow_taped_op(gradient_function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes the function that tapes call for an op's gradient put it in the op's group.

    Hook of backprop.py; `add_group` has recorded the group.

    Args:
      gradient_function: takes the op's name, its attributes and more.

    Returns:
      The same with the group.
    """

    @functools.wraps(gradient_function)
    def in_group(op_name: str, op_attributes: Any, *args: Any, **kwargs: Any) -> Any:
        if not op_attributes or len(op_attributes) < 2 or op_attributes[-2] != GROUP:
            return gradient_function(op_name, op_attributes, *args, **kwargs)
        with _gradient_scope(op_attributes[-1]):
            return gradient_function(op_name, op_attributes, *args, **kwargs)

    return in_group


def follow_call(backward_function: Callable[..., Any]) -> Callable[..., Any]:
    """Puts the gradient of a call that a tape records in the call's group (hook of record.py).

    Args:
      backward_function: what the tape calls for the gradient.

    Returns:
      The same in the group of the scope that is active now, if gradients follow it.
    """
    if not active.entries:
        return backward_function
    entry = _innermost(_default_graph())
    if entry is None or not entry.include_grad:
        return backward_function
    group = entry.group

    @functools.wraps(backward_function)
    def in_group(*args: Any) -> Any:
        with _gradient_scope(group):
            return backward_function(*args)

    return in_group


def follow_summands(sum_gradients: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a tape's sum of gradients that are all in one group be there too.

    Hook of backprop.py. A tensor used several times in one branch has such a sum.

    Args:
      sum_gradients: takes a list of gradients.

    Returns:
      The same with the group.
    """

    @functools.wraps(sum_gradients)
    def in_group(gradients: Sequence[Any]) -> Any:
        if not _any_entered or len(gradients) < 2:
            return sum_gradients(gradients)
        groups = {_gradient_group(getattr(gradient, "op", None)) for gradient in gradients}
        with _gradient_scope(groups.pop() if len(groups) == 1 else None):
            return sum_gradients(gradients)

    return in_group


def _innermost(graph: Any) -> Entry | None:
    entry: Entry
    for entry in reversed(active.entries):
        if entry.graph is graph:
            return entry
    return None


def _default_graph() -> Any:
    from tensorflow.python.framework import ops  # noqa: PLC0415  it imports this module

    return ops.get_default_graph()


def _gradient_group(op: Any) -> int | None:
    """The group that an op's gradient is to follow it to, or None."""
    if op is None:
        return None
    group: int | None = attribute(op, GROUP)
    if group is not None and attribute(op, NO_GRADIENT):
        return None
    return group


@contextlib.contextmanager
def _gradient_scope(group: int | None) -> Iterator[None]:
    """A scope for gradient ops; None leaves them in the scope in which they are asked for."""
    if group is None:
        yield
        return
    owner = object()
    enter(_default_graph(), group, include_grad=True, of_gradient=True, owner=owner)
    try:
        yield
    finally:
        leave(owner)

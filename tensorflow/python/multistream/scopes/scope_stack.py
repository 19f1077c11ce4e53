# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The stack of stream scopes of each thread, and the hooks that TensorFlow's own files call.

Hooks in ops.py, gradients_util.py, backprop.py and record.py call this module, so the module
imports none of TensorFlow's Python modules at import time. `streams.py` has the public functions.

A scope applies only to the graph in which the scope was entered. A function traced inside the scope
may be called from other scopes as well, so the node that calls the function gets the group, and the
nodes of its body do not.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tensorflow.core.framework import attr_value_pb2

# Attributes of a NodeDef. The runtime reads GROUP and POLICY.
GROUP = "_stream_group"
NO_GRADIENT = "_stream_group_no_grad"  # the op's gradient does not follow it
OF_GRADIENT = "_stream_group_gradient"  # the group is that of the op whose gradient this is
POLICY = "_stream_policy"  # the policy that gives the op a group, if no scope did

# As an Entry's graph: the entry applies to every graph that is built in its scope.
ANY_GRAPH = object()

# The number of a stream group, or a function of an op that returns the number or None.
Where = int | Callable[[Any], int | None]


class Entry(NamedTuple):
    """A scope that a thread has entered."""

    graph: Any  # whose ops get the group; None for no ops at all, or ANY_GRAPH
    where: Where
    flags: tuple[str, ...]  # attributes that the ops get besides the group
    owner: object  # that entered the scope


class _Active(threading.local):
    """The scopes that this thread is in, innermost last, and whether it is calling a setter."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_asking = False


active = _Active()

# Fast path of `follow_summands` for eager code: nothing to look for until a scope was entered.
_any_entered = False


def enter(
    graph: Any, where: Where, include_grad: bool, of_gradient: bool = False, owner: object = None
) -> None:
    """Enters a scope in this thread, which `leave` leaves by its owner; see `Entry`.

    `where` may return None, to defer to the enclosing scope. With `of_gradient`, the ops are
    gradients that follow the ops of another scope.
    """
    global _any_entered
    _any_entered = True
    flags = (() if include_grad else (NO_GRADIENT,)) + ((OF_GRADIENT,) if of_gradient else ())
    active.entries.append(Entry(graph, where, flags, owner))


def leave(owner: object) -> None:
    """Leaves the innermost scope of this thread that `owner` entered."""
    entries = active.entries
    for i in reversed(range(len(entries))):
        if entries[i].owner is owner:
            del entries[i]
            return
    raise RuntimeError(f"{owner!r} is left in a thread that has not entered it")


def carry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function run in the scopes that this thread, not the calling one, is in now."""
    entries = tuple(active.entries)
    if not entries:
        return function

    def in_scopes(*args: Any, **kwargs: Any) -> Any:
        before, active.entries = active.entries, list(entries)
        try:
            return function(*args, **kwargs)
        finally:
            active.entries = before

    return in_scopes


def mark(graph: Any, op: Any) -> None:
    """Gives a new op the group of the scope in which it is built (hook of ops.py).

    An op that has a group already, because it is copied or imported, keeps the group.
    """
    graphs = (graph, ANY_GRAPH)
    entries = [entry for entry in reversed(active.entries) if entry.graph in graphs]
    if not entries or active.is_asking:
        return  # ops that a setter itself builds are in no scope
    if op.type == "Placeholder" and graph.building_function:
        return  # an argument of the function: the callers decide where its value is
    if attribute(op, GROUP) is not None:
        return
    for entry in entries:
        group = entry.where if isinstance(entry.where, int) else _ask(entry.where, op)
        if group is None:
            continue
        set_group(op, group)
        for flag in entry.flags:
            op._set_attr(flag, attr_value_pb2.AttrValue(b=True))
        return


def _ask(setter: Callable[[Any], int | None], op: Any) -> int | None:
    active.is_asking = True
    try:
        return setter(op)
    finally:
        active.is_asking = False


def set_group(op: Any, group: int) -> None:
    """Sets an op's group, replacing an earlier one."""
    op._set_attr(GROUP, attr_value_pb2.AttrValue(i=group))


def attribute(op: Any, name: str) -> Any:
    """Reads an attribute of an op; None if the op lacks it."""
    try:
        return op.get_attr(name)
    except ValueError:
        return None


def follow_op(
    scope: Callable[..., contextlib.AbstractContextManager[None]],
) -> Callable[..., contextlib.AbstractContextManager[None]]:
    """Wraps a context that builds an op's gradient: the gradient goes to the op's group.

    Hook of gradients_util.py, around the work of `tf.gradients` for one op, which is the first
    argument of `scope`.
    """

    @functools.wraps(scope)
    @contextlib.contextmanager
    def in_group(op: Any, *args: Any) -> Iterator[None]:
        with _gradient_scope(_gradient_group(op)), scope(op, *args):
            yield

    return in_group


def add_group(op_attributes: Any, outputs: Sequence[Any]) -> Any:
    """Adds the group to the attributes that a tape keeps of an op (hook of backprop.py).

    A tape hands these attributes, names and values in turn, to the gradient function, and often
    neither inputs nor outputs. The group is at the end if the op's gradient is to follow the op.
    """
    group = _taped_group(outputs)
    return op_attributes if group is None else (*(op_attributes or ()), GROUP, group)


def follow_taped_op(gradient_function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the function that tapes call for an op's gradient: the gradient gets the op's group.

    Hook of backprop.py; `add_group` has recorded the group.
    """

    @functools.wraps(gradient_function)
    def in_group(op_name: str, op_attributes: Any, *args: Any, **kwargs: Any) -> Any:
        if not op_attributes or len(op_attributes) < 2 or op_attributes[-2] != GROUP:
            return gradient_function(op_name, op_attributes, *args, **kwargs)
        with _gradient_scope(op_attributes[-1]):
            return gradient_function(op_name, op_attributes, *args, **kwargs)

    return in_group


def follow_call(
    backward_function: Callable[..., Any], outputs: Sequence[Any]
) -> Callable[..., Any]:
    """Puts the gradient of a call that a tape records in the group of the call's `outputs`.

    Hook of record.py. If the gradient is not to follow the call, nothing changes.
    """
    group = _taped_group(outputs)
    if group is None:
        return backward_function

    @functools.wraps(backward_function)
    def in_group(*args: Any) -> Any:
        with _gradient_scope(group):
            return backward_function(*args)

    return in_group


def follow_summands(sum_gradients: Callable[..., Any]) -> Callable[..., Any]:
    """Puts a tape's sum of gradients in their group, if all of them are in one group.

    Hook of backprop.py. A tape sums the gradients of a tensor that is used several times in one
    branch.
    """

    @functools.wraps(sum_gradients)
    def in_group(gradients: Sequence[Any]) -> Any:
        if not _any_entered or len(gradients) < 2:
            return sum_gradients(gradients)
        groups = {_gradient_group(getattr(gradient, "op", None)) for gradient in gradients}
        with _gradient_scope(groups.pop() if len(groups) == 1 else None):
            return sum_gradients(gradients)

    return in_group


def follow_colocation(
    colocate: Callable[..., contextlib.AbstractContextManager[None]],
) -> Callable[..., contextlib.AbstractContextManager[None]]:
    """Makes `tf.compat.v1.colocate_with(op)` put ops in the group of `op`, too.

    Hook of ops.py, around the public function only: ops that TensorFlow itself colocates, as
    optimizers do, stay in the user's scope.
    """

    @contextlib.contextmanager
    def both(op: Any, ignore_existing: bool, group: int, include_grad: bool) -> Iterator[None]:
        with colocate(op, ignore_existing), _scope(group, include_grad):
            yield

    @functools.wraps(colocate)
    def in_group(op: Any, ignore_existing: bool = False) -> contextlib.AbstractContextManager[None]:
        target = getattr(op, "op", op)  # of a tensor or variable
        group = attribute(target, GROUP) if hasattr(target, "get_attr") else None
        if group is None:
            return colocate(op, ignore_existing)
        return both(op, ignore_existing, group, not attribute(target, NO_GRADIENT))

    return in_group


def _gradient_group(op: Any) -> int | None:
    """The group of an op whose gradient is to follow the op; None otherwise."""
    if op is None or attribute(op, NO_GRADIENT):
        return None
    return attribute(op, GROUP)  # type: ignore[no-any-return]


def _taped_group(outputs: Sequence[Any]) -> int | None:
    """The group of the op that made `outputs`, if its gradient is to follow the op; else None."""
    if not active.entries:
        return None
    groups = (_gradient_group(getattr(output, "op", None)) for output in outputs or ())
    return next((group for group in groups if group is not None), None)


def _gradient_scope(group: int | None) -> contextlib.AbstractContextManager[None]:
    """A scope for gradient ops; None leaves them in the scope in which they are computed."""
    if group is None:
        return contextlib.nullcontext()
    return _scope(group, include_grad=True, of_gradient=True)


@contextlib.contextmanager
def _scope(group: int, include_grad: bool, of_gradient: bool = False) -> Iterator[None]:
    from tensorflow.python.framework import ops  # noqa: PLC0415  it imports this module

    owner = object()
    enter(ops.get_default_graph(), group, include_grad, of_gradient, owner)
    try:
        yield
    finally:
        leave(owner)

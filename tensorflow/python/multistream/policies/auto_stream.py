# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.auto_stream`: lets the runtime choose the streams of a function's ops."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.multistream.groups import stats
from tensorflow.python.multistream.scopes import scope_stack, streams

_F = TypeVar("_F", bound=Callable[..., Any])

# The values of TF_MULTI_STREAM_POLICY.
POLICIES = ("none", "embedding", "full_graph", "cost")


def auto_stream(
    policy: str = "cost", groups: int | None = None, always: bool = False
) -> "AutoStream":
    """Splits the graph of a function over the stream groups of its GPU.

    ```python
    @tf.cuda.auto_stream("cost")
    @tf.function
    def step(x, y):
      ...
    ```

    The policy splits all ops that are built while the function is traced, gradients and called
    functions included; a `tf.cuda.stream_scope` always overrides the policy. The results are the
    same. The policy needs several stream groups (`TF_GPU_STREAM_GROUP_COUNT`) and
    `TF_NODE_LEVEL_MULTISTREAM=true`; otherwise `auto_stream` has no effect.

    The first steps are measured, and a graph is only split if its plan is faster than one stream.
    Measuring takes some 30 steps for one plan, and twice as many for "cost", which tries several.
    Steps that run at the same time as others are not measured, so they stay on one stream.

    Args:
      policy: "embedding": splits embedding lookups and their gradients. "full_graph": the most ops
        that may run at the same time, with the fewest waits (Kwon et al., Nimble, NeurIPS 2020).
        "cost": list scheduling (as HEFT, Topcuoglu et al., 2002) by measured times of the ops, in
        which a wait has a cost; "cost" also tries the other two. "none": splits nothing, even if
        `TF_MULTI_STREAM_POLICY` would.
      groups: how many stream groups the policy may use; None for all of them.
      always: whether the plan is used unmeasured, from the first step on.

    Returns:
      A decorator for functions, methods and `tf.function`s that have not been called, and a context
      manager for the code inside.

    Raises:
      TypeError: `policy` is not a string, or `groups` is neither an int nor None.
      ValueError: `policy` is unknown, or the GPU has fewer than `groups` stream groups. As a
        decorator: the `tf.function` has been called.
    """
    if not isinstance(policy, str):
        hint = ": as a decorator it is @tf.cuda.auto_stream()" if callable(policy) else ""
        raise TypeError(f"tf.cuda.auto_stream: policy={policy!r} is not a string{hint}")
    if policy not in POLICIES:
        raise ValueError(
            f"tf.cuda.auto_stream: policy={policy!r} is not one of {', '.join(POLICIES)}"
        )
    if groups is not None:
        if not isinstance(groups, int) or isinstance(groups, bool):
            raise TypeError(f"tf.cuda.auto_stream: groups={groups!r} is not an int or None")
        most = stats.stream_group_count()
        if groups < 1 or groups > most > 1:
            raise ValueError(
                f"tf.cuda.auto_stream: groups={groups} is not a number from 1 to {most}, as many "
                "as there are (TF_GPU_STREAM_GROUP_COUNT)"
            )
    return AutoStream(policy, groups, always)


class AutoStream:
    """A decorator and context manager; see `tf.cuda.auto_stream`, which makes it."""

    def __init__(self, policy: str, groups: int | None, always: bool) -> None:
        text = f"{policy}:{groups or 0}" + (":always" if always else "")
        self._text = text
        self._value = attr_value_pb2.AttrValue(s=text.encode())

    def __enter__(self) -> None:
        streams.graph_of_scope("tf.cuda.auto_stream")
        scope_stack.enter(scope_stack.ANY_GRAPH, self._mark, include_grad=True, owner=self)

    def __exit__(self, *exception: object) -> None:
        scope_stack.leave(self)

    def _mark(self, op: Any) -> None:
        """Marks an op that is in no inner scope; outer scopes may still give the op a group."""
        if scope_stack.attribute(op, scope_stack.POLICY) is None:
            op._set_attr(scope_stack.POLICY, self._value)

    def __call__(self, function: _F) -> _F:
        """Decorates a function, a method or a `tf.function`; errors as of `tf.cuda.auto_stream`."""
        if isinstance(function, polymorphic_function.Function):
            try:
                function._decorate(functools.partial(streams.in_scope, self))
            except ValueError as error:
                raise ValueError(
                    f"tf.cuda.auto_stream: {function!r} has been called, so its graph is built. "
                    "Decorate it before its first call."
                ) from error
            return function
        streams.check_decorated(
            function, "tf.cuda.auto_stream", "To use it inside a class, decorate a method."
        )
        return streams.in_scope(self, function)

    def __repr__(self) -> str:
        return f"tf.cuda.auto_stream({self._text!r})"

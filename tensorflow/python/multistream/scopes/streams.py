# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.stream`, `tf.cuda.stream_scope`: put the ops that a program builds on streams."""

import abc
import contextlib
import dataclasses
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api as autograph
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import eager_function_run
from tensorflow.python.framework import ops
from tensorflow.python.multistream.groups import stats, synchronize
from tensorflow.python.multistream.scopes import replica_scopes, scope_stack

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")

replica_scopes.attach()

# The largest value of TF_GPU_STREAM_GROUP_COUNT.
_MOST_GROUPS = 64


@dataclasses.dataclass(frozen=True)
class Stream:
    """A stream of a GPU, as `tf.cuda.get_stream` gives it.

    A stream is a context manager, for ops and their gradients:

    ```python
    with tf.cuda.get_stream(1):              # the same as tf.stream(1)
      a = left(x)
    ```

    Attributes:
      group: number of its stream group.
    """

    group: int

    def __enter__(self) -> "Stream":
        check_group(self.group, f"tf.cuda.{self!r}", "group")
        graph = graph_of_scope(f"tf.cuda.get_stream({self.group})")
        scope_stack.enter(graph, self.group, include_grad=True, owner=self)
        return self

    def __exit__(self, *exception: object) -> None:
        scope_stack.leave(self)

    def run(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> _T:
        """Calls a function that builds ops on this stream, in one line.

        ```python
        left, right = tf.cuda.get_stream(1), tf.cuda.get_stream(2)
        a = left.run(tf.matmul, x, v)
        b = right.run(tf.matmul, x, w)
        a = left.run(tf.tanh, a)
        ```

        Args:
          fn: any function. `run` is called in a `tf.function` or a graph of `tf.compat.v1`.
          *args: positional arguments of `fn`.
          **kwargs: named arguments of `fn`.

        Returns:
          What `fn` returns.

        Raises:
          TypeError: `fn` is not a function.
          RuntimeError: `run` is called in eager code, where ops run one by one.
          ValueError: this process has no stream of this number (any more).
        """
        if not callable(fn):
            raise TypeError(
                f"tf.cuda.get_stream({self.group}).run: fn={fn!r} is not a function. Pass the "
                "function and its arguments one by one: run(tf.matmul, x, w)"
            )
        # AutoGraph leaves functions of this package, and what they call, as they are.
        if ag_ctx.control_status_ctx().status == ag_ctx.Status.ENABLED:
            fn = autograph.tf_convert(fn, ag_ctx.control_status_ctx())
        with self:
            return fn(*args, **kwargs)

    def synchronize(self) -> None:
        """Waits, on the host, until this stream's group has completed all work it was given.

        The wait covers the group of this number on every GPU. Timings and foreign libraries need
        this call; TensorFlow's own results do not. Without stream groups the call waits for all
        of TensorFlow's devices.

        Raises:
          RuntimeError: called while a function is traced or a graph is built, when nothing runs
            yet; or work on the streams has failed.
          ValueError: this process has no stream of this number (any more).
        """
        call = f"tf.cuda.get_stream({self.group}).synchronize()"
        check_group(self.group, call, "the stream's group")
        synchronize.wait_for(self.group, call)


class StreamSetter(abc.ABC):
    """Chooses the stream of each op that is built.

    `tf.cuda.stream_scope` takes an instance of a subclass; `tf.stream` takes any function as well.

    ```python
    class ByName(tf.cuda.StreamSetter):
      def __call__(self, op):
        return 1 if op.name.startswith("left") else None

    with tf.stream(ByName()):
      ...
    ```
    """

    @abc.abstractmethod
    def __call__(self, op: Any) -> int | Stream | None:
        """Chooses the stream of an op.

        Args:
          op: a `tf.Operation` that has just been built, with inputs and outputs, and without a
            group.

        Returns:
          The number of a stream group, or a stream. None leaves the choice to the enclosing scope,
          if any.
        """


def get_stream(i: int) -> Stream:
    """The stream of a stream group, for `tf.cuda.stream_scope`.

    Args:
      i: number of the group, from 0 to `tf.cuda.stream_group_count() - 1`. With one group, any
        number that `TF_GPU_STREAM_GROUP_COUNT` could allow, from 0 to 63: the same program then
        runs on one stream, unless its session's ConfigProto asks for more groups.

    Returns:
      The stream.

    Raises:
      TypeError: `i` is not an int.
      ValueError: this process has no group `i`.
    """
    check_group(i, f"tf.cuda.get_stream({i!r})", "i")
    return Stream(i)


def check_group(group: object, call: str, name: str) -> None:
    """Checks the number of a stream group that a caller gave as `name` in `call`, for the error."""
    if not isinstance(group, int) or isinstance(group, bool):
        raise TypeError(f"{call}: {name} must be an int, the number of a stream group")
    count = stats.stream_group_count()
    # With one group, every number that could be valid is accepted: a session's ConfigProto may ask
    # for more groups later. The session then reports an op whose group it lacks.
    known = count > 1
    if not known:
        count = _MOST_GROUPS
    if 0 <= group < count:
        return
    reason = f"there is no stream group {group}: groups are numbered from 0 to {count - 1}"
    if group >= count and known:
        reason += f", since this process has {count}"
        if group < _MOST_GROUPS:
            reason += f". Set TF_GPU_STREAM_GROUP_COUNT={group + 1} or more to have it"
        else:
            reason += f". TF_GPU_STREAM_GROUP_COUNT takes at most {_MOST_GROUPS}"
    raise ValueError(f"{call}: {reason}")


def stream(
    x: int | Stream | Callable[[Any], int | Stream | None], include_grad: bool = True
) -> "StreamScope":
    """Puts the ops that are built in the scope, and their gradients, on a stream.

    The same as `tf.cuda.stream_scope`, for less typing:

    ```python
    with tf.stream(0):
      a = left(x)
      with tf.stream(1):
        b = right(x)
      c = a + 1.0            # on stream 0 again
    ```

    Args:
      x: number of a stream group, as for `tf.cuda.get_stream`; a `tf.cuda.Stream`; or a function
        that chooses the stream of each op (see `tf.cuda.StreamSetter`), such as a
        `tf.cuda.LeastLoadedStreamSetter`. `tf.device` takes functions in the same way.
      include_grad: as for `tf.cuda.stream_scope`.

    Returns:
      A context manager and decorator. `with ... as s` gives the `tf.cuda.Stream`, or the function.

    Raises:
      TypeError: `x` is none of these. In the scope, at an op: the function returned neither a
        number nor a stream nor None.
      ValueError: this process does not have the stream `x`. In the scope, at an op: the function
        returned the number of a group that this process does not have.
    """
    if isinstance(x, int) and not isinstance(x, bool):
        check_group(x, f"tf.stream({x!r})", "x")
        return StreamScope(Stream(x), include_grad, "tf.stream")
    if isinstance(x, Stream):
        check_group(x.group, f"tf.stream({x!r})", "the stream's group")
        return StreamScope(x, include_grad, "tf.stream")
    if callable(x) and not isinstance(x, type | StreamScope):
        return StreamScope(x, include_grad, "tf.stream")
    hint = ""
    if x is None:
        hint = ". For the next group in turn: tf.cuda.stream_scope()"
    elif isinstance(x, type):
        hint = f". Pass an instance of {x.__name__}"
    raise TypeError(
        f"tf.stream({x!r}): x must be an int, the number of a stream group, or a tf.cuda.Stream, "
        f"or a function that says the group of each op{hint}"
    )


def stream_scope(
    stream: Stream | StreamSetter | None = None, include_grad: bool = True
) -> "StreamScope":
    """Puts the ops that are built in the scope, and their gradients, on a stream.

    ```python
    @tf.function
    def model(x):
      with tf.cuda.stream_scope(tf.cuda.get_stream(1)):
        a = left(x)
      with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
        b = right(x)
      return a + b
    ```

    With `TF_NODE_LEVEL_MULTISTREAM=true` the two branches of each call run side by side, and so do
    their gradients. Otherwise a scope changes nothing about how a program runs.

    The result is a context manager and a decorator (each call of the function then enters the
    scope). A scope may be entered any number of times, in any threads, and nested; the innermost
    scope counts. A scope applies to the graph in which the scope is entered, in the thread that
    entered the scope, and to replica functions of `strategy.run`. A `tf.function`, a branch of
    `tf.cond` or a body of `tf.while_loop` that is called in a scope follows the scope, except where
    its own scopes say otherwise.

    Args:
      stream: from `tf.cuda.get_stream`, or a `tf.cuda.StreamSetter`, which chooses the stream of
        each op. None is round-robin: each entry of a scope without a stream takes the next group,
        from 0 to `tf.cuda.stream_group_count() - 1` and again from 0. Each graph starts at 0; a
        `tf.function` and the functions traced in it count together. So the same program gives the
        same groups.
      include_grad: True: gradients of these ops (`tf.gradients`, optimizers, `tf.GradientTape` in a
        `tf.function`, Keras `fit`) go to the same group, wherever the gradients are computed.
        False: gradients go to the scope, if any, in which they are computed.

    Returns:
      The scope. `with ... as s` gives the `tf.cuda.Stream` that the scope took, or the setter.

    Raises:
      TypeError: `stream` is neither a `tf.cuda.Stream` nor a `tf.cuda.StreamSetter`. In the scope,
        at an op: the setter returned neither a number nor a stream nor None.
      ValueError: this process does not have `stream`. In the scope, at an op: the setter returned
        the number of a group that this process does not have.
    """
    if stream is not None and not isinstance(stream, StreamSetter):
        if not isinstance(stream, Stream):
            hint = "pass tf.cuda.get_stream(i), or nothing for the next group"
            if isinstance(stream, type) and issubclass(stream, StreamSetter):
                hint = f"pass an instance of {stream.__name__}"
            elif callable(stream):
                hint = "as a decorator it is @tf.cuda.stream_scope(), with parentheses"
            elif isinstance(stream, int) and not isinstance(stream, bool):
                hint = f"pass tf.cuda.get_stream({stream})"
            raise TypeError(
                f"tf.cuda.stream_scope: stream={stream!r} is not a tf.cuda.Stream: {hint}"
            )
        check_group(stream.group, f"tf.cuda.stream_scope({stream!r})", "the stream's group")
    return StreamScope(stream, include_grad)


class StreamScope:
    """A context manager and decorator, which `tf.stream` and `tf.cuda.stream_scope` make."""

    def __init__(
        self,
        stream: Stream | Callable[[Any], int | Stream | None] | None,
        include_grad: bool,
        name: str = "tf.cuda.stream_scope",
    ) -> None:
        self._stream = stream
        self._include_grad = bool(include_grad)
        self._name = name

    def __enter__(self) -> Any:
        graph = graph_of_scope(self._name)
        stream = Stream(_next_group(graph)) if self._stream is None else self._stream
        where = stream.group if isinstance(stream, Stream) else self._group_of
        scope_stack.enter(graph, where, self._include_grad, owner=self)
        return stream

    def __exit__(self, *exception: object) -> None:
        scope_stack.leave(self)

    def _group_of(self, op: Any) -> int | None:
        """Asks the setter for an op's group, and checks the answer."""
        setter: Any = self._stream
        said = setter(op)
        if said is None:
            return None
        group = said.group if isinstance(said, Stream) else said
        what = f"{self._name}: the setter {setter!r} said {said!r} for op '{op.name}' ({op.type})"
        if not isinstance(group, int) or isinstance(group, bool):
            raise TypeError(
                f"{what}. It must say an int, the number of a stream group, or a tf.cuda.Stream, "
                "or None for the scope around it"
            )
        check_group(group, what, "it")
        return group

    def __call__(self, function: _F) -> _F:
        """Decorates a function, method or `tf.function`: each call runs in the scope."""
        hint = "To use it inside a class, decorate a method."
        if inspect.isfunction(self._stream):
            hint = f"As a decorator, {self._name} takes a stream: @{self._name}(1)"
        check_decorated(function, self._name, hint)
        return in_scope(self, function)

    def __repr__(self) -> str:
        return f"{self._name}({self._stream!r}, include_grad={self._include_grad})"


def check_decorated(function: object, name: str, hint: str) -> None:
    """Checks that a decorated function runs inside the scope of this name, or raises TypeError."""
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"{name} decorates functions, which {function!r} is not. {hint}")
    runs_later = (
        inspect.isgeneratorfunction,
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
    )
    if any(is_one(function) for is_one in runs_later):
        raise TypeError(
            f"{name} cannot decorate {function!r}, which runs after its call has "
            f"returned. Enter the scope inside it: with {name}(...): ..."
        )


def in_scope(scope: contextlib.AbstractContextManager[Any], function: _F) -> _F:
    """Makes each call of a function run in a scope, which can be entered any number of times."""

    @functools.wraps(function)
    def scoped(*args: Any, **kwargs: Any) -> Any:
        with scope:
            return function(*args, **kwargs)

    return scoped  # type: ignore[return-value]


def graph_of_scope(name: str) -> Any:
    """The graph to which a scope of this name applies that is entered now.

    None if functions run eagerly (`tf.config.run_functions_eagerly`); a RuntimeError in eager code.
    """
    if not context.executing_eagerly():
        return ops.get_default_graph()
    if not eager_function_run.functions_run_eagerly():
        raise RuntimeError(_NOT_EAGER.format(name=name))
    return None


_NOT_EAGER = """\
{name} was entered in eager code, where each op runs by itself and there is nothing \
to run side by side. It works inside a tf.function or a tf.compat.v1 graph:

  @tf.function
  def step(x):
    with tf.cuda.stream_scope(tf.cuda.get_stream(1)):
      return branch(x)

As a decorator, put it below @tf.function. Call a Keras model that has scopes by fit, evaluate, \
predict or from a tf.function, and compile it without run_eagerly=True. (After \
tf.config.run_functions_eagerly(True) scopes have no effect, and no error.)"""

# How many scopes without a stream have been entered, by outermost graph.
_turns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_turns_lock = threading.Lock()


def _renew_lock() -> None:
    """In a `fork()`ed child: the thread that held the lock does not exist here to release it."""
    global _turns_lock
    _turns_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def _next_group(graph: Any) -> int:
    if graph is None:
        return 0
    outermost = outermost_graph(graph)
    with _turns_lock:
        turn = _turns.get(outermost, 0)
        _turns[outermost] = turn + 1
    return turn % stats.stream_group_count()


def outermost_graph(graph: Any) -> Any:
    """The v1 graph around a graph or, with eager execution, the outermost function's graph."""
    while graph.building_function and graph.outer_graph is not None:
        outer = graph.outer_graph
        if not outer.building_function and ops.executing_eagerly_outside_functions():
            break  # eager execution has one hidden graph, shared by the whole process
        graph = outer
    return graph

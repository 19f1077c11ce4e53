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
"""`tf.cuda.stream_scope`: puts the ops that a program builds, and their gradients, on streams."""

import dataclasses
import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import eager_function_run
from tensorflow.python.framework import ops
from tensorflow.python.multistream import cuda, scope_stack

_F = TypeVar("_F", bound=Callable[..., Any])

# TF_GPU_STREAM_GROUP_COUNT takes no more.
_MOST_GROUPS = 64


@dataclasses.dataclass(frozen=True)
class Stream:
    """A stream of a GPU, as `tf.cuda.get_stream` gives it.

    Attributes:
      group: number of its stream group.
    """

    group: int


def get_stream(i: int) -> Stream:
    """The stream of a stream group, for `tf.cuda.stream_scope`.

    Args:
      i: number of the group, from 0 to `tf.cuda.stream_group_count() - 1`. If multi-stream is not
        enabled, any number that `TF_GPU_STREAM_GROUP_COUNT` could allow, from 0 to 63: the same
        program then runs on one stream.

    Returns:
      The stream.

    Raises:
      TypeError: `i` is not an int.
      ValueError: there is no such group.
    """
    check_group(i, f"get_stream({i!r})", "i")
    return Stream(i)


def check_group(group: object, call: str, name: str) -> None:
    """Checks the number of a stream group that a caller gave.

    Args:
      group: the number.
      call: what the caller called, as it is to appear in an error, without `tf.cuda.`.
      name: of the argument.

    Raises:
      TypeError: it is not an int.
      ValueError: there is no such group.
    """
    if not isinstance(group, int) or isinstance(group, bool):
        raise TypeError(f"tf.cuda.{call}: {name} must be an int, the number of a stream group")
    enabled = cuda.multi_stream_is_enabled()
    count = cuda.stream_group_count() if enabled else _MOST_GROUPS
    if 0 <= group < count:
        return
    reason = f"there is no stream group {group}: groups are numbered from 0 to {count - 1}"
    if group >= count and enabled:
        reason += f", since this process has {count}"
        if group < _MOST_GROUPS:
            reason += f". Set TF_GPU_STREAM_GROUP_COUNT={group + 1} or more to have it"
        else:
            reason += f". TF_GPU_STREAM_GROUP_COUNT takes at most {_MOST_GROUPS}"
    raise ValueError(f"tf.cuda.{call}: {reason}")


def stream_scope(stream: Stream | None = None, include_grad: bool = True) -> "StreamScope":
    """Puts the ops that are built in it, and their gradients, on a stream.

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

    The result is a context manager and a decorator (the scope is then entered in each call). It may
    be entered any number of times, in any threads, and nested; the innermost scope counts. A scope
    counts for the graph in which it is entered, in the thread that entered it. A `tf.function`, a
    branch of `tf.cond` or a body of `tf.while_loop` that is called in a scope follows the scope,
    except for what its own scopes say.

    Args:
      stream: from `tf.cuda.get_stream`. None takes the groups one after another, from 0 to
        `tf.cuda.stream_group_count() - 1` and again from 0: the next one each time that a scope
        without a stream is entered. They are counted anew for each graph, and in a `tf.function`
        together with the functions traced in it, so the same program gives the same groups.
      include_grad: True: gradients of these ops (`tf.gradients`, optimizers, `tf.GradientTape` in a
        `tf.function`, Keras `fit`) go to the same group, wherever they are asked for. False: they
        go to the scope, if any, in which they are asked for.

    Returns:
      The scope. `with ... as s` gives the `tf.cuda.Stream` it took.

    Raises:
      TypeError: `stream` is not a `tf.cuda.Stream`.
      ValueError: this process has no such stream.
    """
    if stream is not None:
        if not isinstance(stream, Stream):
            hint = "pass tf.cuda.get_stream(i), or nothing for the next group"
            if callable(stream):
                hint = "as a decorator it is @tf.cuda.stream_scope(), with parentheses"
            elif isinstance(stream, int) and not isinstance(stream, bool):
                hint = f"pass tf.cuda.get_stream({stream})"
            raise TypeError(
                f"tf.cuda.stream_scope: stream={stream!r} is not a tf.cuda.Stream: {hint}"
            )
        check_group(stream.group, f"stream_scope({stream!r})", "the stream's group")
    return StreamScope(stream, include_grad)


class StreamScope:
    """A context manager and decorator; see `tf.cuda.stream_scope`, which makes it.

    Args:
      stream: where ops go; None for the next group each time.
      include_grad: whether gradients follow.
    """

    def __init__(self, stream: Stream | None, include_grad: bool) -> None:
        self._stream = stream
        self._include_grad = bool(include_grad)

    def __enter__(self) -> Stream:
        graph = None
        if not context.executing_eagerly():
            graph = ops.get_default_graph()
        elif not eager_function_run.functions_run_eagerly():
            raise RuntimeError(_NOT_EAGER)
        stream = self._stream
        if stream is None:
            stream = Stream(_next_group(graph))
        scope_stack.enter(graph, stream.group, self._include_grad, owner=self)
        return stream

    def __exit__(self, *exception: object) -> None:
        if not scope_stack.leave(self):
            raise RuntimeError(f"{self!r} is left in a thread that has not entered it")

    def __call__(self, function: _F) -> _F:
        """Decorates a function: each call runs in the scope.

        Args:
          function: any function, method or `tf.function`.

        Returns:
          The same in the scope.

        Raises:
          TypeError: it is not a function, or one whose body runs after its call.
        """
        if not callable(function) or inspect.isclass(function):
            raise TypeError(
                f"tf.cuda.stream_scope decorates functions, which {function!r} is not. To use it "
                "inside a class, decorate a method."
            )
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise TypeError(
                f"tf.cuda.stream_scope cannot decorate {function!r}, which runs after its call has "
                "returned. Enter the scope inside it: with tf.cuda.stream_scope(): ..."
            )

        @functools.wraps(function)
        def in_scope(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return in_scope  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"tf.cuda.stream_scope({self._stream!r}, include_grad={self._include_grad})"


_NOT_EAGER = """\
tf.cuda.stream_scope was entered in eager code, where each op runs by itself and there is nothing \
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


def _next_group(graph: Any) -> int:
    if graph is None:
        return 0
    outermost = _outermost(graph)
    with _turns_lock:
        turn = _turns.get(outermost, 0)
        _turns[outermost] = turn + 1
    return turn % cuda.stream_group_count()


def _outermost(graph: Any) -> Any:
    """The v1 graph that is being built or, with eager execution, the outermost function's graph."""
    while graph.building_function and graph.outer_graph is not None:
        outer = graph.outer_graph
        if not outer.building_function and ops.executing_eagerly_outside_functions():
            break  # the graph that stands behind eager execution, for the whole process
        graph = outer
    return graph

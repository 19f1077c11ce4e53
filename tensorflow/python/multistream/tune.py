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
"""`tf.cuda.tune`: finds out which policy, and how many stream groups, suit a function best."""

import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.multistream import auto_stream, cuda, loader, synchronize
from tensorflow.python.util import nest

_function = polymorphic_function.function

# Calls after which "cost" has come to an end, and those that others need to warm up.
_SETTLED = 110
_WARM_UP = 8


@dataclasses.dataclass(frozen=True)
class TunedPolicy:
    """How fast a function is under one policy.

    Attributes:
      policy: its name; "none" is one stream, or the function's own scopes.
      groups: how many stream groups it may use.
      step_ms: median time of a call, in milliseconds, until all its results are there.
      ratio: the time under "none" divided by this one: above 1 is faster.
      waits: of all groups, how often a stream waits for another one, in a call.
      groups_used: how many groups have work.
    """

    policy: str
    groups: int
    step_ms: float
    ratio: float
    waits: float
    groups_used: int


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What `tf.cuda.tune` has found. Prints as a table that says what to use.

    Attributes:
      rows: one for each policy and number of groups, in the order of trying.
      best: the fastest; "none" unless another one gains 3%.
    """

    rows: tuple[TunedPolicy, ...]
    best: TunedPolicy

    def __str__(self) -> str:
        lines = ["policy      groups  ms a call  ratio  waits  groups used"]
        for row in self.rows:
            mark = "  <- use this" if row is self.best else ""
            lines.append(
                f"{row.policy:10}  {row.groups:6}  {row.step_ms:9.3f}  {row.ratio:5.2f}"
                f"  {row.waits:5.1f}  {row.groups_used:11}{mark}"
            )
        best = self.best
        if best.policy == "none":
            lines.append("No policy is faster than what the function does by itself.")
        else:
            lines.append(
                f"Decorate the function: @tf.cuda.auto_stream({best.policy!r}, {best.groups})"
            )
            lines.append(
                f"or export TF_GPU_STREAM_GROUP_COUNT={best.groups} "
                f"TF_MULTI_STREAM_POLICY={best.policy}"
            )
        return "\n".join(lines)


def tune(
    fn: Callable[..., Any],
    example_inputs: Sequence[Any] = (),
    policies: Sequence[str] = ("embedding", "full_graph", "cost"),
    groups: Sequence[int] | None = None,
    steps: int = 30,
    progress: bool = True,
) -> Tuning:
    """Tries policies and numbers of stream groups on a function, and says which to use.

    ```python
    print(tf.cuda.tune(step, (x, y)))
    ```

    The function is called up to 150 times for each of them, and must be one that can be: variables
    that its graph uses have their values again at the end, but what else it changes stays changed.
    It is traced anew for each; scopes in it count in any case.

    Args:
      fn: a function, or a `tf.function`. It may create variables in its first call only.
      example_inputs: its arguments, as in a call: tensors of the shapes that are to be fast.
      policies: which to try, of those of `tf.cuda.auto_stream`.
      groups: which numbers of groups to try; None: 2, 4, 8 and so on up to those that the GPU has.
      steps: calls to time for each; the median counts.
      progress: whether to show a progress bar, on stderr.

    Returns:
      The times of all, and the best.

    Raises:
      RuntimeError: this process has not several stream groups whose nodes have groups of their
        own, or this is not eager code.
      TypeError: `fn` is not a function, or an entry of `groups` is not an int.
      ValueError: `steps` is below 3, a policy is unknown, or an entry of `groups` is not a number
        that the GPU has.
    """
    if not callable(fn):
        raise TypeError(f"tf.cuda.tune: fn={fn!r} is not a function")
    if not isinstance(steps, int) or steps < 3:
        raise ValueError(f"tf.cuda.tune: steps={steps!r} is not a number of at least 3")
    if not context.executing_eagerly():
        raise RuntimeError("tf.cuda.tune calls the function: it works in eager code only.")
    available = cuda.stream_group_count()
    if available < 2 or not loader.library.TFMS_IsNodeLevel():
        raise RuntimeError(
            f"tf.cuda.tune: nodes have no groups here. Set TF_GPU_STREAM_GROUP_COUNT (it is "
            f"{available}) to the most groups to try and TF_NODE_LEVEL_MULTISTREAM=true."
        )
    counts = _group_counts(available) if groups is None else list(groups)
    scopes = [
        auto_stream.auto_stream(policy, count, always=policy != "cost")
        for policy in policies
        for count in counts
    ]
    names = [("none", 1)] + [(policy, count) for policy in policies for count in counts]
    function = fn if isinstance(fn, polymorphic_function.Function) else _function(fn)
    function.get_concrete_function(*example_inputs)  # creates its variables
    plain = function.python_function
    scopes.insert(0, auto_stream.auto_stream("none"))
    functions = [_function(scope(plain)) for scope in scopes]
    variables = {
        id(variable): variable
        for function in functions
        for variable in function.get_concrete_function(*example_inputs).variables
    }
    values = [(variable, variable.read_value()) for variable in variables.values()]
    bar = _Bar(len(functions), progress)
    try:
        measured = []
        for (policy, count), function in zip(names, functions, strict=True):
            bar.show(f"{policy}, {count} groups" if count > 1 else policy)
            for _ in range(_SETTLED if policy == "cost" else _WARM_UP):
                function(*example_inputs)
            measured.append(_Measured(policy, count, function))
        bar.show("timing")
        for _ in range(steps):  # in turn: what disturbs, disturbs all
            for candidate in measured:
                candidate.call(example_inputs)
    finally:
        bar.end()
        for variable, value in values:
            variable.assign(value)
    return _tuning(measured)


def _group_counts(available: int) -> list[int]:
    counts = [2]
    while counts[-1] * 2 <= available:
        counts.append(counts[-1] * 2)
    if counts[-1] != available:
        counts.append(available)
    return counts


class _Measured:
    """The calls of a function that are timed."""

    def __init__(self, policy: str, groups: int, function: Callable[..., Any]) -> None:
        self.policy = policy
        self.groups = groups
        self._function = function
        self._times: list[float] = []
        self._waits = 0
        self._used: set[int] = set()

    def call(self, inputs: Sequence[Any]) -> None:
        before = cuda.stream_stats()
        began = time.perf_counter()
        for tensor in nest.flatten(self._function(*inputs)):
            if hasattr(tensor, "numpy"):
                tensor.numpy()
        synchronize.synchronize()
        self._times.append(1000.0 * (time.perf_counter() - began))
        for then, now in zip(before, cuda.stream_stats(), strict=True):
            self._waits += now.waits - then.waits
            if (now.waits, now.events, now.steps_started) != (
                then.waits,
                then.events,
                then.steps_started,
            ):
                self._used.add(now.group)

    def result(self, none_ms: float) -> TunedPolicy:
        return TunedPolicy(
            self.policy,
            self.groups,
            self.step_ms,
            none_ms / self.step_ms,
            self._waits / len(self._times),
            len(self._used),
        )

    @property
    def step_ms(self) -> float:
        return statistics.median(self._times)


def _tuning(measured: Sequence[_Measured]) -> Tuning:
    none_ms = measured[0].step_ms
    rows = tuple(candidate.result(none_ms) for candidate in measured)
    best = min(rows, key=lambda row: (row.step_ms, row.groups))
    return Tuning(rows, best if best.ratio > 1.03 else rows[0])


class _Bar:
    """A progress bar on stderr."""

    _WIDTH = 30

    def __init__(self, parts: int, shown: bool) -> None:
        self._parts = parts + 1
        self._done = 0
        self._shown = shown

    def show(self, what: str) -> None:
        """The next part begins."""
        if self._shown:
            filled = self._WIDTH * self._done // self._parts
            bar = "#" * filled + "." * (self._WIDTH - filled)
            sys.stderr.write(f"\rtune [{bar}] {self._done}/{self._parts} {what:30}")
            sys.stderr.flush()
        self._done += 1

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\n")
            sys.stderr.flush()

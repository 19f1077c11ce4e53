# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.capture_report`: which steps are replayed, and why others are not."""

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import pinned

# Of a function that is asked about: two run as always, the third is recorded.
_CALLS = 6
_REPLAYED = "replayed"  # capture_report.h


@dataclasses.dataclass(frozen=True, order=True)
class CaptureCount:
    """Steps of a graph that had the same end.

    Attributes:
      graph: how many ops it has, and the first of its results by name.
      end: "replayed", or why they ran as always; for a graph of which no step can be captured, the
        first op in the way.
      steps: how many.
    """

    graph: str
    end: str
    steps: int


@dataclasses.dataclass(frozen=True)
class CaptureReport:
    """What `tf.cuda.capture_report` returns; as a string, a table.

    Attributes:
      counts: by graph and end.
    """

    counts: tuple[CaptureCount, ...]

    @property
    def steps(self) -> int:
        """All steps."""
        return sum(count.steps for count in self.counts)

    @property
    def replayed(self) -> int:
        """Those of them that were replayed."""
        return sum(count.steps for count in self.counts if count.end == _REPLAYED)

    def __str__(self) -> str:
        lines = [f"{self.replayed} of {self.steps} steps were replayed"]
        graph = None
        for count in self.counts:
            if count.graph != graph:
                graph = count.graph
                lines.append(f"{graph}:")
            lines.append(f"{count.steps:>10} {count.end}")
        return "\n".join(lines)


def capture_report(
    function: Callable[..., Any] | None = None, *args: Any, **kwargs: Any
) -> CaptureReport:
    """Tells which steps were replayed (`TF_MULTI_STREAM_CAPTURE`), and why others were not.

    ```python
    print(tf.cuda.capture_report(model, x))            # of some calls of one function
    print(tf.cuda.capture_report(lambda: session.run(y, {x: value})))
    print(tf.cuda.capture_report())                    # of all steps since the process started
    ```

    With a function it is called 6 times, on one stream group: the first two calls run as always,
    the third is recorded. Steps of other threads count as well while that goes on, and those of
    nodes that TensorFlow runs before the function (tracing, initialization).

    Args:
      function: what to call.
      *args: its arguments.
      **kwargs: its named arguments.

    Returns:
      The report.

    Raises:
      RuntimeError: steps are not captured in this process, and how they would be.
      TypeError: `function` cannot be called.
    """
    if not loader.library.TFMS_Captures():
        raise RuntimeError(
            "tf.cuda.capture_report: steps are not captured in this process. Set "
            "TF_MULTI_STREAM_CAPTURE=auto, and not TF_NODE_LEVEL_MULTISTREAM, before TensorFlow is "
            "imported."
        )
    if function is None:
        if args or kwargs:
            raise TypeError("tf.cuda.capture_report(None, ...): arguments of no function")
        return _report({})
    if not callable(function):
        raise TypeError(f"tf.cuda.capture_report({function!r}): not a function")
    before = {(count.graph, count.end): count.steps for count in _report({}).counts}
    with pinned.stream_group(0):
        for _ in range(_CALLS):
            function(*args, **kwargs)
    return _report(before)


def _report(before: dict[tuple[str, str], int]) -> CaptureReport:
    """What was counted since."""
    counts = []
    for line in _lines().splitlines():
        steps, graph, end = line.split("\t")
        since = int(steps) - before.get((graph, end), 0)
        if since > 0:
            counts.append(CaptureCount(graph, end, since))
    return CaptureReport(tuple(counts))


def _lines() -> str:
    size = 0
    while True:
        buffer = ctypes.create_string_buffer(size + 1)
        length = loader.library.TFMS_CaptureReport(buffer, len(buffer))
        if length <= size:
            return buffer.value.decode()
        size = length + 1024  # others may add lines

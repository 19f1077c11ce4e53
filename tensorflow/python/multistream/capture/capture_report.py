# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.capture_report`: which steps are replayed, and why others are not."""

import ctypes
import dataclasses
from collections.abc import Callable
from typing import Any

from tensorflow.python.multistream import loader
from tensorflow.python.multistream.groups import pinned

# Calls of `function`: two run uncaptured, the third is recorded, the rest are replays.
_CALLS = 6
_REPLAYED = "replayed"  # capture_report.h


@dataclasses.dataclass(frozen=True, order=True)
class CaptureCount:
    """Steps of one graph with the same outcome.

    Attributes:
      graph: the graph's number of ops, and the first of its results by name.
      end: "replayed", or why the steps were not; for a graph that cannot be captured, the first op
        in the way.
      steps: number of these steps.
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
        """Number of all steps."""
        return sum(count.steps for count in self.counts)

    @property
    def replayed(self) -> int:
        """Number of steps that were replayed."""
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

    Given a function, `capture_report` calls it 6 times on one stream group: the first two calls run
    uncaptured, the third is recorded. The report then includes steps that other threads run in the
    meantime, and steps that TensorFlow runs before the function (tracing, initialization).

    Args:
      function: the function to call; None for a report of all steps so far.
      *args: positional arguments of `function`.
      **kwargs: named arguments of `function`.

    Returns:
      The report.

    Raises:
      RuntimeError: steps are not captured in this process. The message says how to turn it on.
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
        size = length + 1024  # other threads may add lines meanwhile

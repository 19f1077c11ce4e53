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
# capture_report.h
_REPLAYED = "replayed"
_GRAPH, _PIECE_OF_LOOP = "0", "2"


@dataclasses.dataclass(frozen=True, order=True)
class CaptureCount:
    """Steps of one graph, or of one piece of a graph, with the same outcome.

    Attributes:
      graph: the graph's number of ops, and the first of its results by name; for a piece, also
        which of the graph's pieces it is.
      end: "replayed", or why the steps were not; for a graph that cannot be captured, the first op
        in the way.
      steps: number of these steps.
      launches: ops that launch kernels in each of the steps; an op in a loop counts once.
        A graph's pieces in loops have launches of their own, for each iteration.
      is_piece: this is a piece of a graph, whose steps are counted as the graph's
        (`TF_MULTI_STREAM_CAPTURE_PIECES`).
      in_loop: this is a piece that a step runs in each iteration of a loop.
    """

    graph: str
    end: str
    steps: int
    launches: int = 0
    is_piece: bool = False
    in_loop: bool = False


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
        return sum(count.steps for count in self.counts if not count.is_piece)

    @property
    def replayed(self) -> int:
        """Number of steps that were replayed as a whole."""
        return sum(x.steps for x in self.counts if x.end == _REPLAYED and not x.is_piece)

    @property
    def share(self) -> float:
        """The share of all launches, from 0 to 1, that were part of a replay."""
        launches = sum(x.steps * x.launches for x in self.counts if x.in_loop or not x.is_piece)
        replayed = sum(x.steps * x.launches for x in self.counts if x.end == _REPLAYED)
        return replayed / launches if launches else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.replayed} of {self.steps} steps were replayed, and {self.share:.0%} of all "
            "launches"
        ]
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
        steps, launches, kind, graph, end = line.split("\t")
        since = int(steps) - before.get((graph, end), 0)
        if since > 0:
            is_piece, in_loop = kind != _GRAPH, kind == _PIECE_OF_LOOP
            counts.append(CaptureCount(graph, end, since, int(launches), is_piece, in_loop))
    return CaptureReport(tuple(counts))


def _lines() -> str:
    size = 0
    while True:
        buffer = ctypes.create_string_buffer(size + 1)
        length = loader.library.TFMS_CaptureReport(buffer, len(buffer))
        if length <= size:
            return buffer.value.decode()
        size = length + 1024  # other threads may add lines meanwhile

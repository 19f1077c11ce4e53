# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The events of TensorFlow's profiler (CUPTI) on a GPU's streams, by stream group.

The profiler numbers streams and knows no groups. At the start of a trace the runtime makes each
stream of a group run two memsets (`cuda_stream_group.h`): one of MARK bytes, and one whose size
encodes the group and which of the group's streams this is.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

from tensorflow.python.multistream.trace.trace_events import Event

# cuda_stream_group.h: kMarkBytes, kMarkStreams.
MARK = 4 * 20261
_STREAMS = ("", " from host", " to host", " on GPU")
_PLANE = re.compile(r"/device:GPU:(\d+)$")
_LINE = re.compile(r"Stream #(\d+)")
_BYTES = re.compile(r"\b(?:num_bytes|size):(\d+)")
_COPIES = {
    "MemcpyH2D": "host to GPU",
    "MemcpyD2H": "GPU to host",
    "MemcpyD2D": "GPU to GPU",
    "MemcpyP2P": "GPU to another GPU",
}


def mark_of(group: int, stream: int) -> int:
    """Size, in bytes, of the memset that marks a stream as the `stream`-th of a group."""
    return 4 * (1 + len(_STREAMS) * group + stream)


def planes(space: Any) -> Iterator[tuple[int, Any]]:
    """The GPUs of an XSpace, with their planes."""
    for plane in space.planes:
        if found := _PLANE.search(plane.name):
            yield int(found[1]), plane


def events(space: Any, zero: int = 0) -> list[Event]:
    """The kernels, copies and memsets of an XSpace; group -1 for streams without a mark.

    `zero` is the moment, in nanoseconds since the epoch, at which the events' clock is 0.
    """
    started = _profile_start(space)
    made: list[Event] = []
    for gpu, plane in planes(space):
        for line in plane.lines:
            if found := _LINE.match(line.name):
                # Times are relative to the start of the profile, or since the epoch.
                since = line.timestamp_ns + (started if line.timestamp_ns < started else 0)
                made += _of_line(gpu, plane, line, int(found[1]), since - zero)
    return made


def name_lines(space: Any) -> bool:
    """Gives the lines of marked streams, if any, their groups' names, as TensorBoard shows them."""
    named = False
    for _, plane in planes(space):
        for line in plane.lines:
            if _LINE.match(line.name) and (marks := _marks(_calls(plane, line))[0]):
                line.name = f"{_name(marks)}: {line.name}"
                line.display_name = ""
                named = True
    return named


def _profile_start(space: Any) -> int:
    for plane in space.planes:
        for stat in plane.stats:
            if plane.stat_metadata[stat.metadata_id].name == "profile_start_time":
                return int(stat.uint64_value or stat.int64_value)
    return 0


class _Call:
    """An event of a line, with its stats by name."""

    def __init__(self, plane: Any, event: Any) -> None:
        self.begin = event.offset_ps // 1000
        self.end = (event.offset_ps + event.duration_ps) // 1000
        self.name = plane.event_metadata[event.metadata_id].name
        # TensorFlow writes `Memset_details`, but `memcpy_details`.
        self.stats = {
            plane.stat_metadata[stat.metadata_id].name.lower(): _value(plane, stat)
            for stat in event.stats
        }
        self.bytes = 0
        for details in ("memcpy_details", "memset_details"):
            if found := _BYTES.search(str(self.stats.get(details, ""))):
                self.bytes = int(found[1])
        self.is_memset = "memset_details" in self.stats
        self.is_copy = self.is_memset or "memcpy_details" in self.stats


def _value(plane: Any, stat: Any) -> Any:
    field = stat.WhichOneof("value")
    if field == "ref_value":
        return plane.stat_metadata[stat.ref_value].name
    return getattr(stat, field) if field else None


def _calls(plane: Any, line: Any) -> list[_Call]:
    return sorted((_Call(plane, event) for event in line.events), key=lambda call: call.begin)


def _marks(calls: list[_Call]) -> tuple[list[tuple[int, int]], set[int]]:
    """The (group, stream) marks of a line, and the indices of the calls that are marks."""
    memsets = [i for i, call in enumerate(calls) if call.is_memset]
    marks, at = [], set()
    for i, j in itertools.pairwise(memsets):
        if calls[i].bytes == MARK and calls[j].bytes < MARK and calls[j].bytes % 4 == 0:
            marks.append(divmod(calls[j].bytes // 4 - 1, len(_STREAMS)))
            at |= {i, j}
    return marks, at


def _name(marks: list[tuple[int, int]]) -> str:
    if len(marks) == 1:
        group, stream = marks[0]
        return f"group {group}{_STREAMS[stream]}"
    # Streams of different CUDA contexts may have the same number, and so share a line.
    return "group " + ", ".join(sorted({str(group) for group, _ in marks}, key=int))


def _of_line(gpu: int, plane: Any, line: Any, number: int, since: int) -> Iterator[Event]:
    calls = _calls(plane, line)
    marks, at = _marks(calls)
    name = _name(marks) if marks else f"stream {number}"
    group = marks[0][0] if len(marks) == 1 else -1
    for i, call in enumerate(calls):
        if i in at:
            continue
        op = str(call.stats.get("tf_op", ""))
        yield Event(
            kind="copy" if call.is_copy else "kernel",
            gpu=gpu,
            group=group,
            begin=since + call.begin,
            end=since + call.end,
            amount=call.bytes,
            type=op,
            name=_COPIES.get(call.name, call.name),
            stream=name,
        )

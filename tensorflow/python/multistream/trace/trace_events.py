# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The events of `tf.cuda.trace`, from the runtime or a profiler, and their rows in the timeline."""

import dataclasses
from collections.abc import Iterable, Iterator

STEPS = "steps"
HOLDS = "holds"


@dataclasses.dataclass(frozen=True)
class Event:
    """An activity of a group's stream, or of the host on the group's behalf."""

    kind: str  # "step", "kernel", "copy", "wait", "callback", "replay" or "hold"
    gpu: int
    group: int  # -1 for a stream of no group
    begin: int  # nanoseconds
    end: int  # nanoseconds; not before `begin`
    amount: int  # of a copy or hold, bytes; of a wait, the other group; of a replay, its kernels
    type: str  # of a kernel, its op's type, if known
    name: str  # of the op, the graph, or the activity
    stream: str = ""  # name of the stream, if not the group's compute stream

    @property
    def title(self) -> str:
        """The event's label in a timeline."""
        if self.kind == "wait":
            return f"wait for group {self.amount}"
        if self.kind == "step":
            return f"group {self.group}: {self.name}"
        if self.kind == "hold":
            return f"group {self.group} holds {self.name}"
        return self.name

    @property
    def details(self) -> dict[str, str | int]:
        """Further facts about the event, by name."""
        known: dict[str, str | int] = {}
        if self.group >= 0:
            known["group"] = self.group
        if self.type:
            known["op"] = self.type
        if self.kind in ("copy", "hold"):
            known["bytes"] = self.amount
        if self.kind == "replay" and self.amount:
            known["kernels"] = self.amount
        return known

    @property
    def row(self) -> str:
        """The event's row among its GPU's rows, before rows with overlaps are split."""
        if self.kind == "step":
            return STEPS
        if self.kind == "hold":
            return HOLDS
        if self.kind in ("callback", "replay"):
            return f"group {self.group} {self.kind}s"
        return self.stream or f"group {self.group}"


def parse(lines: str) -> tuple[list[Event], int]:
    """Parses the runtime's text (trace.h): the events, and the number of dropped events."""
    dropped, *rest = lines.split("\n")
    events = []
    for line in filter(None, rest):
        kind, *numbers, op, name = line.split("\t")
        gpu, group, begin, end, amount = map(int, numbers)
        events.append(Event(kind, gpu, group, begin, end, amount, op, name))
    return events, int(dropped)


def rows(events: Iterable[Event]) -> Iterator[tuple[int, str, list[Event]]]:
    """The timeline's rows: GPU, label and events, sorted by begin.

    They are of each GPU its steps, the streams of its groups, and its holds. Events that overlap,
    such as steps and holds, are spread over several rows.
    """
    by_row: dict[tuple[int, str], list[Event]] = {}
    for event in events:
        by_row.setdefault((event.gpu, event.row), []).append(event)
    for gpu, name in sorted(by_row, key=_order):
        for number, of_row in enumerate(_without_overlaps(by_row[gpu, name]), 1):
            yield gpu, name if number == 1 else f"{name} ({number})", of_row


def _order(key: tuple[int, str]) -> tuple[int, int, int, str]:
    gpu, name = key
    if name == STEPS:
        return gpu, 0, 0, name
    if name.startswith("group "):
        return gpu, 1, int(name.split(" ")[1].rstrip(",")), name
    return gpu, 3 if name == HOLDS else 2, 0, name


def _without_overlaps(events: list[Event]) -> list[list[Event]]:
    split: list[list[Event]] = []
    ends: list[int] = []
    for event in sorted(events, key=lambda e: (e.begin, e.end)):
        # A wait does not occupy the stream, so a wait may overlap other events.
        if event.kind == "wait" and split:
            split[0].append(event)
            continue
        for i, end in enumerate(ends):
            if end <= event.begin:
                split[i].append(event)
                ends[i] = event.end
                break
        else:
            split.append([event])
            ends.append(0 if event.kind == "wait" else event.end)
    return split

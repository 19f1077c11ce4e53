# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Events of TensorFlow's profiler by stream group, and tf.cuda.trace on a GPU.

XSpaces are made by hand; a fake runtime and a fake profiler simulate the GPU.
"""

import ctypes
import json
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import errors
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.trace import trace_events, trace_profile
from tensorflow.python.multistream.trace.trace_events import Event
from tensorflow.python.profiler import profiler_v2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

STARTED = 1_790_000_000_000_000_000


class Space:
    """An XSpace as CUPTI's collector makes it, one plane a GPU and one line a stream."""

    def __init__(self, started: int = STARTED) -> None:
        self.proto = xplane_pb2.XSpace()
        environment = self.proto.planes.add(name="Task Environment")
        environment.stat_metadata[1].name = "profile_start_time"
        environment.stats.add(metadata_id=1, uint64_value=started)

    def gpu(self, number: int) -> Any:
        return self.proto.planes.add(name=f"/device:GPU:{number}")


def add_line(plane: Any, stream: int, calls: Sequence[tuple[str, int, int, str]]) -> Any:
    """A line whose calls have a name, begin and length in nanoseconds, and details."""
    line = plane.lines.add(id=stream, name=f"Stream #{stream}(Compute,Memset)", timestamp_ns=1000)
    for name, begin, length, details in calls:
        event = line.events.add(
            metadata_id=_metadata(plane.event_metadata, name),
            offset_ps=begin * 1000,
            duration_ps=length * 1000,
        )
        kind = {"Memset": "Memset_details", "Memcpy": "memcpy_details"}.get(name[:6], "tf_op")
        stat = event.stats.add(metadata_id=_metadata(plane.stat_metadata, kind))
        if kind == "tf_op":
            stat.str_value = details
        else:
            stat.ref_value = _metadata(plane.stat_metadata, details)
    return line


def _metadata(table: Any, name: str) -> int:
    number = len(table) + 1
    table[number].id = number
    table[number].name = name
    return number


def memset(begin: int, size: int) -> tuple[str, int, int, str]:
    return "Memset 3", begin, 1, f"kind:device num_bytes:{size} async:1"


def marked(group: int, stream: int = 0) -> list[tuple[str, int, int, str]]:
    return [memset(0, trace_profile.MARK), memset(2, trace_profile.mark_of(group, stream))]


def test_streams_have_the_groups_that_they_are_marked_with() -> None:
    """Stream numbers do not matter; the marks themselves are left out."""
    space = Space()
    plane = space.gpu(1)
    add_line(plane, 21, [*marked(3), ("gemm", 10, 5, "dense/MatMul:MatMul")])
    add_line(
        plane,
        20,
        [*marked(12, 1), ("MemcpyH2D", 10, 5, "kind_src:pinned kind_dst:device size:4096 dest:0")],
    )
    add_line(plane, 7, [("unknown", 20, 1, "")])
    assert trace_profile.events(space.proto, zero=STARTED) == [
        Event("kernel", 1, 3, 1010, 1015, 0, "dense/MatMul:MatMul", "gemm", "group 3"),
        Event("copy", 1, 12, 1010, 1015, 4096, "", "host to GPU", "group 12 from host"),
        Event("kernel", 1, -1, 1020, 1021, 0, "", "unknown", "stream 7"),
    ]


def test_every_group_and_stream_has_a_mark_of_its_own() -> None:
    marks = {trace_profile.mark_of(group, stream) for group in range(64) for stream in range(4)}
    assert len(marks) == 256
    assert max(marks) < trace_profile.MARK
    assert all(mark > 0 and mark % 4 == 0 for mark in marks)


def test_memsets_of_programs_are_no_marks() -> None:
    space = Space()
    plane = space.gpu(0)
    add_line(plane, 5, [memset(0, 64), memset(2, 128), memset(4, trace_profile.MARK)])
    made = trace_profile.events(space.proto)
    assert [event.stream for event in made] == ["stream 5"] * 3
    assert [event.amount for event in made] == [64, 128, trace_profile.MARK]
    assert not trace_profile.name_lines(space.proto)


def test_streams_of_one_number_are_named_together() -> None:
    """Streams of several CUDA contexts with one number cannot be told apart."""
    space = Space()
    again = [(name, begin + 50, length, text) for name, begin, length, text in marked(10)]
    add_line(space.gpu(0), 5, [*marked(2), *again, ("gemm", 90, 5, "")])
    [event] = trace_profile.events(space.proto)
    assert (event.stream, event.group) == ("group 2, 10", -1)


def test_clocks_that_are_not_relative_are_those_of_the_epoch() -> None:
    space = Space()
    line = add_line(space.gpu(0), 5, [("gemm", 10, 5, "")])
    line.timestamp_ns += STARTED
    assert trace_profile.events(space.proto, zero=STARTED)[0].begin == 1010


def test_rows_are_split_where_events_overlap() -> None:
    """Waits do not occupy the stream, so they split no rows."""

    def event(kind: str, begin: int, end: int, group: int = 0) -> Event:
        return Event(kind, 0, group, begin, end, 0, "", "x")

    made = trace_events.rows(
        [
            event("hold", 0, 9),
            event("step", 0, 5),
            event("step", 3, 8, 1),
            event("step", 5, 6),
            event("kernel", 0, 5, 10),
            event("wait", 3, 3, 10),
            event("kernel", 5, 6, 2),
            Event("kernel", 0, -1, 0, 1, 0, "", "x", "stream 7"),
        ]
    )
    assert [(name, len(events)) for _, name, events in made] == [
        ("steps", 2),
        ("steps (2)", 1),
        ("group 2", 1),
        ("group 10", 2),
        ("stream 7", 1),
        ("holds", 1),
    ]


Fakes = SimpleNamespace


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch, four_groups: None) -> Fakes:
    """A fake runtime and profiler: a step of a millisecond on group 2, a kernel in its middle."""
    made = Fakes(calls=[], refusal=b"", running=False)

    def trace_start(most_events: Any, message: Any, size: int) -> int:
        made.calls.append("runtime marks streams")
        made.began = time.monotonic_ns()
        # Not since the profiler's start, which is any time ago where the machine is busy.
        made.kernel = time.time_ns() - made.started + 500_000
        ctypes.memmove(message, made.refusal, min(size, len(made.refusal)))
        return len(made.refusal)

    def trace_stop(size: Any) -> int:
        made.calls.append("runtime stops")
        lines = f"3\nstep\t0\t2\t{made.began}\t{made.began + 1_000_000}\t0\t\tmodel\n".encode()
        made.text = ctypes.create_string_buffer(lines)
        size._obj.value = len(lines)
        return ctypes.addressof(made.text)

    def start(logdir: str, options: Any) -> None:
        if made.running:
            raise errors.AlreadyExistsError(None, None, "Another profiler is running.")
        made.calls.append("profiler starts")
        made.running = True
        made.folder = Path(logdir, "plugins", "profile", "2026")
        made.started = time.time_ns()

    def stop(save: bool = True) -> None:
        made.calls.append("profiler stops" if save else "profiler is dropped")
        made.running = False
        if save:
            space = Space(made.started)
            add_line(space.gpu(0), 13, [*marked(2), ("gemm", made.kernel, 20_000, "")])
            add_line(space.gpu(0), 7, [("gemm", 10, 5, "")])
            made.folder.mkdir(parents=True)
            (made.folder / "host.xplane.pb").write_bytes(space.proto.SerializeToString())

    monkeypatch.setattr(profiler_v2, "start", start)
    monkeypatch.setattr(profiler_v2, "stop", stop)
    runtime = SimpleNamespace(
        TFMS_EmulatesGpus=lambda: 0, TFMS_TraceStart=trace_start, TFMS_TraceStop=trace_stop
    )
    monkeypatch.setattr(loader, "library", runtime)
    return made


def test_kernels_come_from_the_profiler(fakes: Fakes, tmp_path: Path) -> None:
    """Steps come from the runtime; the profiler sees the marks, and both clocks agree."""
    with tf.cuda.trace(tmp_path / "a.json"):
        fakes.calls.append("program")
    assert fakes.calls == [
        "profiler starts",
        "runtime marks streams",
        "program",
        "runtime stops",
        "profiler stops",
    ]
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X" and e["args"]["group"] >= 0]
    (step,) = [e for e in spans if e["cat"] == "step"]
    (kernel,) = [e for e in spans if e["cat"] == "kernel"]
    assert step["args"]["group"] == kernel["args"]["group"] == 2
    assert (kernel["name"], kernel["dur"]) == ("gemm", pytest.approx(20))
    assert abs(kernel["ts"] - 500) < 100_000  # 0.1 s: far less than a wrong epoch
    # Nothing else is left.
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert not fakes.folder.exists()


def test_tensorboard_gets_the_groups_names(fakes: Fakes, tmp_path: Path) -> None:
    with tf.cuda.trace(tmp_path / "a.json", logdir=tmp_path / "logs"):
        pass
    [file] = (tmp_path / "logs").glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(file.read_bytes())
    assert [line.name for plane in space.planes for line in plane.lines] == [
        "group 2: Stream #13(Compute,Memset)",
        "Stream #7(Compute,Memset)",
    ]


def test_a_profiler_that_is_on_or_a_runtime_that_refuses_is_an_error(
    fakes: Fakes, tmp_path: Path
) -> None:
    """After that error, a trace can be made."""
    fakes.running = True
    with (
        pytest.raises(RuntimeError, match=r"a.json'\): TensorFlow's profiler is on already"),
        tf.cuda.trace(tmp_path / "a.json"),
    ):
        pass
    fakes.running, fakes.refusal = False, b"group 1 has no 81044 bytes"
    with (
        pytest.raises(RuntimeError, match=r"a.json'\): group 1 has no 81044 bytes"),
        tf.cuda.trace(tmp_path / "a.json"),
    ):
        pass
    assert fakes.calls[-1] == "profiler is dropped"
    assert not (tmp_path / "a.json").exists()
    fakes.refusal = b""
    with tf.cuda.trace(tmp_path / "a.json"):
        pass

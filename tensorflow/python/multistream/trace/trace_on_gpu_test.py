# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""tf.cuda.trace on a GPU, simulated by a fake runtime and a fake profiler."""

from __future__ import annotations

import ctypes
import json
import time
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import errors
from tensorflow.python.multistream import loader
from tensorflow.python.multistream.trace import trace_profile
from tensorflow.python.profiler import profiler_v2
from tensorflow.tsl.profiler.protobuf import xplane_pb2


class Stop:
    """A fake TFMS_TraceStop, which returns a step of one millisecond."""

    restype: Any = None

    def __init__(self, runtime: FakeRuntime) -> None:
        self.runtime = runtime

    def __call__(self, size: Any) -> int:
        self.runtime.calls.append("runtime stops")
        begin = self.runtime.begin
        lines = f"3\nstep\t0\t2\t{begin}\t{begin + 1_000_000}\t0\t\tmodel\n".encode()
        self.runtime.text = ctypes.create_string_buffer(lines)
        size._obj.value = len(lines)
        return ctypes.addressof(self.runtime.text)


class FakeRuntime:
    """A fake runtime library of a machine with a GPU."""

    text: Any = None  # the text that Stop has returned

    def __init__(self, calls: list[str], error: bytes = b"") -> None:
        self.calls = calls
        self.error = error
        self.begin = 0
        self.TFMS_TraceStop = Stop(self)

    def TFMS_EmulatesGpus(self) -> int:  # noqa: N802
        return 0

    def TFMS_TraceStart(self, most_events: Any, message: Any, size: int) -> int:  # noqa: N802
        self.calls.append("runtime marks streams")
        self.begin = time.monotonic_ns()
        ctypes.memmove(message, self.error, min(size, len(self.error)))
        return len(self.error)


class FakeProfiler:
    """A fake of TensorFlow's profiler: a kernel on group 2 after half a millisecond."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        self.running = False
        self.folder = Path()
        self.started = 0

    def start(self, logdir: str, options: Any) -> None:
        if self.running:
            raise errors.AlreadyExistsError(None, None, "Another profiler is running.")
        self.calls.append("profiler starts")
        self.running = True
        self.folder = Path(logdir, "plugins", "profile", "2026")
        self.started = time.time_ns()

    def stop(self, save: bool = True) -> None:
        self.calls.append("profiler stops" if save else "profiler is dropped")
        self.running = False
        if save:
            self.folder.mkdir(parents=True)
            (self.folder / "host.xplane.pb").write_bytes(self.space().SerializeToString())

    def space(self) -> Any:
        space = xplane_pb2.XSpace()
        environment = space.planes.add(name="Task Environment")
        environment.stat_metadata[1].name = "profile_start_time"
        environment.stats.add(metadata_id=1, uint64_value=self.started)
        plane = space.planes.add(name="/device:GPU:0")
        plane.event_metadata[1].name = "gemm"
        plane.stat_metadata[1].name = "Memset_details"
        line = plane.lines.add(name="Stream #13(Compute)")
        for i, size in enumerate((trace_profile.MARK, trace_profile.mark_of(2, 0))):
            event = line.events.add(metadata_id=2, offset_ps=i * 1000, duration_ps=1)
            event.stats.add(metadata_id=1, str_value=f"kind:device num_bytes:{size} async:1")
        line.events.add(metadata_id=1, offset_ps=500_000_000, duration_ps=20_000_000)
        return space


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def profiler(calls: list[str], monkeypatch: pytest.MonkeyPatch, four_groups: None) -> FakeProfiler:
    fake = FakeProfiler(calls)
    monkeypatch.setattr(profiler_v2, "start", fake.start)
    monkeypatch.setattr(profiler_v2, "stop", fake.stop)
    monkeypatch.setattr(loader, "library", FakeRuntime(calls))
    return fake


def spans(path: Path) -> list[Any]:
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]


def test_kernels_come_from_the_profiler(
    profiler: FakeProfiler, calls: list[str], tmp_path: Path
) -> None:
    """Steps come from the runtime; the profiler sees the marks, and both clocks agree."""
    with tf.cuda.trace(tmp_path / "a.json"):
        calls.append("program")
    assert calls == [
        "profiler starts",
        "runtime marks streams",
        "program",
        "runtime stops",
        "profiler stops",
    ]
    step, kernel = spans(tmp_path / "a.json")
    assert (step["cat"], step["args"]["group"]) == ("step", 2)
    assert (kernel["name"], kernel["cat"], kernel["args"]["group"]) == ("gemm", "kernel", 2)
    assert kernel["dur"] == pytest.approx(20)
    assert abs(kernel["ts"] - 500) < 100_000  # 0.1 s: far less than a wrong epoch


def test_tensorboard_gets_the_groups_names(profiler: FakeProfiler, tmp_path: Path) -> None:
    with tf.cuda.trace(tmp_path / "a.json", logdir=tmp_path / "logs"):
        pass
    [file] = (tmp_path / "logs").glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(file.read_bytes())
    assert [line.name for plane in space.planes for line in plane.lines] == [
        "group 2: Stream #13(Compute)"
    ]


def test_without_logdir_nothing_else_is_left(profiler: FakeProfiler, tmp_path: Path) -> None:
    with tf.cuda.trace(tmp_path / "a.json"):
        folder = profiler.folder
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json"]
    assert not folder.exists()


def test_a_profiler_that_is_on_is_an_error(profiler: FakeProfiler, tmp_path: Path) -> None:
    """After that error, a trace can be made."""
    profiler.running = True
    with (
        pytest.raises(RuntimeError, match=r"a.json'\): TensorFlow's profiler is on already"),
        tf.cuda.trace(tmp_path / "a.json"),
    ):
        pass
    profiler.running = False
    with tf.cuda.trace(tmp_path / "a.json"):
        pass


def test_a_runtime_that_refuses_leaves_no_profiler(
    profiler: FakeProfiler, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "library", FakeRuntime(calls, b"group 1 has no 81044 bytes"))
    with (
        pytest.raises(RuntimeError, match=r"a.json'\): group 1 has no 81044 bytes"),
        tf.cuda.trace(tmp_path / "a.json"),
    ):
        pass
    assert calls[-1] == "profiler is dropped"
    assert not (tmp_path / "a.json").exists()

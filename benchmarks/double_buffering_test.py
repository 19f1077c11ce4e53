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
"""Tests of double_buffering.py: drawings, with pretended training, and on an emulated GPU."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

import double_buffering
import numpy as np
import pytest
import tensorflow as tf
from double_buffering import Lanes, Span
from emulated_process import run_program
from tensorflow.tsl.profiler.protobuf import xplane_pb2

NAME = "double_buffering.py"
SMALL = [
    *("--batch", "3000", "--width", "64", "--layers", "4"),
    *("--batches", "9", "--rounds", "2", "--shown", "4"),
]


def _lanes(**lanes: list[tuple[float, float, str]]) -> Lanes:
    return {
        name: [
            Span(begin, end, kind, double_buffering.MARKS.get(kind, kind[0]))
            for begin, end, kind in spans
        ]
        for name, spans in lanes.items()
    }


def test_overlap_counts_each_moment_once() -> None:
    """However many streams copy or compute in it; copies between GPUs and the like are neither."""
    lanes = _lanes(
        one=[(0, 10, "copy"), (20, 30, "compute"), (40, 50, "copy")],
        two=[(5, 12, "copy"), (25, 45, "compute"), (0, 3, "other")],
        three=[(8, 26, "compute")],
    )
    copies, both = double_buffering.overlap(lanes)
    assert copies == pytest.approx(12 + 10)
    assert both == pytest.approx((12 - 8) + (45 - 40))
    assert double_buffering.overlap({}) == (0, 0)
    assert double_buffering.overlap(_lanes(one=[(0, 1, "copy"), (1, 2, "compute")])) == (1, 0)


def test_lanes_are_drawn_on_one_scale() -> None:
    lanes = _lanes(a=[(100, 110, "x"), (115, 120, "y")], long=[(110, 115, "z")])
    assert double_buffering.draw(lanes, 20) == [
        "a    |xxxxxxxxxx     yyyyy|",
        "long |          zzzzz     |",
        "     0             20.00 ms",
    ]
    # What is short is seen all the same.
    assert (
        double_buffering.draw(_lanes(a=[(0, 10, "x"), (3, 3.01, "y")]), 10)[0] == "a |xxxyxxxxxx|"
    )
    assert double_buffering.draw({}, 20) == []


def test_profile_gives_a_lane_for_each_stream_of_a_gpu() -> None:
    space = xplane_pb2.XSpace()

    def add_line(plane: Any, name: str, *events: tuple[str, float, float]) -> None:
        line = plane.lines.add(name=name, timestamp_ns=5_000_000)
        for text, begin, end in events:
            number = len(plane.event_metadata) + 1
            plane.event_metadata[number].name = text
            line.events.add(
                metadata_id=number, offset_ps=int(begin * 1e9), duration_ps=int((end - begin) * 1e9)
            )

    gpu = space.planes.add(name="/device:GPU:0")
    add_line(gpu, "Stream #20(Compute)", ("void gemm<float>()", 1, 3), ("Memset", 3, 4))
    add_line(gpu, "Stream #9(MemcpyH2D)", ("MemcpyH2D", 2, 4), ("MemcpyD2D", 6, 7))
    add_line(gpu, "Stream #30")
    add_line(gpu, "TensorFlow Ops", ("MatMul", 1, 3))
    add_line(space.planes.add(name="/host:CPU"), "Stream #1", ("MatMul", 1, 3))
    lanes = double_buffering.stream_lanes(space)
    assert list(lanes) == ["GPU:0 Stream #9(MemcpyH2D)", "GPU:0 Stream #20(Compute)"]
    copies, computes = lanes.values()
    assert [span.kind for span in copies] == ["copy", "other"]
    assert [span.kind for span in computes] == ["compute", "other"]
    assert (copies[0].begin, copies[0].end) == pytest.approx((7, 9))
    assert double_buffering.overlap(lanes) == pytest.approx((2, 1))


def test_times_of_the_host_end_when_the_group_has_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[Any] = []

    class Stream:
        def __init__(self, group: int) -> None:
            self.group = group

        def synchronize(self) -> None:
            events.append(self.group)

    def clock() -> float:
        events.append("clock")
        return len(events) / 1e3

    monkeypatch.setattr(tf.cuda, "get_stream", Stream)

    def call() -> str:
        events.append("call")
        return "made"

    monkeypatch.setattr(time, "perf_counter", clock)
    times = double_buffering.HostTimes()
    assert times.timed(2, "copy", 13, call) == "made"
    assert events == ["clock", "call", 2, "clock"]
    times.timed(0, "compute", 3, lambda: None)
    lanes = times.lanes()
    assert list(lanes) == ["group 2 copy", "group 0 compute"]
    assert lanes["group 2 copy"] == [Span(1, 4, "copy", "3")]


class Pretended:
    """Stands for `Training`; double buffering gives what `losses` says in each of its calls."""

    losses: ClassVar[list[list[float]]] = []
    batch_bytes = 8

    def __init__(self, options: argparse.Namespace) -> None:
        self.calls = 0

    def reset(self) -> None:
        pass

    def weights(self) -> list[np.ndarray]:
        return [np.array([1.0])]

    def one_after_the_other(self, steps: int, timed: Any = None) -> list[float]:
        return [1.0, 0.5]

    def double_buffered(self, steps: int, timed: Any = None) -> list[float]:
        self.calls += 1
        return self.losses[min(self.calls, len(self.losses)) - 1]


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes `main` use a machine and a training that only pretend."""

    def make(groups: int = 2, losses: list[list[float]] | None = None) -> None:
        monkeypatch.setattr(tf.config.experimental, "enable_op_determinism", lambda: None)
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["a GPU"])
        monkeypatch.setattr(tf.cuda, "stream_group_count", lambda: groups)
        monkeypatch.setattr(tf.cuda, "synchronize", lambda: None)
        monkeypatch.setattr(Pretended, "losses", losses or [[1.0, 0.5]])
        monkeypatch.setattr(double_buffering, "Training", Pretended)
        ways = {
            "one after the other": Pretended.one_after_the_other,
            "double buffering": Pretended.double_buffered,
        }
        monkeypatch.setattr(double_buffering, "WAYS", ways)
        lanes = _lanes(group=[(0, 4, "copy"), (3, 9, "compute")])
        monkeypatch.setattr(double_buffering, "lanes_of", lambda run: (lanes, "pretended times"))

    return make


def test_both_ways_are_shown(pretend: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pretend()
    assert double_buffering.main(["--columns", "18"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("0.0 MB a batch; copies on group 1, training on group 0")
    assert lines[1].startswith("one after the other:") and lines[1].endswith("1.00 times")
    assert lines[2].startswith("double buffering:")
    assert lines[3] == "losses and weights: the same bits (1 -> 0.5)"
    assert lines[5:9] == [
        "one after the other, 5 batches (pretended times):",
        "group |cccccc############|",
        "      0            9.00 ms",
        "copies 4.00 ms, 1.00 ms of it beside compute",
    ]


@pytest.mark.parametrize(
    ("losses", "number"),
    [([[1.0, 0.5], [1.0, 0.25]], 1), ([[1.0, 0.5], [1.0, 0.5], [2.0, 0.5]], 2)],
)
def test_other_bits_in_any_round_are_a_failure(
    pretend: Any, capsys: pytest.CaptureFixture[str], losses: list[list[float]], number: int
) -> None:
    pretend(losses=losses)
    assert double_buffering.main([]) == 1
    problem = f"double_buffering: round {number}, double buffering: its results are other bits\n"
    assert capsys.readouterr().err == problem


@pytest.mark.parametrize(
    ("groups", "option", "problem"),
    [
        (1, [], "--copy-group 1: there is 1 stream group, numbered from 0. Set"),
        (
            3,
            ["--copy-group", "3"],
            "--copy-group 3: there are 3 stream groups, numbered from 0. Set",
        ),
    ],
)
def test_missing_groups_are_named(
    pretend: Any, capsys: pytest.CaptureFixture[str], groups: int, option: list[str], problem: str
) -> None:
    pretend(groups=groups)
    assert double_buffering.main(option) == 1
    wanted = f"{problem} TF_GPU_STREAM_GROUP_COUNT={max(2, groups + 1)} or more\n"
    assert capsys.readouterr().err == f"double_buffering: {wanted}"


def test_copies_run_beside_compute_with_the_same_bits(tmp_path: pathlib.Path) -> None:
    """The training's results, and the host's times where the profiler shows no streams."""
    path = tmp_path / "figures.json"
    done = run_program(
        NAME,
        [*SMALL, "--copy-group", "2", "--json", str(path)],
        TF_GPU_STREAM_GROUP_COUNT="3",
        TF_NODE_LEVEL_MULTISTREAM="",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "4 layers, width 64, batch 3000: 0.8 MB a batch; copies on group 2, training on group 0"
    )
    assert lines[3] == "the GPU is emulated on the CPU: results count, times mean nothing"
    assert not any(line.endswith(" times") for line in lines)
    for name, rows in (("one after the other", lines[6:9]), ("double buffering", lines[12:15])):
        assert rows[0] == f"{name}, 4 batches (the host's times):"
        assert rows[1].startswith("group 2 copy    |0")
        assert rows[2].startswith("group 0 compute | ")
        assert all(set(row[17:]) == set(" 0123|") for row in rows[1:]), rows
    figures = json.loads(path.read_text())
    assert figures["loss"][1] < figures["loss"][0]
    # Each way copies 2 batches to begin with and 9 in each of 2 rounds; nobody uses group 1.
    assert figures["steps_of_groups"][1:] == [0, 2 * (2 + 2 * 9)]
    assert all(len(rates) == 2 and min(rates) > 0 for rates in figures["rates"].values())
    apart, together = figures["overlap_ms"].values()
    assert 0 == apart["beside_compute"] < apart["copies"]
    assert 0 < together["beside_compute"] <= together["copies"]


def test_node_level_is_named_where_calls_have_no_groups() -> None:
    done = run_program(NAME, SMALL)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("double_buffering: ") and "Unset the variable" in last


def test_missing_gpu_is_named(
    pretend: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend()
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert double_buffering.main([]) == 1
    problem = "TensorFlow finds no GPU; set TF_MULTI_STREAM_EMULATED_GPUS=1 for an emulated one"
    assert capsys.readouterr().err == f"double_buffering: {problem}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch", "0"], "argument --batch: '0' is not a whole number from 1"),
        (["--copy-group", "0"], "argument --copy-group: '0' is not a whole number from 1 to 63"),
        (["--shown", "x"], "argument --shown: 'x' is not a whole number"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        double_buffering.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))

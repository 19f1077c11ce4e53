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
r"""Trains while the next batch is copied to the GPU, and shows what each stream did when.

Two tf.functions, each on a stream group of its own: `train` on group 0, where steps that
change variables run in any case, and `copy`, which a second thread calls in
`tf.cuda.stream_group(1)`. While a batch is trained on, the next one is copied, so two
batches are on the GPU at a time:

    group 1   copy 0 | copy 1 | copy 2          | copy 3
    group 0          | train 0         | train 1         | train 2

The same batches are also copied and trained on one after the other. Losses and weights
of the two must be the same bits; `--rounds` rounds of both take turns, so that a machine
that slows down slows both down.

    export TF_GPU_STREAM_GROUP_COUNT=2
    python benchmarks/double_buffering.py

At the end each way is drawn, and how long copies ran beside compute is added up. On a
GPU the times are those of TensorFlow's profiler, a lane for each CUDA stream. Where it
shows no streams, as on an emulated GPU, they are taken on the host, a lane for each
group. Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for one: the results are
compared all the same, and the times mean nothing. Ops are deterministic
(tf.config.experimental.enable_op_determinism).

Exit status: 0, 1 after an error or if the two differ, 2 if the command line is not
understood.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import process_groups
import tensorflow as tf
from emulated import TIMES_MEAN_NOTHING, gpus_are_emulated
from option_types import whole

GPU = "/GPU:0"
RATE = 0.5
# Batches in host memory, which are used again and again.
POOL = 4
# Steps that change variables run there, whatever the thread says.
TRAIN_GROUP = 0


@dataclasses.dataclass(frozen=True)
class Span:
    """Something that a stream did.

    Args:
        begin: in ms.
        end: in ms.
        kind: "copy" of a batch to the GPU, "compute", or "other".
        mark: the character that stands for it in a timeline.
    """

    begin: float
    end: float
    kind: str
    mark: str = "#"


# Spans by name of the stream or group.
Lanes = dict[str, list[Span]]


def merged(spans: Iterable[Span]) -> list[tuple[float, float]]:
    """Begin and end of the times in which any of the spans ran, in order, without overlap."""
    times: list[tuple[float, float]] = []
    for span in sorted(spans, key=lambda span: span.begin):
        if times and span.begin <= times[-1][1]:
            times[-1] = (times[-1][0], max(times[-1][1], span.end))
        else:
            times.append((span.begin, span.end))
    return times


def overlap(lanes: Lanes) -> tuple[float, float]:
    """How long copies ran, and how long of that beside compute.

    Args:
        lanes: of all streams.

    Returns:
        The two times in ms.
    """
    spans = list(itertools.chain.from_iterable(lanes.values()))
    copies = merged(span for span in spans if span.kind == "copy")
    computes = merged(span for span in spans if span.kind == "compute")
    both = sum(
        max(0.0, min(a_end, b_end) - max(a_begin, b_begin))
        for a_begin, a_end in copies
        for b_begin, b_end in computes
    )
    return sum(end - begin for begin, end in copies), both


def draw(lanes: Lanes, columns: int) -> list[str]:
    """Draws lanes of text, all on the same scale.

    Args:
        lanes: of all streams.
        columns: width of the drawing without the lanes' names.

    Returns:
        A line for each lane, and one with the scale; empty if nothing ran.
    """
    spans = list(itertools.chain.from_iterable(lanes.values()))
    if not spans:
        return []
    begin = min(span.begin for span in spans)
    scale = (max(span.end for span in spans) - begin) / columns or 1.0
    width = max(len(name) for name in lanes)
    lines = []
    for name, of_lane in lanes.items():
        cells = [" "] * columns
        for span in sorted(of_lane, key=lambda span: span.begin):
            first = min(int((span.begin - begin) / scale), columns - 1)
            last = min(max(first, round((span.end - begin) / scale) - 1), columns - 1)
            cells[first : last + 1] = span.mark * (last + 1 - first)
        lines.append(f"{name:{width}} |{''.join(cells)}|")
    lines.append(f"{'':{width}} 0{f'{scale * columns:.2f} ms':>{columns + 1}}")
    return lines


def stream_lanes(space: Any) -> Lanes:
    """The lanes of a profile: one for each CUDA stream.

    Args:
        space: an XSpace, what TensorFlow's profiler writes.

    Returns:
        The lanes; empty if the profile has no GPU.
    """
    lanes: Lanes = {}
    for plane in space.planes:
        if not plane.name.startswith("/device:GPU:"):
            continue
        for line in plane.lines:
            if not line.name.startswith("Stream #"):  # others are made of these
                continue
            spans = lanes.setdefault(f"{plane.name[len('/device:') :]} {line.name}", [])
            for event in line.events:
                begin = line.timestamp_ns / 1e6 + event.offset_ps / 1e9
                kind = kind_of(plane.event_metadata[event.metadata_id].name)
                spans.append(Span(begin, begin + event.duration_ps / 1e9, kind, MARKS[kind]))
    return {name: lanes[name] for name in sorted(lanes, key=number_in) if lanes[name]}


MARKS = {"copy": "c", "compute": "#", "other": "."}


def kind_of(name: str) -> str:
    """What kind of span the profiler's name of it means."""
    if re.search("h2d|htod", name, re.IGNORECASE):
        return "copy"
    return "other" if re.match("mem(cpy|set)", name, re.IGNORECASE) else "compute"


def number_in(name: str) -> list[int]:
    """The numbers in a name, to sort by."""
    return [int(number) for number in re.findall("[0-9]+", name)]


class HostTimes:
    """Lanes of what is called, by the host's clock: the calls' groups must be waited for."""

    def __init__(self) -> None:
        self._lanes: Lanes = {}

    def timed(self, group: int, kind: str, number: int, call: Callable[[], Any]) -> Any:
        """Calls a function and waits for all that its group was given.

        Args:
            group: that it runs on.
            kind: of span.
            number: of the batch.
            call: the function.

        Returns:
            What it returns.
        """
        begin = time.perf_counter()
        result = call()
        # What has been launched may still run: a host's clock is right after this only.
        tf.cuda.get_stream(group).synchronize()
        end = time.perf_counter()
        spans = self._lanes.setdefault(f"group {group} {kind}", [])
        spans.append(Span(1e3 * begin, 1e3 * end, kind, str(number % 10)))
        return result

    def lanes(self) -> Lanes:
        """The lanes, the highest group first, as copies come before compute."""
        return {name: self._lanes[name] for name in sorted(self._lanes, reverse=True)}


def untimed(group: int, kind: str, number: int, call: Callable[[], Any]) -> Any:
    """As `HostTimes.timed`, without clock and waiting: results need none."""
    del group, kind, number
    return call()


class Training:
    """A model on the GPU, and its batches on the host.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        random = np.random.default_rng(options.seed)
        shape = (options.width, options.width)
        self._start = [
            (random.normal(0, 1, shape) / np.sqrt(options.width)).astype(np.float32)
            for _ in range(options.layers)
        ]
        with tf.device("/CPU:0"):
            self._batches = [
                tf.constant(random.normal(0, 1, (options.batch, options.width)), tf.float32)
                for _ in range(POOL)
            ]
        with tf.device(GPU):
            self._kernels = [tf.Variable(start) for start in self._start]
        self._copy_group = options.copy_group

        @tf.function(autograph=False)
        def copy(batch: Any) -> Any:
            with tf.device(GPU):
                return tf.identity(batch)

        @tf.function(autograph=False)
        def train(x: Any) -> Any:
            with tf.device(GPU):
                with tf.GradientTape() as tape:
                    y = x
                    for kernel in self._kernels:
                        y = tf.tanh(tf.matmul(y, kernel))
                    loss = tf.reduce_mean(tf.math.squared_difference(y, tf.sin(x)))
                gradients = tape.gradient(loss, self._kernels)
                for kernel, gradient in zip(self._kernels, gradients, strict=True):
                    kernel.assign_sub(RATE * gradient)
                return loss

        self._copy, self._train = copy, train

    @property
    def batch_bytes(self) -> int:
        """Bytes of a batch."""
        return int(self._batches[0].shape.num_elements()) * 4

    def reset(self) -> None:
        """Begins anew."""
        for kernel, start in zip(self._kernels, self._start, strict=True):
            kernel.assign(start)

    def weights(self) -> list[np.ndarray]:
        """The weights as they are now."""
        return [kernel.numpy() for kernel in self._kernels]

    def one_after_the_other(self, steps: int, timed: Any = untimed) -> list[float]:
        """Copies a batch, trains on it, copies the next one.

        Args:
            steps: how many batches.
            timed: `untimed`, or `HostTimes.timed`.

        Returns:
            The losses.
        """
        return [self._train_on(i, self._copied(i, timed), timed) for i in range(steps)]

    def double_buffered(self, steps: int, timed: Any = untimed) -> list[float]:
        """Copies the next batch, in a second thread, while it trains on one.

        Args:
            steps: how many batches.
            timed: `untimed`, or `HostTimes.timed`.

        Returns:
            The losses.
        """
        losses = []
        with concurrent.futures.ThreadPoolExecutor(max_workers=1) as copier:
            coming = copier.submit(self._copied, 0, timed)
            for i in range(steps):
                batch = coming.result()
                if i + 1 < steps:
                    coming = copier.submit(self._copied, i + 1, timed)
                # The loss is waited for, so that no more than two batches are on the GPU.
                losses.append(self._train_on(i, batch, timed))
        return losses

    def _copied(self, number: int, timed: Any) -> Any:
        # It counts for the thread that enters it.
        with tf.cuda.stream_group(self._copy_group):
            batch = self._batches[number % POOL]
            return timed(self._copy_group, "copy", number, lambda: self._copy(batch))

    def _train_on(self, number: int, batch: Any, timed: Any) -> float:
        return float(timed(TRAIN_GROUP, "compute", number, lambda: self._train(batch)))


WAYS = {
    "one after the other": Training.one_after_the_other,
    "double buffering": Training.double_buffered,
}


def lanes_of(run: Callable[..., Any]) -> tuple[Lanes, str]:
    """Runs something and finds out what streams did when.

    Args:
        run: the work; takes `untimed` or `HostTimes.timed`. It is called again if the profiler
            shows no streams.

    Returns:
        The lanes, and whose clock they are by.
    """
    # Here, as the profiler's messages are not part of TensorFlow's interface.
    from tensorflow.tsl.profiler.protobuf import xplane_pb2  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            run(untimed)
            tf.cuda.synchronize()  # or the profile would end before the streams do
        finally:
            tf.profiler.experimental.stop()
        lanes: Lanes = {}
        for path in pathlib.Path(folder).rglob("*.xplane.pb"):
            lanes.update(stream_lanes(xplane_pb2.XSpace.FromString(path.read_bytes())))
    if lanes:
        return lanes, "the profiler's times"
    times = HostTimes()
    run(times.timed)
    return times.lanes(), "the host's times"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Trains both ways in turn, compares, draws.

    Args:
        options: of the command line.

    Returns:
        The figures.

    Raises:
        RuntimeError: there is no second stream group; or the two ways differ.
    """
    groups = tf.cuda.stream_group_count()
    if groups <= options.copy_group:
        raise RuntimeError(
            f"--copy-group {options.copy_group}: there {'is' if groups == 1 else 'are'} {groups}"
            f" stream group{'' if groups == 1 else 's'}, numbered from 0. Set"
            f" TF_GPU_STREAM_GROUP_COUNT={options.copy_group + 1} or more"
        )
    training = Training(options)
    print(
        f"{options.layers} layers, width {options.width}, batch {options.batch}:"
        f" {training.batch_bytes / 1e6:.1f} MB a batch; copies on group {options.copy_group},"
        f" training on group {TRAIN_GROUP}",
        flush=True,
    )
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    first: list[bytes] = []
    for way in WAYS.values():
        way(training, 2)  # traces the functions, and allocates
    for round_number, (name, way) in itertools.product(range(options.rounds), WAYS.items()):
        training.reset()
        tf.cuda.synchronize()  # nothing of the round before is in the time
        began = time.perf_counter()
        losses = way(training, options.batches)
        tf.cuda.synchronize()
        rates[name].append(options.batches / (time.perf_counter() - began))
        bits = [np.array(losses).tobytes(), *(weight.tobytes() for weight in training.weights())]
        first = first or bits
        if bits != first:
            raise RuntimeError(f"round {round_number + 1}, {name}: its results are other bits")
    figures: dict[str, Any] = {
        "loss": [losses[0], losses[-1]],
        "rates": rates,
        "steps_of_groups": [s.steps_started for s in tf.cuda.stream_stats() if s.gpu == 0],
        "overlap_ms": {},
    }
    emulated = gpus_are_emulated()
    medians = {name: statistics.median(of_way) for name, of_way in rates.items()}
    for name, rate in medians.items():
        ratio = f", {rate / medians['one after the other']:.2f} times"
        print(f"{name + ':':20} {rate:8.1f} batches/s{'' if emulated else ratio}")
    if emulated:
        print(TIMES_MEAN_NOTHING)
    print(f"losses and weights: the same bits ({losses[0]:.6g} -> {losses[-1]:.6g})", flush=True)
    for name, way in WAYS.items():
        lanes, clock = lanes_of(lambda timed, way=way: way(training, options.shown, timed))
        copies, both = overlap(lanes)
        figures["overlap_ms"][name] = {"copies": copies, "beside_compute": both, "clock": clock}
        print(f"\n{name}, {options.shown} batches ({clock}):")
        print("\n".join(draw(lanes, options.columns)))
        print(f"copies {copies:.2f} ms, {both:.2f} ms of it beside compute", flush=True)
    return figures


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; exits with status 2 if it is not understood."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=whole(1, 10_000_000), default=4096, help="rows [4096]")
    parser.add_argument("--width", type=whole(1, 65_536), default=1024, help="columns [1024]")
    parser.add_argument("--layers", type=whole(1, 1024), default=24, help="of the model [24]")
    parser.add_argument("--batches", type=whole(1, 1_000_000), default=40, help="a round [40]")
    parser.add_argument("--rounds", type=whole(1, 1000), default=3, help="of both ways [3]")
    parser.add_argument("--shown", type=whole(1, 1000), default=5, help="batches drawn [5]")
    parser.add_argument("--columns", type=whole(10, 1000), default=72, help="drawn [72]")
    parser.add_argument("--copy-group", type=whole(1, 63), default=1, help="stream group [1]")
    parser.add_argument("--seed", type=whole(0, 2**31 - 1), default=20260, help="[20260]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = parse_arguments(arguments)
    try:
        process_groups.check_environment()
        tf.config.experimental.enable_op_determinism()
        figures = measure(options)
        if options.json is not None:
            settings = {key: value for key, value in vars(options).items() if key != "json"}
            options.json.write_text(json.dumps({"options": settings, **figures}, indent=1))
    except (OSError, RuntimeError, ValueError, tf.errors.OpError) as error:
        print(f"double_buffering: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0

"""Prometheus metrics: calls by model, method and status, and what each stream group does."""

import bisect
import collections
import itertools
from collections.abc import Iterator
from typing import Any

import prometheus_client
import tensorflow as tf
from call_queue import CallQueue
from grpc_front import SECONDS, Figures, Front
from model_versions import Models
from prometheus_client import core

# Field of tf.cuda.stream_stats(), whether it only grows, and what it is.
_GROUP_FIGURES = (
    ("steps_started", True, "Steps that the group has been given."),
    ("steps_failed", True, "Steps that ended with an error."),
    ("steps_replayed", True, "Steps that were launched as one recording."),
    ("recordings_made", True, "How often a step was recorded."),
    ("steps_running", False, "Steps that are not done."),
    ("recordings", False, "Recordings that there are."),
    ("recording_bytes", False, "Memory of the recordings."),
    ("bytes_in_use", False, "Memory that the group's allocator has handed out."),
    ("peak_bytes_in_use", False, "The most that bytes_in_use has been."),
    ("bytes_limit", False, "Memory that the group's allocator may hand out."),
    ("longest_launch_wait_micros", False, "The longest wait for a thread that launches."),
)
_FRONT_METHOD = "Predict"


class _Histogram:
    def __init__(self) -> None:
        self.sum = 0.0
        self.counts = [0] * (len(SECONDS) + 1)

    def add(self, seconds: float) -> None:
        self.sum += seconds
        self.counts[bisect.bisect_left(SECONDS, seconds)] += 1


class ServerMetrics:
    """The metrics of a server, of its front included."""

    def __init__(self, queue: CallQueue, models: Models) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.python_in_flight = 0  # calls that Python has and has not answered
        self.front: Front | None = None
        self._queue = queue
        self._models = models
        self._answered: collections.Counter[tuple[str, str, str]] = collections.Counter()
        self._seconds: dict[tuple[str, str], _Histogram] = {}
        self.registry.register(self)

    @property
    def in_flight(self) -> int:
        """How many calls have arrived and are not answered."""
        return self.python_in_flight + int(self._of_front().open)

    def answered(self, model: str, method: str, status: str, seconds: float) -> None:
        """Counts a call, by gRPC's or REST's method and the name of gRPC's status code.

        `model` is empty if no such model is served, as anybody may make up names.
        """
        self._answered[model, method, status] += 1
        if status == "OK":
            histogram = self._seconds.setdefault((model, method), _Histogram())
            histogram.add(seconds)

    def statuses(self) -> dict[str, int]:
        """How many calls were answered with each status."""
        found: collections.Counter[str] = collections.Counter()
        for (_, _, status), count in self._answered.items():
            found[status] += count
        for _, status, count in self._of_front().calls:
            found[status] += count
        return found

    def _of_front(self) -> Figures:
        return self.front.figures() if self.front is not None else Figures()

    def text(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return bytes(prometheus_client.generate_latest(self.registry))

    def collect(self) -> Iterator[Any]:
        """What prometheus_client asks at each scrape."""
        front = self._of_front()
        yield from self._of_calls(front)
        for name, what, figure in (
            ("running", "Calls that have a thread.", self._queue.running + front.running),
            ("waiting", "Calls that wait for a thread.", self._queue.waiting + front.waiting),
            (
                "in_flight",
                "Calls that have arrived and are not answered.",
                self.python_in_flight + front.open,
            ),
        ):
            yield core.GaugeMetricFamily(f"model_server_calls_{name}", what, figure)
        served = core.GaugeMetricFamily(
            "model_server_version_served",
            "1 for each version that is served.",
            labels=("model", "version"),
        )
        for model in self._models:
            for version in model.served():
                served.add_metric((model.name, str(version)), 1)
        yield served
        groups = tf.cuda.stream_stats()
        for field, grows, what in _GROUP_FIGURES:
            kind = core.CounterMetricFamily if grows else core.GaugeMetricFamily
            family = kind(f"model_server_group_{field}", what, labels=("gpu", "group"))
            for group in groups:
                family.add_metric((str(group.gpu), str(group.group)), getattr(group, field))
            yield family

    def _of_calls(self, front: Figures) -> Iterator[Any]:
        calls = core.CounterMetricFamily(
            "model_server_calls",
            "Calls that were answered. The model is empty where it is not one that is served.",
            labels=("model", "method", "status"),
        )
        answered = self._answered.copy()
        for model, status, count in front.calls:
            answered[model, _FRONT_METHOD, status] += count
        for labels, count in answered.items():
            calls.add_metric(labels, count)
        yield calls
        seconds = core.HistogramMetricFamily(
            "model_server_call_seconds",
            "Time from a request's arrival to its answer, in seconds, of calls that succeeded.",
            labels=("model", "method"),
        )
        histograms = {labels: (x.sum, x.counts) for labels, x in self._seconds.items()}
        for model, of_front, counts in front.seconds:
            of_python, more = histograms.get((model, _FRONT_METHOD), (0.0, [0] * len(counts)))
            added = [a + b for a, b in zip(counts, more, strict=True)]
            histograms[model, _FRONT_METHOD] = (of_front + of_python, added)
        bounds = (*map(str, SECONDS), "+Inf")
        for of_model, (total, counts) in histograms.items():
            buckets = list(zip(bounds, itertools.accumulate(counts), strict=True))
            seconds.add_metric(of_model, buckets, total)
        yield seconds

    def describe(self) -> list[Any]:
        """Says nothing, so that registering does not ask for the figures."""
        return []
